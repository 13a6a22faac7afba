// The memory lanes over the written tokens, with the sentences above them on the same axis.
// Wide: lanes have their names beside them. Narrow: above them, bars are as high as a fingertip, and units are numbered
// and listed below.
const WIDE = { gutter: 96, above: 0, row: 24, least: 4 };
const NARROW = { gutter: 8, above: 20, row: 34, least: 24 };
const WIDE_FROM = 560;

function niceStep(length, room) {
  const rough = length / Math.max(room / 90, 1);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return Math.max([1, 2, 5, 10].find((factor) => factor * power >= rough) * power, 1);
}

const reads = (sentence, id) => sentence.source_ids.includes(id) || sentence.evidence.some((item) => item.id === id)
  || sentence.removed.some((wording) => wording.evidence.some((item) => item.id === id));

function unitFacts(unit) {
  const passage = unit.passage ?? {};
  const facts = [`weight ${number(unit.weight)}`, count(unit.num_tokens ?? 0, 'token')];
  if (passage.source) facts.push(passage.source);
  if (typeof passage.veracity === 'number') facts.push(`veracity ${number(passage.veracity)}`);
  if (unit.cached) facts.push('from the unit cache');
  if (unit.was_cut) facts.push('cut to the unit size');
  return facts.join(' · ');
}

const stayOf = (unit) => `from token ${unit.from} ${unit.stays ? 'to the end' : `to token ${unit.to}`}`;

const unitTip = (unit) => [el('b', null, label(unit.passage)), el('p', null, clip(unit.passage?.text, 320)),
  el('small', null, `${unit.lane} · ${stayOf(unit)}`, el('br'), unitFacts(unit))];

const fits = (text, width) => (width < 30 ? '' : clip(text, Math.floor((width - 12) / 6.8)));

// A bar with its text. What can be touched is at least as wide as a fingertip where the layout asks for it.
function barOf(place, from, to, y, text, short = '') {
  const { layout, scale } = place;
  const x = scale(from);
  const width = Math.max(scale(to) - x - 1, 4);
  const height = layout.row - 4;
  return [
    width < layout.least ? svg('rect', { class: 'touch', x, y, width: layout.least, height }) : null,
    svg('rect', { class: 'bar-body', x, y, width, height, rx: 4 }),
    svg('text', { x: x + Math.min(6, width / 4), y: y + height / 2 + 4 }, fits(text, width) || (width >= 12 ? short : '')),
  ];
}

function drawUnit(unit, top, place, page) {
  const handlers = tipped(() => unitTip(unit));
  const nth = place.numbers?.get(unit.passage?.id);
  const name = nth ? `${nth} ${titleOf(unit.passage)}` : label(unit.passage);
  return svg('g', {
    class: `unit lane-${unit.lane}`, tabindex: '0', role: 'img', 'data-passage': unit.passage?.id,
    'aria-label': `${unit.lane} unit: ${label(unit.passage)}, from token ${unit.from} to ${unit.to}, weight ${number(unit.weight)}`,
    ...handlers,
    onmouseenter: (event) => { handlers.onmouseenter(event); page.linkSentences(unit.passage?.id); },
    onmouseleave: () => { hideTip(); page.linkSentences(null); },
  }, barOf(place, unit.from, unit.to, top + unit.row * place.layout.row + 2, name, nth ? String(nth) : ''));
}

function drawRuns(generation, top, place, page) {
  const runs = generation.sentences.flatMap((sentence, index) => sentence.runs.map(([from, to]) => {
    const verdict = verdictOf(sentence.verdict);
    const { mark, name } = VERDICTS[verdict];
    return svg('g', {
      class: `run v-${verdict}`, 'data-sentence': index,
      onmouseenter: (event) => { page.preview(index); showTip(event.currentTarget, el('b', null, `Sentence ${index + 1}: ${name}`), el('p', null, clip(sentence.text, 300))); },
      onmouseleave: () => { page.preview(null); hideTip(); },
      onclick: () => page.pin(index),
    }, barOf(place, from, to, top + 2, `${index + 1} ${mark}`, mark));
  }));
  const withdrawn = generation.timeline.removed.map((item) => svg('g', {
    class: 'run withdrawn', tabindex: '0', role: 'img', 'aria-label': `Withdrawn: ${item.text}`,
    ...tipped(() => [el('b', null, `Withdrawn, ${count(item.to - item.from, 'token')}`), el('p', null, el('del', null, clip(item.text, 300)))]),
  }, barOf(place, item.from, item.to, top + 2, '')));
  return [...withdrawn, ...runs];
}

function drawTicks(length, { scale, room }, height) {
  const step = niceStep(length, room);
  const ticks = [];
  for (let token = 0; token <= length; token += step) {
    ticks.push(svg('line', { class: 'grid', x1: scale(token), x2: scale(token), y1: 0, y2: height }),
      svg('text', { x: scale(token), y: height + 15, 'text-anchor': 'middle' }, String(token)));
  }
  return ticks;
}

// The units by their numbers: what no bar on a narrow page has room for.
function drawUnitList(units, numbers, page) {
  return el('ol', { class: 'unit-list', 'aria-label': 'Units' }, [...numbers].map(([id, nth]) => {
    const stays = units.filter((unit) => unit.passage?.id === id);
    const { passage, lane } = stays[0];
    return el('li', { class: `lane-${lane}` }, el('details', {
      ontoggle: (event) => page.linkSentences(event.currentTarget.open ? id : null),
    }, el('summary', null, el('b', null, `${nth} `), label(passage),
      el('small', null, clip(passage?.text, 60), el('br'), stays.map((unit) => `${unit.lane}, ${stayOf(unit)}`).join('; '))),
    el('p', null, passage?.text), el('p', { class: 'origin' }, unitFacts(stays[0]))));
  }));
}

function drawTimeline(generation, page) {
  const { length, lanes } = generation.timeline;
  const host = byId('timeline');
  const layout = host.clientWidth < WIDE_FROM ? NARROW : WIDE;
  const units = lanes.flatMap((lane) => lane.units);
  const ids = layout === NARROW ? [...new Set(units.map((unit) => unit.passage?.id))] : [];
  const room = Math.max(host.clientWidth - layout.gutter - 22, 60);
  const place = {
    layout, room, scale: (token) => layout.gutter + (token / Math.max(length, 1)) * room,
    numbers: layout === NARROW ? new Map(ids.map((id, index) => [id, index + 1])) : null,
  };
  const groups = [];
  let top = 0;
  const lane = (name, rows, draw) => {
    groups.push(svg('text', { class: 'lane-name', x: 0, y: top + (layout.above ? 13 : 17) }, name));
    top += layout.above;
    groups.push(draw());
    top += rows * layout.row + 14;
  };
  lane('text', 1, () => drawRuns(generation, top, place, page));
  for (const { lane: name, rows, units: held } of lanes) {
    lane(name, Math.max(rows, 1), () => (rows ? held.map((unit) => drawUnit(unit, top, place, page))
      : svg('text', { x: layout.gutter + 6, y: top + 17 }, generation.timeline.empty ?? 'stayed empty')));
  }
  const hatch = svg('pattern', { id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    svg('line', { x1: 0, y1: 0, x2: 0, y2: 6 }));
  const chart = svg('svg', { width: host.clientWidth, height: top + 16, role: 'group', 'aria-label': 'Memory lanes over written tokens' },
    svg('defs', null, hatch), drawTicks(length, place, top - 8), groups);
  host.replaceChildren(chart, ...(ids.length ? [drawUnitList(units, place.numbers, page)] : []));
}
