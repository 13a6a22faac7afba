// The panel of one checked sentence, and the table of all claims.
const MOST_PIECES = 3;

// Evidence under the claim that it speaks to: the deciding side first, then the surest; the same words once.
function evidenceOf(claim, sentence) {
  const items = claim.evidence.map((place) => sentence.evidence[place]);
  const said = new Map(items.map((item) => [`${item.stance} ${item.excerpt || item.id}`, item]).reverse());
  return [...said.values()].sort((a, b) => (b.stance === claim.verdict) - (a.stance === claim.verdict) || b.score - a.score);
}

const disputed = () => el('span', { class: 'disputed' }, '⚖ sources disagree');

// "supported 0.93"; nothing decided is nothing to be sure of.
const outcomeOf = (claim) => {
  const { mark, name } = VERDICTS[verdictOf(claim.verdict)];
  return `${mark} ${name}${claim.score > 0 ? ` ${number(claim.score)}` : ''}`;
};

function claimWithEvidence(claim, sentence, sources) {
  const items = evidenceOf(claim, sentence);
  return el('div', { class: 'claim-group' }, el('div', { class: `claim v-${verdictOf(claim.verdict)}` }, el('div', null, claim.text),
      el('div', { class: 'claim-verdict' }, outcomeOf(claim), claim.conflicting ? [' ', disputed()] : null),
      claim.reason ? el('div', { class: 'note' }, claim.reason) : null),
    items.length ? folded(items.map((item) => proof(item, sources))) : el('p', { class: 'note' }, 'nothing found that decides it'));
}

function drawSentence(text, index) {
  const body = byId('evidence-body');
  const sentence = text.sentences[index];
  if (!sentence) {
    body.replaceChildren(el('p', { class: 'note' }, 'The text holds no sentences.'));
    return;
  }
  byId('evidence-title').textContent = `Sentence ${text.first + index + 1}`;
  body.replaceChildren(
    badge(sentence.verdict),
    el('p', { class: 'quote' }, sentence.text),
    sentence.reason ? el('p', { class: 'note' }, sentence.reason) : '',
    ...sentence.notes.map((note) => el('p', { class: 'note' }, `⚠ ${note}`)),
    ...section(sentence.claims.length === 1 ? 'Claim' : 'Claims',
      sentence.claims.map((claim) => claimWithEvidence(claim, sentence, text.sources))),
  );
}

function sourceOf(item, sources) {
  const passage = sources[item.id] ?? {};
  return el('div', { class: 'origin' }, [...new Set([passage.title, passage.source])].filter(Boolean).join(' · ') || item.id);
}

function claimRow(claim, index, text, page) {
  const sentence = text.sentences[index];
  const verdict = verdictOf(claim.verdict);
  const items = evidenceOf(claim, sentence).slice(0, claim.conflicting ? MOST_PIECES : 1);
  const choose = () => page.jump(index);
  return el('tr', { class: `claim-row v-${verdict}`, 'data-verdict': verdict, 'data-disputed': claim.conflicting, 'data-sentence': index, onclick: choose },
    el('td', null, el('button', { type: 'button', class: 'claim-link', onclick: (event) => { event.stopPropagation(); choose(); } }, claim.text)),
    el('td', { class: 'claim-verdict' }, outcomeOf(claim), claim.conflicting ? disputed() : null,
      claim.reason ? el('div', { class: 'note' }, claim.reason) : null),
    el('td', { class: 'claim-proof' }, items.map((item) => [
      el('div', null, claim.conflicting ? `${VERDICTS[verdictOf(item.stance)].mark} ` : null, el('q', null, clip(item.excerpt || text.sources[item.id]?.text, 220))),
      sourceOf(item, text.sources)])));
}

function drawClaims(text, page) {
  const rows = text.sentences.flatMap((sentence, index) => sentence.claims.map((claim) => claimRow(claim, index, text, page)));
  byId('claim-rows').replaceChildren(...rows);
  byId('no-claims').hidden = rows.length > 0;
  document.querySelector('.claims').hidden = !rows.length;
  const kinds = Object.entries(VERDICTS).map(([verdict, { name }]) => [name, rows.filter((row) => row.dataset.verdict === verdict)]);
  kinds.push(['disputed', rows.filter((row) => 'disputed' in row.dataset)]);
  const buttons = [['all', rows], ...kinds].filter(([, chosen]) => chosen.length).map(([name, chosen]) => el('button', {
    type: 'button', 'aria-pressed': String(name === 'all'),
    onclick: (event) => {
      for (const row of rows) row.hidden = !chosen.includes(row);
      for (const button of buttons) button.setAttribute('aria-pressed', String(button === event.currentTarget));
    },
  }, `${name} ${chosen.length}`));
  byId('filters').replaceChildren(...(buttons.length > 2 ? buttons : []));
}
