// The page of checked texts: what they came to, the text with its verdicts, and every claim.
const data = JSON.parse(byId('data').textContent);
const SCORES = { precision: 'precision', recall: 'recall at K', f1: 'VeriScore (F1 at K)', k: 'K, supported claims for full recall' };

function bar(name, counts) {
  const total = Object.values(counts).reduce((sum, value) => sum + value, 0);
  const parts = Object.entries(VERDICTS).filter(([verdict]) => counts[verdict]);
  const track = parts.map(([verdict, { mark }]) => {
    const node = el('span', { class: `share v-${verdict}`, title: `${counts[verdict]} ${VERDICTS[verdict].name}` },
      counts[verdict] / total > 0.04 ? mark : null);
    node.style.width = `${(counts[verdict] / total) * 100}%`;
    return node;
  });
  return el('div', { class: 'outcome-row' }, el('div', { class: 'outcome-name' }, count(total, name)),
    el('div', { class: 'outcome-track', 'aria-hidden': 'true' }, track),
    el('div', { class: 'outcome-key' }, parts.map(([verdict, { mark, name: verdictName }]) =>
      el('span', { class: `v-${verdict}` }, el('b', null, `${mark} ${counts[verdict]}`), ` ${verdictName}`))));
}

class CheckPage extends Reader {
  draw(text) {
    byId('name').textContent = text.name;
    byId('part').textContent = text.part;
    byId('error').hidden = !text.error;
    byId('error').textContent = text.error ? `The check is not complete: ${text.error}` : '';
    byId('text').replaceChildren(...text.pieces.map((piece, index) => (piece.sentence === null
      ? (index ? piece.text : piece.text.trimStart())
      : sentenceNode(text.sentences[piece.sentence], piece.sentence, piece.text, this))));
    this.drawOutcome(text);
    drawClaims(text, this);
    const worst = text.sentences.findIndex((sentence) => sentence.verdict === 'refuted');
    drawSentence(text, Math.max(worst, 0));
  }

  drawPanel(text, index) {
    drawSentence(text, index);
  }

  drawOutcome(text) {
    const { sentences, claims, conflicts } = text.counts;
    const facts = [
      text.prompt ? `answer to: ${clip(text.prompt, 120)}` : null,
      data.against ? `checked against ${data.against}` : null,
    ];
    byId('chips').replaceChildren(badge(text.verdict), ...facts.filter(Boolean).map((fact) => el('span', { class: 'chip' }, fact)),
      conflicts ? el('span', { class: 'chip' }, `⚖ sources disagree on ${count(conflicts, 'claim')}`) : '');
    byId('bars').replaceChildren(bar('sentence', sentences), Object.values(claims).some(Boolean) ? bar('claim', claims) : '');
    const scores = Object.entries(text.scores).filter(([, value]) => typeof value === 'number');
    byId('scores').hidden = !scores.length;
    byId('scores').replaceChildren(...scores.map(([name, value]) =>
      el('div', null, el('dt', null, SCORES[name] ?? name), el('dd', null, name === 'k' ? String(value) : number(value, 3)))));
  }

  // From the table to the sentence.
  jump(index) {
    if (this.pinned !== index) this.pin(index);
    document.querySelector(`#text [data-sentence="${index}"]`).scrollIntoView({ block: 'center' });
  }
}

const page = new CheckPage(data.texts);
page.start((text) => (text.part ? `${text.name} (${text.part})` : text.name));
