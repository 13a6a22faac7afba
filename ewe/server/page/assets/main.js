// What the reader does: ask, stop, replay, take the answer along.
const page = new AskPage();
const input = byId('prompt-input');
let model = '';
let asked = null;
const GREETING_MS = 2000;

function complain(error) {
  byId('alarm').hidden = !error;
  byId('alarm').textContent = error ? error.message : '';
  const wantsKey = error?.status === 401;
  byId('key-field').classList.toggle('wanted', wantsKey);
  byId('key-field').hidden = !(wantsKey || Settings.key);
  if (wantsKey) {
    Settings.open(true);
    byId('key').focus();
  }
}

function working(on) {
  byId('send').hidden = on;
  byId('stop').hidden = !on;
  byId('stop').textContent = 'Stop';
  byId('replay').disabled = on;
  byId('answer').setAttribute('aria-busy', String(on));
}

// One piece of work at a time: the new one ends the one before. `over` is called when it has come to its end.
function begin() {
  asked?.abort();
  const control = new AbortController();
  asked = control;
  complain(null);
  working(true);
  return control;
}

function over(control) {
  if (asked !== control) return;
  asked = null;
  working(false);
}

async function ask(prompt) {
  const control = begin();
  const run = new Run(prompt, Settings.request(Conversation.messages(prompt), model));
  run.previous = Conversation.latest;
  const began = performance.now();
  const player = new Player((event) => page.take(run, event), Settings.pace);
  control.signal.addEventListener('abort', () => player.cancel());
  page.add(run);
  const shown = player.play();
  let failure = null;
  let complete = false;
  try {
    for await (const event of answerEvents(run.request, Settings.key, control.signal)) {
      event.time_s ??= (performance.now() - began) / 1000;
      run.record.push(event);
      player.push(event);
    }
    complete = true;
    if (asked === control) byId('stop').textContent = 'Skip to the end';
  } catch (error) {
    if (!control.signal.aborted) failure = error;
  }
  player.end();
  await shown;
  if (complete) player.queue.forEach((event) => run.apply(event)); // what was skipped
  page.finish(run, complete || failure ? '' : 'abort', failure?.message ?? '');
  if (failure) complain(failure);
  over(control);
}

async function check(text) {
  const control = begin();
  say('Checking the text.');
  try {
    const run = await checkedText(text, Settings.documents, Settings.key, control.signal);
    page.add(run);
    say(`The text is checked: ${VERDICTS[verdictOf(run.verdict)].name}.`);
  } catch (error) {
    if (!control.signal.aborted) complain(error);
  }
  over(control);
}

const isCheck = () => byId('ask').elements.mode.value === 'check';
const WORDS = {
  ask: { button: 'Ask', label: 'What do you want to know?', hint: 'Enter asks, Shift+Enter starts a line, Escape stops', use: 'They fill the memory before the first word.' },
  check: { button: 'Check', label: 'Paste a text: its claims are checked, sentence by sentence.', hint: 'Ctrl+Enter checks', use: 'The text is checked against them instead of the datastore.' },
};
const PASSAGES_NEEDED = 'Paste a text here, and passages to check it against under Settings.';
function tellMode() {
  const words = WORDS[isCheck() ? 'check' : 'ask'];
  byId('send').textContent = words.button;
  const needsPassages = isCheck() && engine && !engine.datastore;
  byId('prompt-label').textContent = input.placeholder = needsPassages ? PASSAGES_NEEDED : words.label;
  byId('hint').textContent = words.hint;
  byId('documents-use').textContent = isCheck() && !engine?.datastore ? 'The text is checked against them.' : words.use;
  for (const id of ['max_tokens', 'temperature', 'top_p', 'seed', 'pace']) settingOf(id).closest('label').hidden = isCheck();
}

async function replay() {
  const control = begin();
  byId('stop').textContent = 'Skip to the end';
  const { run } = page;
  const { finish_reason: reason, error } = run;
  const player = new Player((event) => page.take(run, event), Settings.pace || 30);
  control.signal.addEventListener('abort', () => player.cancel());
  run.clear();
  page.show(page.texts.indexOf(run));
  for (const event of run.record) player.push(event);
  player.end();
  await player.play();
  player.queue.forEach((event) => run.apply(event));
  page.finish(run, reason, error);
  over(control);
}

function save(run) {
  const kept = { prompt: run.prompt, request: run.request, text: run.text, finish_reason: run.finish_reason, error: run.error, sentences: run.sentences, sources: run.sources, stats: run.stats, events: run.record };
  const url = URL.createObjectURL(new Blob([JSON.stringify(kept, null, 2)], { type: 'application/json' }));
  el('a', { href: url, download: 'answer.json' }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// The box grows with what is typed.
function fit() {
  input.style.height = 'auto';
  input.style.height = `${Math.min(input.scrollHeight, 320)}px`;
}

// Who answers here, and what could be asked; asked again until the model is loaded.
async function greet() {
  const ready = byId('ready');
  try {
    const models = await (await call('v1/models', Settings.key)).json();
    model = models.data?.[0]?.id ?? '';
    byId('model').textContent = model;
    const { examples, engine: summary, checks_every_sentence: checksAll } = await (await call('page/start.json', Settings.key)).json();
    if (summary) drawEngine(summary, checksAll);
    tellMode();
    byId('examples').replaceChildren(...examples.map((text) =>
      el('button', { type: 'button', class: 'toggle', onclick: () => askExample(text) }, text)));
    byId('examples').hidden = !examples.length;
    ready.textContent = 'ready';
    ready.className = 'ready yes';
    complain(null);
  } catch (error) {
    ready.textContent = { 401: 'needs a key', 503: 'not ready yet' }[error.status] ?? 'not ready';
    ready.className = 'ready no';
    if (error.status !== 503) complain(error);
    else setTimeout(greet, GREETING_MS);
  }
}

function askExample(text) {
  byId('ask').elements.mode.value = 'ask';
  tellMode();
  Conversation.follow(null);
  input.value = text;
  byId('ask').requestSubmit();
}

byId('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  const prompt = input.value.trim();
  if (!prompt) return;
  if (!isCheck()) input.value = ''; // a text that was checked is mostly changed and checked again
  fit();
  if (matchMedia('(pointer: coarse)').matches) input.blur(); // the keyboard on the screen would cover the answer
  if (isCheck()) check(prompt);
  else ask(prompt);
});
input.addEventListener('keydown', (event) => {
  if (event.key === 'ArrowUp' && !input.value && page.run) {
    event.preventDefault();
    input.value = page.run.prompt;
    fit();
    return;
  }
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing || (isCheck() && !event.ctrlKey && !event.metaKey)) return;
  event.preventDefault();
  byId('ask').requestSubmit();
});
input.addEventListener('input', fit);
byId('fresh').addEventListener('click', () => {
  Conversation.follow(null);
  input.focus();
});
byId('stop').addEventListener('click', () => asked?.abort());
byId('replay').addEventListener('click', replay);
byId('save').addEventListener('click', () => save(page.run));
byId('copy').hidden = !navigator.clipboard;
byId('copy').addEventListener('click', async (event) => {
  const button = event.currentTarget;
  await navigator.clipboard.writeText(page.run.text.trim());
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
});
byId('which').addEventListener('change', (event) => page.show(Number(event.currentTarget.value)));
byId('close').addEventListener('click', () => page.unpin());
byId('key').addEventListener('change', greet);
addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.isComposing) return;
  if (asked) asked.abort();
  else if (page.run) page.unpin();
});

let width = innerWidth;
addEventListener('resize', () => {
  if (innerWidth === width || !page.run) return;
  width = innerWidth;
  drawTimeline(page.run, page);
  page.link(page.pinned);
});

for (const mode of byId('ask').elements.mode) mode.addEventListener('change', tellMode);
Settings.start();
tellMode();
greet();
input.value = new URLSearchParams(location.hash.slice(1)).get('q') ?? '';
fit();
input.focus();
