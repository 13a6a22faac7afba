// Elements and text nodes; nothing here or elsewhere turns data into markup.
const VERDICTS = {
  supported: { mark: '✓', name: 'supported' },
  refuted: { mark: '✗', name: 'refuted' },
  inconclusive: { mark: '?', name: 'inconclusive' },
  not_checked: { mark: '–', name: 'not checked' },
};
const byId = (id) => document.getElementById(id);
const verdictOf = (value) => (value in VERDICTS ? value : 'not_checked');

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ''));
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

const clip = (text, length) => {
  const characters = Array.from(String(text ?? ''));
  return characters.length > length ? characters.slice(0, Math.max(length - 1, 0)).join('') + '…' : characters.join('');
};
const seconds = (value) => {
  if (typeof value !== 'number') return '–';
  return value < 1 ? `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms` : `${value.toFixed(2)} s`;
};
const number = (value, digits = 2) => (typeof value === 'number' ? value.toFixed(digits) : '–');
const count = (value, one, many = `${one}s`) => `${value} ${value === 1 ? one : many}`;
// What passages are called on the page. Several of one title get numbers, in the order in which they came.
let names = new Map();
const titleOf = (passage) => passage?.title || clip(passage?.text, 50) || passage?.id || 'a passage';
const label = (passage) => names.get(passage?.id) ?? titleOf(passage);
function tellApart(passages) {
  const ids = new Map();
  for (const passage of passages.filter(Boolean)) {
    const title = titleOf(passage);
    ids.set(title, (ids.get(title) ?? new Set()).add(passage.id));
  }
  names = new Map([...ids].flatMap(([title, same]) =>
    [...same].map((id, index) => [id, same.size > 1 ? `${title} (${index + 1})` : title])));
}
const passagesOf = (text) => [
  ...(text.timeline?.lanes ?? []).flatMap((lane) => lane.units.map((unit) => unit.passage)), ...Object.values(text.sources ?? {})];

function badge(verdict, extra = '') {
  const { mark, name } = VERDICTS[verdictOf(verdict)];
  return el('span', { class: `badge v-${verdictOf(verdict)}` },
    el('span', { 'aria-hidden': 'true' }, mark), name + extra);
}

// A link only for web addresses: "javascript:" and the like stay text.
function link(url, text) {
  return /^https?:\/\//i.test(url ?? '') ? el('a', { href: url, rel: 'noopener noreferrer', target: '_blank' }, text) : text;
}

const tip = byId('tip');
function showTip(target, ...children) {
  tip.replaceChildren(...children);
  tip.hidden = false;
  const box = target.getBoundingClientRect();
  const left = Math.min(Math.max(box.left, 8), innerWidth - tip.offsetWidth - 8);
  const below = box.bottom + tip.offsetHeight + 12 < innerHeight || box.top < tip.offsetHeight + 12;
  tip.style.left = `${Math.max(left, 8) + scrollX}px`;
  tip.style.top = `${(below ? box.bottom + 8 : box.top - tip.offsetHeight - 8) + scrollY}px`;
}
const hideTip = () => { tip.hidden = true; };
const tipped = (content) => ({
  onmouseenter: (event) => showTip(event.currentTarget, ...content()),
  onmouseleave: hideTip,
  onfocus: (event) => showTip(event.currentTarget, ...content()),
  onblur: hideTip,
});
