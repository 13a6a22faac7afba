// The memory lanes over the written tokens, with the sentences above them on the same axis.
const ROW = 24;
const STRIP = 26;

function niceStep(length, room) {
  const rough = length / Math.max(room / 90, 1);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return Math.max([1, 2, 5, 10].find((factor) => factor * power >= rough) * power, 1);
}

const reads = (sentence, id) => sentence.source_ids.includes(id) || sentence.evidence.some((item) => item.id === id)
  || sentence.removed.some((wording) => wording.evidence.some((item) => item.id === id));

function unitTip(unit) {
  const passage = unit.passage ?? {};
  const facts = [`weight ${number(unit.weight)}`, count(unit.num_tokens ?? 0, 'token')];
  if (passage.source) facts.push(passage.source);
  if (typeof passage.veracity === 'number') facts.push(`veracity ${number(passage.veracity)}`);
  if (unit.cached) facts.push('from the unit cache');
  if (unit.was_cut) facts.push('cut to the unit size');
  const until = unit.stays ? 'to the end' : `to token ${unit.to}`;
  return [el('b', null, label(passage)), el('p', null, clip(passage.text, 320)),
    el('small', null, `${unit.lane} · from token ${unit.from} ${until}`, el('br'), facts.join(' · '))];
}

function fits(text, width) {
  return width < 30 ? '' : clip(text, Math.floor((width - 10) / 6.4));
}

function drawUnit(unit, top, scale, page) {
  const x = scale(unit.from);
  const width = Math.max(scale(unit.to) - x - 1, 4);
  const y = top + unit.row * ROW + 2;
  const handlers = tipped(() => unitTip(unit));
  return svg('g', {
    class: `unit lane-${unit.lane}`, tabindex: '0', role: 'img', 'data-passage': unit.passage?.id,
    'aria-label': `${unit.lane} unit: ${label(unit.passage)}, from token ${unit.from} to ${unit.to}, weight ${number(unit.weight)}`,
    ...handlers,
    onmouseenter: (event) => { handlers.onmouseenter(event); page.linkSentences(unit.passage?.id); },
    onmouseleave: () => { hideTip(); page.linkSentences(null); },
  }, svg('rect', { x, y, width, height: ROW - 4, rx: 4 }),
  svg('text', { x: x + 6, y: y + 14 }, fits(label(unit.passage), width)));
}

function drawRuns(generation, scale, page) {
  const runs = generation.sentences.flatMap((sentence, index) => sentence.runs.map(([from, to]) => {
    const verdict = verdictOf(sentence.verdict);
    const width = Math.max(scale(to) - scale(from) - 1, 3);
    return svg('g', {
      class: `run v-${verdict}`, 'data-sentence': index,
      onmouseenter: (event) => { page.preview(index); showTip(event.currentTarget, el('b', null, `Sentence ${index + 1}: ${VERDICTS[verdict].name}`), el('p', null, clip(sentence.text, 300))); },
      onmouseleave: () => { page.preview(null); hideTip(); },
      onclick: () => page.pin(index),
    }, svg('rect', { x: scale(from), y: 2, width, height: STRIP - 6, rx: 4 }),
    svg('text', { x: scale(from) + 6, y: 16 }, fits(`${index + 1} ${VERDICTS[verdict].mark}`, width)));
  }));
  const withdrawn = generation.timeline.removed.map((item) => {
    const width = Math.max(scale(item.to) - scale(item.from) - 1, 3);
    return svg('g', {
      class: 'run withdrawn', tabindex: '0', role: 'img', 'aria-label': `Withdrawn: ${item.text}`,
      ...tipped(() => [el('b', null, `Withdrawn, ${count(item.to - item.from, 'token')}`), el('p', null, el('del', null, clip(item.text, 300)))]),
    }, svg('rect', { x: scale(item.from), y: 2, width, height: STRIP - 6, rx: 4 }));
  });
  return [...withdrawn, ...runs];
}

function drawTicks(length, scale, room, height) {
  const step = niceStep(length, room);
  const ticks = [];
  for (let token = 0; token <= length; token += step) {
    ticks.push(svg('line', { class: 'grid', x1: scale(token), x2: scale(token), y1: 0, y2: height }),
      svg('text', { x: scale(token), y: height + 15, 'text-anchor': 'middle' }, String(token)));
  }
  return ticks;
}

function drawTimeline(generation, page) {
  const { length, lanes } = generation.timeline;
  const host = byId('timeline');
  const gutter = 96;
  const outer = Math.max(host.clientWidth, 560);
  const room = outer - gutter - 22;
  const scale = (token) => gutter + (token / Math.max(length, 1)) * room;
  const groups = [];
  let top = STRIP + 14;
  groups.push(svg('text', { class: 'lane-name', x: 0, y: 17 }, 'text'));
  for (const lane of lanes) {
    groups.push(svg('text', { class: 'lane-name', x: 0, y: top + 17 }, lane.lane));
    if (!lane.rows) groups.push(svg('text', { x: gutter + 6, y: top + 17 }, generation.timeline.empty ?? 'stayed empty'));
    groups.push(...lane.units.map((unit) => drawUnit(unit, top, scale, page)));
    top += Math.max(lane.rows, 1) * ROW + 12;
  }
  const hatch = svg('pattern', { id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    svg('line', { x1: 0, y1: 0, x2: 0, y2: 6 }));
  host.replaceChildren(svg('svg', { width: outer, height: top + 18, role: 'group', 'aria-label': 'Memory lanes over written tokens' },
    svg('defs', null, hatch), drawTicks(length, scale, room, top - 6), drawRuns(generation, scale, page), groups));
}
