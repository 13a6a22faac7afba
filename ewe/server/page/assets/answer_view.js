// The answer while it is being written: sentences that stand, then what may still be taken back.
class AnswerView {
  constructor(page) {
    this.page = page;
    this.tail = el('span', { class: 'tail' });
  }

  open(run) {
    this.run = run;
    this.shown = 0;
    this.position = 0;
    byId('prompt').textContent = run.prompt;
    byId('answer-title').textContent = run.isCheck ? 'Checked text' : 'Answer';
    byId('legend').replaceChildren();
    byId('text').replaceChildren(this.tail);
    this.update();
  }

  // Adds the sentences that have become final, and draws the tail anew.
  update() {
    const { run, tail } = this;
    for (; this.shown < run.sentences.length; this.shown += 1) {
      const sentence = run.sentences[this.shown];
      tail.before(...leftOut(sentence.left_out), this.between(sentence.start));
      if (sentence.removed.length) tail.before(...removedWordings(sentence));
      const node = sentenceNode(sentence, this.shown, sentence.text, this.page);
      if (!run.done) node.classList.add('settling');
      tail.before(node);
      this.position = sentence.end;
    }
    tail.replaceChildren(...(run.done ? this.ending() : this.openEnd()));
    if (run.sentences.length) drawLegend(run);
  }

  between(start) {
    const text = this.run.chars.slice(this.position, start).join('');
    return this.position ? text : text.trimStart();
  }

  openEnd() {
    const { run } = this;
    const last = run.withdrawn.at(-1);
    const plain = run.chars.slice(this.position, Math.max(run.final, this.position)).join('');
    const first = !this.position;
    return [
      last ? el('del', { class: 'struck' }, first ? '' : ' ', (last.text + last.later).trim(), run.withdrawn.length > 1 ? el('span', { class: 'times' }, ` ×${run.withdrawn.length}`) : null) : null,
      last ? ' ' : null,
      first ? plain.trimStart() : plain,
      el('span', { class: 'draft' }, this.provisional(first && !plain)),
      el('span', { class: 'caret', 'aria-hidden': 'true' }),
    ].filter((node) => node !== null);
  }

  // What may be taken back, with a sign after each sentence that is being checked.
  provisional(opens) {
    const { run } = this;
    let at = Math.max(run.final, this.position);
    while (opens && run.chars[at]?.trim() === '') at += 1;
    const nodes = run.checking.filter((check) => check.start >= at).map(({ start, end }) => {
      const before = run.chars.slice(at, start).join('');
      at = end;
      return [before, el('span', { class: 'checking' }, run.chars.slice(start, end).join(''), el('span', { class: 'checking-mark', 'aria-hidden': 'true' }, '⋯'))];
    });
    return [nodes, run.chars.slice(at).join('')];
  }

  ending() {
    const { run } = this;
    const rest = run.chars.slice(this.position).join('').trimEnd();
    const nodes = [rest, ...leftOut(run.withdrawn)];
    if (!run.text.trim()) nodes.push(emptyNote(run, run.withdrawn.length > 0));
    return nodes.filter(Boolean);
  }
}

// Wordings that were refuted every time, so that nothing of them stands.
function leftOut(wordings) {
  if (!wordings.length) return [];
  const [button, struck] = removedWordings({ removed: wordings });
  button.textContent = `✗ ${wordings.length} left out`;
  button.setAttribute('aria-label', `Show ${count(wordings.length, 'wording')} that ${wordings.length === 1 ? 'was' : 'were'} refuted and left out`);
  return [button, struck];
}

// The panel while nothing is chosen and the text is being written: what was checked last.
function drawLatest(run) {
  const check = run.checks.at(-1);
  byId('evidence-title').textContent = check ? `Checked last: sentence ${check.number}` : 'Evidence';
  if (!check) {
    byId('evidence-body').replaceChildren(el('p', { class: 'note' }, 'The first finished sentence is checked here.'), ...inMemory(run));
    return;
  }
  byId('evidence-body').replaceChildren(badge(check.verdict), el('p', { class: 'quote' }, check.text),
    check.error ? el('p', { class: 'note' }, check.error) : '',
    ...section('Claims', (check.claims ?? []).map(claimNode)),
    ...section('Evidence', folded((check.evidence ?? []).map((item) => proof(item, run.sources)))), ...inMemory(run));
}

const inMemory = (run) => section('In memory now', run.stays.filter((unit) => unit.stays).map((unit) =>
  el('div', { class: `held lane-${unit.lane}` }, label(unit.passage), el('span', { class: 'origin' }, ` ${unit.passage?.source ?? ''}`))));
