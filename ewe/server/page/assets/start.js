// What is on in the engine, and what the page may say before the first question because of it.
let engine = null;

// Policies that ask the model several times, and what they do with passages.
const STEPS = {
  ra: 'Passages that are found stand in the prompt.',
  dragin: 'Where it needs to know something, it writes the sentence on under passages that are found for it.',
  cove: 'It drafts an answer, asks itself about the facts of it, and revises it. The policy cove looks nothing up.',
  'cove+retrieval': 'It drafts an answer, asks itself about the facts of it with passages in view, and revises it.',
  'self-rag-like': 'It writes a sentence under every passage that is found, and keeps the one that it thinks the best.',
  'rewrite-after': 'It drafts an answer, which is shown when all of it has been checked.',
};
const READS_NOTHING = new Set(['plain', 'cove']);

const headline = ({ policy, datastore, unchecked, checksAll }) => {
  if (!unchecked) return checksAll ? 'Ask. Every sentence is checked before it stands.' : 'Ask. Sentences that the model is unsure of are checked before they stand.';
  if (datastore && !READS_NOTHING.has(policy)) return 'Ask. Your passages are read; nothing is checked.';
  return 'Ask. Nothing is checked; passages can be given.';
};

function reading({ policy, datastore }) {
  if (policy === 'plain') return ['It writes alone.', 'The policy plain looks nothing up. Passages of your own, under Settings, go into the memory.'];
  if (STEPS[policy] && (datastore || policy === 'cove')) return ['It works in steps.', STEPS[policy]];
  if (!datastore) return ['It reads what you give it.', 'There is no datastore here. Passages of your own, under Settings, go into the working memory, beside the prompt.'];
  if (policy === 'nest') return ['It copies.', 'Words of passages that are found stand beside its own, and are copied while they are likely.'];
  const later = policy === 'rag' ? '.' : ', and new ones follow as the text grows.';
  return ['It reads.', `Passages that fit go into the working memory, beside the prompt${later}`];
}

function checking({ unchecked, checksAll }) {
  if (unchecked) return ['It does not check.', `Sentences stand as they are written: ${unchecked}.`];
  if (!checksAll) return ['It checks what is unsure.', 'A finished sentence that the model was unsure of is taken apart into claims, and each claim is held against the sources.'];
  return ['It checks.', 'Every finished sentence is taken apart into claims, and each claim is held against the sources.'];
}

function correcting({ datastore, unchecked }) {
  if (!unchecked) return ['It takes back.', 'A refuted sentence is struck out and written again with what was found. What stands carries its verdict.'];
  const against = datastore ? 'the datastore' : 'passages of your own, under Settings';
  return ['Texts can be checked.', `“Check a text” holds any finished text against ${against}.`];
}

function parts({ policy, datastore, verifier, judge, unchecked, longterm_memory: remembers }) {
  const size = typeof datastore?.passages === 'number' ? count(datastore.passages, 'passage') : '';
  const found = [size, datastore?.search].filter(Boolean).join(', ');
  return [
    datastore ? `datastore ${datastore.name}${found ? ` (${found})` : ''}` : 'no datastore',
    unchecked ? `not checked: ${unchecked}` : `verifier ${verifier}${judge ? ` (judge ${judge})` : ''}`,
    `policy ${policy}`,
    `long-term memory ${remembers ? 'on' : 'off'}`,
  ];
}

function drawEngine(summary, checksAll) {
  engine = { ...summary, checksAll };
  const classes = ['lane-retrieval', 'lane-verification', engine.unchecked ? '' : 'v-refuted'];
  const steps = [reading(engine), checking(engine), correcting(engine)];
  byId('headline').textContent = headline(engine);
  byId('steps').replaceChildren(...steps.map(([name, text], index) =>
    el('li', {}, el('b', { class: classes[index] }, name), ` ${text}`)));
  byId('memories-link').hidden = !engine.longterm_memory;
  byId('engine').textContent = parts(engine).join(' · ');
}
