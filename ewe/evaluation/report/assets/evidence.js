// The panel beside the answer: why one sentence is believed, and what was withdrawn before it.
function originOf(passage) {
  const parts = [];
  if (passage.source) parts.push(passage.source);
  if (passage.date) parts.push(passage.date);
  if (typeof passage.veracity === 'number') parts.push(`veracity ${number(passage.veracity)}`);
  return el('div', { class: 'origin' }, parts.join(' · '), passage.url ? [' · ', link(passage.url, passage.url)] : null);
}

const STANCES = { supported: 'supports', refuted: 'speaks against', inconclusive: 'undecided' };

// What is shown to a claim that nothing bears speaks neither for nor against it: its score is 0.
const stanceOf = (stance, score) => (score === 0 ? 'found instead' : `${VERDICTS[stance].mark} ${STANCES[stance] ?? ''} ${number(score)}`);

function proof(item, sources) {
  const passage = sources[item.id] ?? item;
  const stance = item.stance ? verdictOf(item.stance) : null;
  return el('div', { class: `proof v-${stance ?? 'not_checked'}`, 'data-passage': item.id },
    el('div', { class: 'proof-head' }, el('span', { class: 'proof-title' }, label(passage)),
      stance ? el('span', { class: 'proof-stance' }, stanceOf(stance, item.score)) : null),
    item.excerpt ? el('q', null, item.excerpt) : null,
    originOf(passage),
    passage.text && passage.text !== item.excerpt
      ? el('details', null, el('summary', null, 'whole passage'), el('p', null, marked(passage.text, item.excerpt))) : null);
}

// A passage's text with the sentence in it that decides marked, where it stands there word for word.
function marked(text, excerpt) {
  const at = excerpt ? text.indexOf(excerpt) : -1;
  return at < 0 ? text : [text.slice(0, at), el('mark', null, excerpt), text.slice(at + excerpt.length)];
}

function claimNode(claim) {
  const verdict = verdictOf(claim.verdict);
  return el('div', { class: `claim v-${verdict}` }, el('div', null, claim.text),
    el('div', { class: 'claim-verdict' }, `${VERDICTS[verdict].mark} ${VERDICTS[verdict].name} ${number(claim.score)}`),
    claim.reason ? el('div', { class: 'note' }, claim.reason) : null);
}

function removedNode(item, sources, open) {
  const refuted = item.claims.filter((claim) => claim.verdict === 'refuted');
  const against = item.evidence.filter((entry) => entry.stance === 'refuted');
  const shown = against.length ? against : item.evidence;
  return el('div', { class: 'wording v-refuted' }, el('del', null, item.text),
    refuted.length || shown.length
      ? el('details', { open }, el('summary', null, 'why it was withdrawn'), refuted.map(claimNode),
        folded(shown.map((entry) => proof(entry, sources))))
      : null);
}

function drawEvidence(generation, index) {
  const body = byId('evidence-body');
  const sentence = generation.sentences[index];
  if (!sentence) {
    byId('evidence-title').textContent = 'Evidence';
    body.replaceChildren(el('p', { class: 'note' }, 'The answer holds no sentences.'));
    return;
  }
  byId('evidence-title').textContent = `Sentence ${index + 1} of ${generation.sentences.length}`;
  const shown = new Set(sentence.evidence.map((item) => item.id));
  const others = sentence.source_ids.filter((id) => !shown.has(id));
  body.replaceChildren(
    badge(sentence.verdict, sentence.claims.length ? ` · ${number(sentence.score)}` : ''),
    el('p', { class: 'quote' }, sentence.text),
    sentence.quotes ? el('p', { class: 'note' }, 'A quotation: word for word from its source.') : '',
    sentence.reason ? el('p', { class: 'note' }, sentence.reason) : '',
    ...section('Claims', sentence.claims.map(claimNode)),
    ...section('Evidence', folded(sentence.evidence.map((item) => proof(item, generation.sources)))),
    ...section('Also in its sources', others.map((id) => proof({ id }, generation.sources))),
    ...section(`Withdrawn before (${sentence.removed.length})`, sentence.removed.map((item) => removedNode(item, generation.sources, sentence.removed.length === 1))),
  );
}

const section = (title, nodes) => (nodes.length ? [el('h3', null, title), ...nodes] : []);

// The first few, and the others behind a line that says how many there are.
const MOST_PROOFS = 3;
const folded = (nodes) => (nodes.length <= MOST_PROOFS + 1 ? nodes : [...nodes.slice(0, MOST_PROOFS),
  el('details', { class: 'more' }, el('summary', null, `${nodes.length - MOST_PROOFS} more`), nodes.slice(MOST_PROOFS))]);
