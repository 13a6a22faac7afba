// One memory: what it says, how far it is believed, and every change with its reason and evidence.
const data = JSON.parse(byId('data').textContent);
const MOST_SHOWN = 100;
const REASONS = new Map([
  ['added', 'written down'],
  ['feedback', 'somebody judged it'],
  ['contradicted', 'another memory contradicts it'],
  ['reviewed', 'reviewed by trusted passages'],
  ['revalidated', 'checked again for a question'],
  ['verified', 'checked with a text that used it'],
]);
const reasonOf = (revision) => REASONS.get(revision.reason) ?? revision.reason;

const unquoted = (text) => {
  try { return decodeURIComponent(text); } catch { return text; }
};

// A piece of evidence in words; a memory that contradicts this one leads to where it is shown.
function evidenceNode(piece) {
  const place = data.contradictions.findIndex((other) => other.id === piece);
  if (place >= 0) return el('a', { href: `#against-${place}` }, `memory ${clip(piece, 40)}`);
  const said = /^feedback:([^:]*):([^:]*):(correct|incorrect)$/.exec(piece);
  if (said) return `${unquoted(said[2]) || 'somebody'} (${unquoted(said[1])}) said that it is ${said[3]}`;
  return piece.startsWith('passage:') ? `passage ${piece.slice(8)}` : piece;
}

function change(revision) {
  const { veracity_before: before, veracity_after: after } = revision;
  const way = after > before ? ['supported', '▲'] : after < before ? ['refuted', '▼'] : ['not_checked', '='];
  return el('span', { class: `change v-${way[0]}` },
    el('span', { 'aria-hidden': 'true' }, `${way[1]} `), revision.number === 1 ? number(after) : `${number(before)} → ${number(after)}`);
}

function revisionNode(revision, index) {
  return el('li', { class: 'revision', id: `revision-${revision.number}`, tabindex: '-1', 'data-index': index },
    el('div', { class: 'revision-head' },
      el('span', { class: 'revision-number' }, `${revision.number}.`),
      el('span', { class: 'revision-reason' }, reasonOf(revision)),
      el('span', { class: 'revision-time' }, moment(revision.at))),
    el('div', { class: 'revision-scores' }, 'veracity ', change(revision),
      el('span', { class: 'note' }, typeof revision.uncertainty === 'number' ? ` · uncertainty ${number(revision.uncertainty)}` : ' · uncertainty not written down')),
    revision.evidence.length ? el('ul', { class: 'revision-evidence' }, revision.evidence.map((piece) => el('li', null, evidenceNode(piece)))) : null,
    revision.content_before ? el('p', { class: 'wording v-refuted' }, 'said before: ', el('del', null, revision.content_before)) : null);
}

function meter(name, value, hint) {
  const part = el('div', { class: `meter-fill fill-${name}` });
  part.style.width = `${Math.min(Math.max(value, 0), 1) * 100}%`;
  return el('div', { class: 'meter' }, el('span', { class: 'meter-name' }, name), el('span', { class: 'meter-track' }, part),
    el('b', { class: 'meter-value' }, number(value)), el('span', { class: 'note' }, hint));
}

const believed = (v) => (v >= 0.8 ? 'most likely true' : v >= 0.6 ? 'rather true' : v > 0.4 ? 'hardly anything is known' : v > 0.2 ? 'rather false' : 'most likely false');
const known = (u) => (u > 0.6 ? 'evidence should be sought before it is used' : u > 0.3 ? 'some doubt is left' : 'little doubt');

const sourceOf = ({ kind, id, reliability }) => `${id ? `${kind} ${id}` : kind}, reliability ${number(reliability)}`;
const ownerOf = ({ user, agent }) => [user && `user ${user}`, agent && `agent ${agent}`].filter(Boolean).join(', ') || 'shared by everybody';

function contradictionNode(other, place, revisions) {
  const found = revisions.find((revision) => revision.evidence.includes(other.id));
  const where = found ? el('a', { href: `#revision-${found.number}`, onclick: () => page.open(revisions.indexOf(found)) }, `revision ${found.number}`) : null;
  const head = other.memory
    ? [el('div', { class: 'against-content' }, other.memory.content),
      el('div', { class: 'origin' }, `veracity ${number(other.memory.veracity)} · uncertainty ${number(other.memory.uncertainty)} · ${sourceOf(other.memory.source)} · ${ownerOf(other.memory.scope)} · ${moment(other.memory.created_at)}`)]
    : [el('div', { class: 'against-content note' }, 'No longer there, or not in sight of this one.')];
  return el('div', { class: 'claim v-refuted', id: `against-${place}`, tabindex: '-1' }, head,
    el('div', { class: 'origin' }, other.id, where ? [' · marked in ', where] : null));
}

class MemoryPage {
  constructor({ memory, revisions, contradictions }) {
    this.memory = memory;
    this.revisions = revisions;
    this.contradictions = contradictions;
  }

  draw() {
    const { memory } = this;
    byId('page').hidden = false;
    byId('content').textContent = memory.content;
    const chips = [memory.kind, ownerOf(memory.scope), sourceOf(memory.source), memory.id];
    byId('chips').replaceChildren(...chips.filter(Boolean).map((chip) => el('span', { class: 'chip' }, clip(chip, 120))));
    byId('meters').replaceChildren(meter('veracity', memory.veracity, believed(memory.veracity)), meter('uncertainty', memory.uncertainty, known(memory.uncertainty)));
    const facts = [['written down', moment(memory.created_at)], ['last changed', moment(memory.updated_at)],
      ...(memory.confirmed_at ? [['last confirmed', moment(memory.confirmed_at)]] : []),
      ['recalled', count(memory.recall_count, 'time')], ['said to be correct', count(memory.correct_count, 'time')],
      ['said to be incorrect', count(memory.incorrect_count, 'time')],
      ...Object.entries(memory.metadata).map(([name, value]) => [clip(name, 60), clip(value, 300)])];
    byId('facts').replaceChildren(...facts.map(([name, value]) => el('div', null, el('dt', null, name), el('dd', null, value))));
    byId('against').hidden = !this.contradictions.length;
    byId('contradictions').replaceChildren(...this.contradictions.map((other, place) => contradictionNode(other, place, this.revisions)));
    this.list(MOST_SHOWN);
    drawChart(this);
  }

  // The newest first; of a long history the rest when it is asked for.
  list(most) {
    const newest = this.revisions.map(revisionNode).reverse();
    byId('revisions').replaceChildren(...newest.slice(0, most));
    byId('history-note').textContent = `${count(this.revisions.length, 'revision')}, the newest first; none is ever changed or lost. Times are UTC.`;
    const more = byId('show-all');
    more.hidden = newest.length <= most;
    more.textContent = `Show ${newest.length - most} older ones`;
    more.onclick = () => this.list(Infinity);
  }

  mark(index) {
    for (const node of document.querySelectorAll('#revisions .revision, #chart .moment')) {
      node.classList.toggle('chosen', Number(node.dataset.index) === index);
    }
  }

  // From the chart to the entry in the history.
  open(index) {
    const id = `revision-${this.revisions[index].number}`;
    if (!byId(id)) this.list(Infinity);
    this.mark(index);
    byId(id).scrollIntoView({ block: 'center' });
    byId(id).focus({ preventScroll: true });
    hideTip();
  }

  key(event, index) {
    const last = this.revisions.length - 1;
    const places = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: last };
    if (event.key === 'Enter' || event.key === ' ') this.open(index);
    else if (event.key in places) this.focus(Math.min(Math.max(places[event.key], 0), last));
    else return;
    event.preventDefault();
  }

  focus(index) {
    for (const node of document.querySelectorAll('#chart .moment')) {
      const chosen = Number(node.dataset.index) === index;
      node.setAttribute('tabindex', chosen ? '0' : '-1');
      if (chosen) node.focus();
    }
  }
}

const page = new MemoryPage(data);
page.draw();
addEventListener('keydown', (event) => { if (event.key === 'Escape') { hideTip(); page.mark(-1); } });
let width = innerWidth;
addEventListener('resize', () => {
  if (innerWidth === width) return;
  width = innerWidth;
  drawChart(page);
});
