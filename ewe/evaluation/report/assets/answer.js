// The answer: sentences with their verdicts, earlier wordings, how it ended.
function removedWordings(sentence) {
  const wordings = el('span', { class: 'removed-wordings', hidden: true },
    sentence.removed.map((item) => [el('del', null, item.text), ' ']));
  const button = el('button', {
    type: 'button', class: 'rewritten', 'aria-expanded': 'false',
    'aria-label': `Show ${count(sentence.removed.length, 'removed wording')} of the next sentence`,
    onclick: () => {
      wordings.hidden = !wordings.hidden;
      button.setAttribute('aria-expanded', String(!wordings.hidden));
    },
  }, `↺ ${sentence.removed.length}`);
  return [button, wordings];
}

function drawAnswer(generation, page) {
  byId('prompt').textContent = generation.prompt;
  byId('text').replaceChildren(...generation.pieces.flatMap((piece, index) => {
    if (piece.sentence === null) return [index ? piece.text : piece.text.trimStart()];
    const sentence = generation.sentences[piece.sentence];
    const node = sentenceNode(sentence, piece.sentence, piece.text, page);
    return sentence.removed.length ? [...removedWordings(sentence), node] : [node];
  }));
  if (!generation.pieces.some((piece) => piece.text.trim())) byId('text').append(emptyNote(generation, generation.stats.tokens_discarded > 0));
  const rewritten = generation.sentences.some((sentence) => sentence.removed.length);
  const toggle = byId('show-removed');
  toggle.hidden = !rewritten;
  toggle.setAttribute('aria-pressed', 'false');
  drawLegend(generation);
  drawChips(generation);
}

function drawLegend(generation) {
  const rows = legendRows(generation.sentences);
  const rewrites = generation.stats.rewrites;
  if (rewrites) rows.push(el('li', null, `↺ ${count(rewrites, 'rewrite')}`));
  byId('legend').replaceChildren(...rows);
}

// Why there is no text, and what to try.
const EMPTY = {
  error: 'No sentence was finished. What went wrong stands above; try again, and look into the log if it happens again.',
  abort: 'It was stopped before a sentence was final.',
  timeout: 'The deadline passed before a sentence was final. Try a longer deadline (deadline_s) or a shorter answer (max_tokens).',
  length: 'It came to max_tokens before a sentence was final. Try a larger max_tokens.',
  dropped: 'Every sentence was refuted and left out: nothing that stands was found. Try passages that tell of the matter, or feedback.on_exhausted: flag, which leaves refuted sentences in.',
  stop: 'The model ended at once, without a word. Try other words, a temperature above 0, or min_tokens above 0.',
};
function emptyNote({ error, finish_reason: reason }, wasDropped) {
  const why = error ? 'error' : reason === 'stop' && wasDropped ? 'dropped' : reason;
  return el('p', { class: 'note empty' }, EMPTY[why] ?? `There is no text: it ended with ${reason || 'nothing'}.`);
}

const FINISHES = { stop: 'finished', length: 'cut at max_tokens', abort: 'aborted', timeout: 'deadline passed', error: 'failed' };

function drawChips(generation) {
  const { stats } = generation;
  const ended = generation.error || FINISHES[generation.finish_reason] || generation.finish_reason;
  const chips = [
    generation.policy ? `policy ${generation.policy}` : null,
    count(stats.tokens_kept, 'token') + (stats.tokens_discarded ? `, ${stats.tokens_discarded} withdrawn` : ''),
    seconds(stats.total_s),
  ].filter(Boolean).map((text) => el('span', { class: 'chip' }, text));
  const bad = generation.finish_reason !== 'stop' && generation.finish_reason !== 'length';
  byId('chips').replaceChildren(...chips, el('span', { class: bad ? 'chip bad' : 'chip' }, ended));
}

// All removed wordings at once.
byId('show-removed').addEventListener('click', (event) => {
  const show = event.currentTarget.getAttribute('aria-pressed') !== 'true';
  event.currentTarget.setAttribute('aria-pressed', String(show));
  for (const node of document.querySelectorAll('.removed-wordings')) node.hidden = !show;
  for (const node of document.querySelectorAll('.rewritten')) node.setAttribute('aria-expanded', String(show));
});
