// One sentence of a text with its verdict, and the legend; both pages draw them.
function sentenceNode(sentence, index, text, page) {
  const verdict = verdictOf(sentence.verdict);
  const { mark, name } = VERDICTS[verdict];
  return el('span', {
    class: `sentence v-${verdict}`, tabindex: '0', role: 'button', 'data-sentence': index, 'aria-pressed': 'false',
    'aria-controls': 'evidence-body',
    onmouseenter: () => page.preview(index),
    onmouseleave: () => page.preview(null),
    onfocus: () => page.preview(index),
    onblur: () => page.preview(null),
    onclick: () => page.pin(index),
    onkeydown: (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      page.pin(index);
    },
  }, text, el('span', { class: 'mark', 'aria-hidden': 'true' }, mark),
  el('span', { class: 'visually-hidden' }, ` (${name})`));
}

// Each verdict that occurs, with how often.
function legendRows(sentences) {
  return Object.entries(VERDICTS).map(([verdict, { mark, name }]) => {
    const found = sentences.filter((sentence) => verdictOf(sentence.verdict) === verdict).length;
    return found ? el('li', null, el('span', { class: `sentence v-${verdict}` }, name,
      el('span', { class: 'mark', 'aria-hidden': 'true' }, mark)), ` ${found}`) : null;
  }).filter(Boolean);
}
