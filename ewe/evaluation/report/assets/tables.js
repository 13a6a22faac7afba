// Attention shares, statistics, settings and the list of events.
const LEAST_SHARE = 0.01;

function bar(name, source, share, hint, rest) {
  const part = el('div', { class: 'bar-fill' });
  part.style.width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  return el('div', { class: rest ? 'bar rest' : 'bar' }, el('span', { class: 'bar-name', title: hint }, name,
      source ? el('span', { class: 'bar-source' }, ` ${source}`) : null),
    el('span', { class: 'bar-track' }, part), el('span', { class: 'bar-value' }, `${(share * 100).toFixed(1)}%`));
}

function drawShares(sentence, index, sources) {
  const shares = Object.entries(sentence.attention).filter(([, share]) => typeof share === 'number');
  if (!shares.length) return null;
  shares.sort((a, b) => b[1] - a[1]);
  const shown = shares.filter(([, share]) => share >= LEAST_SHARE);
  const minor = shares.slice(shown.length);
  const sum = (items) => items.reduce((total, [, share]) => total + share, 0);
  return el('div', { class: 'share' }, el('p', { class: 'share-title' }, `${index + 1}. ${sentence.text}`),
    shown.map(([id, share]) => {
      const passage = sources[id] ?? { id };
      return bar(label(passage), passage.source, share, passage.text ?? '', false);
    }),
    minor.length ? bar(count(minor.length, 'other unit'), '', sum(minor), 'each under 1%', true) : null,
    bar('prompt and text so far', '', 1 - sum(shares), 'what went to no unit', true));
}

function drawAttention(generation) {
  const cards = generation.sentences
    .map((sentence, index) => drawShares(sentence, index, generation.sources)).filter(Boolean);
  byId('attention').hidden = !cards.length;
  byId('shares').replaceChildren(...cards);
}

const STATS = {
  sentences: 'sentences', rewrites: 'rewrites', prompt_tokens: 'prompt tokens', tokens_kept: 'tokens kept',
  tokens_discarded: 'tokens withdrawn', retrievals: 'retrievals', verifications: 'verifications', refreshes: 'refreshes',
  units_loaded: 'units loaded', units_encoded: 'units encoded',
  unit_tokens_encoded: 'unit tokens encoded', passes: 'forward passes', decode_s: 'decode', retrieval_wait_s: 'waited for retrieval',
  verification_wait_s: 'waited for verification', total_s: 'total',
};
const CLOCK = { decode_s: 'decode', retrieval_wait_s: 'retrieval', verification_wait_s: 'verification' };
const row = (name, value, part) => el('div', null, el('dt', part ? { class: `dot ${part}` } : null, name), el('dd', null, value));

function drawNumbers(generation) {
  const { stats } = generation;
  byId('stats').replaceChildren(...Object.entries(stats).map(([name, value]) =>
    row(STATS[name] ?? name, name.endsWith('_s') ? seconds(value) : String(value), CLOCK[name])));
  const parts = Object.entries(CLOCK).map(([name, part]) => [part, stats[name]]);
  const whole = Math.max(stats.total_s, parts.reduce((sum, [, value]) => sum + value, 0));
  byId('clock').hidden = !whole;
  byId('clock').replaceChildren(...parts.filter(([, value]) => value > 0).map(([name, value]) => {
    const share = value / whole;
    const text = `${name} ${seconds(value)}`;
    const node = el('span', { class: name, title: text }, share > 0.2 ? text : null);
    node.style.width = `${share * 100}%`;
    return node;
  }));
  const settings = flatten(generation.settings);
  byId('settings').hidden = !settings.length;
  byId('settings-list').replaceChildren(...settings.map(([name, value]) => row(name, value)));
}

function flatten(value, prefix = '') {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    return prefix ? [[prefix, typeof value === 'string' ? value : JSON.stringify(value)]] : [];
  }
  return Object.entries(value).flatMap(([key, item]) => flatten(item, prefix ? `${prefix}.${key}` : key));
}

const quoted = (text) => `“${clip(text, 140)}”`;
const SUMMARIES = {
  start: (data) => `${count(data.num_prompt_tokens ?? 0, 'prompt token')}, policy ${data.policy}`,
  pause: (data) => `waits for ${[data.for ?? []].flat().join(' and ')}`,
  resume: (data) => `goes on after ${seconds(data.waited_s)}`,
  retrieving: (data) => `for ${quoted(data.query)}`,
  checking: (data) => `sentence ${data.number}${data.attempt > 1 ? `, attempt ${data.attempt}` : ''}: ${quoted(data.text)}`,
  retrieval: (data) => data.error ? `failed: ${data.error}` : `${count((data.passages ?? []).length, 'passage')} for ${quoted(data.query)}`,
  verification: (data) => data.error ? `failed: ${data.error}` : `${VERDICTS[verdictOf(data.verdict)].name}: ${quoted(data.text)}`,
  asking: (data) => `${data.step}${data.prompts.length > 1 ? ` (${data.prompts.length})` : ''}${data.prompts[0] ? `: ${quoted(data.prompts[0])}` : ''}`,
  answered: (data) => `${data.step}: ${data.texts.map(quoted).join(' ')}`,
  decision: (data) => `${data.about}: ${quoted(JSON.stringify({ ...data, about: undefined }))}`,
  prompt: (data) => `${count(data.passages.length, 'passage')} in the prompt, ${count(data.num_prompt_tokens, 'token')} in all`,
  refresh: (data) => `${data.lane} lane takes ${quoted(label(data.passage))}, weight ${number(data.weight)}${data.cached ? ', cached' : ''}${data.was_cut ? ', cut' : ''}`,
  evict: (data) => `unit ${data.unit_id} leaves the ${data.lane} lane`,
  restore: (data) => `unit ${data.unit_id} is back in the ${data.lane} lane`,
  skip: (data) => `passage ${data.id} stays out of the ${data.lane} lane: ${data.reason}`,
  rewind: (data) => `${count(data.discarded_tokens ?? 0, 'token')} withdrawn: ${quoted(data.text)}`,
  commit: (data) => `${VERDICTS[verdictOf(data.verdict)].name}: ${quoted(data.text)}`,
  swap_out: (data) => `${count(data.blocks ?? 0, 'block')} to host memory`,
  swap_in: (data) => `${count(data.blocks ?? 0, 'block')} back from host memory`,
  finish: (data) => FINISHES[data.reason] ?? String(data.reason ?? ''),
};

function eventNode(event) {
  const details = el('details', { class: 'event', 'data-kind': event.kind }, el('summary', null,
    el('span', { class: 'num' }, seconds(event.time_s)), el('span', { class: 'num' }, String(event.num_tokens)),
    el('span', { class: `kind kind-${event.kind}` }, event.kind.replace('_', ' ')),
    el('span', { class: 'what' }, SUMMARIES[event.kind]?.(event.data) ?? '')));
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(el('pre', null, JSON.stringify(event.data, null, 2)));
  });
  return details;
}

function drawEvents(generation) {
  const list = byId('event-list');
  list.replaceChildren(...generation.events.map(eventNode));
  const kinds = [...new Set(generation.events.map((event) => event.kind))];
  byId('filters').replaceChildren(...kinds.map((kind) => el('button', {
    type: 'button', 'aria-pressed': 'true',
    onclick: (event) => {
      const shown = event.currentTarget.getAttribute('aria-pressed') !== 'true';
      event.currentTarget.setAttribute('aria-pressed', String(shown));
      for (const node of list.children) if (node.dataset.kind === kind) node.hidden = !shown;
    },
  }, kind.replace('_', ' '))));
}
