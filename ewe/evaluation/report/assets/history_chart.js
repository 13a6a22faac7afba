// Veracity and uncertainty over the revisions of one memory.
const CHART = { height: 250, left: 34, right: 18, top: 12, bottom: 40, least: 12 };

const day = (at) => {
  try { return new Date(at * 1000).toISOString().slice(0, 10); } catch { return `${at} s`; }
};
const moment = (at) => {
  try { return new Date(at * 1000).toISOString().replace('T', ' ').slice(0, 19); } catch { return `${at} s`; }
};

// A line that stays where it is until the next revision moves it; it breaks off where nothing was written down.
function steps(values, x, y) {
  let path = '';
  values.forEach((value, index) => {
    if (typeof value !== 'number') return;
    path += typeof values[index - 1] === 'number' ? `H${x(index)}V${y(value)}` : `M${x(index)} ${y(value)}`;
  });
  return path;
}

function grid(x, y, revisions, right) {
  const lines = [0, 0.25, 0.5, 0.75, 1].flatMap((value) => [
    svg('line', { class: value === 0.5 ? 'grid middle' : 'grid', x1: CHART.left, x2: right, y1: y(value), y2: y(value) }),
    value === 0.25 || value === 0.75 ? null
      : svg('text', { x: CHART.left - 7, y: y(value) + 4, 'text-anchor': 'end' }, String(value))]);
  const last = revisions.length - 1;
  const every = Math.max(1, Math.ceil(30 / Math.max(x(1) - x(0), 1)));
  const ticks = revisions.map((revision, index) => (index % every ? null
    : svg('text', { x: x(index), y: CHART.height - 23, 'text-anchor': 'middle' }, String(revision.number))));
  const ends = [svg('text', { class: 'date', x: CHART.left, y: CHART.height - 6 }, day(revisions[0].at)),
    last ? svg('text', { class: 'date', x: right, y: CHART.height - 6, 'text-anchor': 'end' }, day(revisions[last].at)) : null];
  return [lines, ticks, ends];
}

// Everything of one revision: its marks, and a column that can be pointed at and tabbed to.
function chartStep(revision, index, x, y, width, page) {
  const told = `${revision.number}. ${moment(revision.at)}, ${reasonOf(revision)}`;
  const scores = `veracity ${number(revision.veracity_after)}, uncertainty ${number(revision.uncertainty)}`;
  const tips = tipped(() => [el('b', null, told), el('p', null, scores)]);
  const u = revision.uncertainty;
  return svg('g', {
    class: `moment reason-${revision.reason === 'contradicted' ? 'contradicted' : 'other'}`, role: 'button', 'data-index': index,
    tabindex: index === page.revisions.length - 1 ? '0' : '-1', 'aria-label': `Revision ${told}: ${scores}`,
    ...tips,
    onfocus: (event) => { tips.onfocus(event); page.mark(index); },
    onclick: () => page.open(index),
    onkeydown: (event) => page.key(event, index),
  }, svg('rect', { class: 'column', x: x(index) - width / 2, y: CHART.top - 8, width, height: CHART.height - CHART.top - CHART.bottom + 16, rx: 4 }),
  typeof u === 'number' ? svg('rect', { class: 'mark-uncertainty', x: x(index) - 3.5, y: y(u) - 3.5, width: 7, height: 7 }) : null,
  svg('circle', { class: 'mark-veracity', cx: x(index), cy: y(revision.veracity_after), r: 4.5 }));
}

function drawChart(page) {
  const { revisions } = page;
  const host = byId('chart');
  const outer = Math.max(host.clientWidth, CHART.left + CHART.right + CHART.least * revisions.length, 260);
  const right = outer - CHART.right;
  const room = right - CHART.left - 16;
  const x = (index) => CHART.left + 8 + (revisions.length === 1 ? room / 2 : (index / (revisions.length - 1)) * room);
  const y = (value) => CHART.top + (1 - value) * (CHART.height - CHART.top - CHART.bottom);
  const width = Math.min(44, revisions.length === 1 ? 44 : x(1) - x(0));
  host.replaceChildren(svg('svg', { width: outer, height: CHART.height, role: 'group', 'aria-label': 'Veracity and uncertainty after each revision' },
    grid(x, y, revisions, right),
    svg('path', { class: 'line-uncertainty', d: steps(revisions.map((revision) => revision.uncertainty), x, y) }),
    svg('path', { class: 'line-veracity', d: steps(revisions.map((revision) => revision.veracity_after), x, y) }),
    revisions.map((revision, index) => chartStep(revision, index, x, y, width, page))));
  host.scrollLeft = host.scrollWidth;
}
