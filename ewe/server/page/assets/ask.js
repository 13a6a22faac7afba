// The page: one question at a time, its answer as it is written, and the answers before it.
class AskPage extends Reader {
  constructor() {
    super([]);
    this.view = new AnswerView(this);
    this.redraw = throttled(() => this.drawAround());
  }

  get run() { return this.text; }

  // Shows one of the answers, finished or under way.
  draw(run) {
    document.querySelector('main').classList.remove('start');
    byId('page').hidden = false;
    byId('evidence').classList.remove('open');
    document.title = `${clip(run.title, 60)} · EWE`;
    this.view.open(run);
    byId('tools').hidden = !run.done;
    byId('memory').hidden = Boolean(run.isCheck);
    for (const id of ['numbers', 'events', 'attention']) byId(id).hidden = true;
    byId('chips').replaceChildren();
    drawTurns(run, this);
    byId('sources').hidden = true;
    Conversation.follow(run);
    if (run.done) this.drawEnd(run);
    else this.drawAround();
  }

  drawPanel(run, index) {
    if (run.sentences[index]) drawEvidence(run, index);
  }

  // A sentence that is pointed at or pinned keeps the panel; else it follows the check.
  preview(index) {
    this.pointed = index;
    super.preview(index);
    if (index === null && this.pinned === null && !this.run.done) this.redraw();
  }

  drawAround() {
    const { run } = this;
    if (!run || run.done) return;
    byId('doing').textContent = run.doing;
    tellApart(passagesOf(run));
    if (this.pinned === null && (this.pointed ?? null) === null) drawLatest(run);
    if (!byId('timeline').matches(':hover, :focus-within')) drawTimeline(run, this);
  }

  drawEnd(run) {
    byId('doing').textContent = '';
    tellApart(passagesOf(run));
    drawSources(run);
    Conversation.follow(run);
    byId('tools').hidden = false;
    byId('show-removed').hidden = !document.querySelector('#text .rewritten');
    byId('show-removed').setAttribute('aria-pressed', 'false');
    byId('replay').hidden = byId('events').hidden = !run.events.length;
    byId('curl').textContent = curlOf(run);
    if (run.isCheck) drawCheckChips(run);
    else this.drawMeasures(run);
    if (this.pinned !== null) return;
    if (run.sentences.length) drawEvidence(run, firstToShow(run));
    else drawLatest(run);
  }

  drawMeasures(run) {
    drawTimeline(run, this);
    drawAttention(run);
    byId('numbers').hidden = false;
    drawNumbers(run);
    drawEvents(run);
    drawChips(run);
  }

  link(index) {
    super.link(index);
    linkUnits(this.run, index);
  }

  linkSentences(id) {
    linkSentences(this.run, id);
  }

  // Takes one event in and draws what it changed; runs that are not shown change unseen.
  take(run, event) {
    run.apply(event);
    if (run !== this.run) return;
    if (['checking', 'sentence', 'rewind'].includes(event.kind)) say(spoken(run, event));
    this.view.update();
    this.redraw();
  }

  finish(run, reason, error) {
    run.finish(reason, error);
    if (run !== this.run) return;
    this.view.update();
    this.drawEnd(run);
    say(error || `The answer is complete: ${count(run.sentences.length, 'sentence')}.`);
  }

  // One of the answers before, by itself and not by its place.
  select(run) {
    byId('which').value = String(this.texts.indexOf(run));
    this.show(this.texts.indexOf(run));
  }

  // A new question: at the top of the picker, and shown.
  add(run) {
    const which = byId('which');
    which.prepend(el('option', { value: this.texts.length }, `${this.texts.length + 1}. ${clip(run.title, 70)}`));
    this.texts.push(run);
    which.value = String(this.texts.length - 1);
    byId('picker').hidden = this.texts.length < 2;
    this.show(this.texts.length - 1);
  }
}

function linkUnits(run, index) {
  const sentence = index === null || index === undefined ? null : run?.sentences[index];
  let any = false;
  for (const node of document.querySelectorAll('#timeline .unit')) {
    const linked = Boolean(sentence) && reads(sentence, node.dataset.passage);
    node.classList.toggle('linked', linked);
    any ||= linked;
  }
  byId('timeline').classList.toggle('linking', any);
}

function linkSentences(run, id) {
  for (const node of document.querySelectorAll('#text .sentence')) {
    const sentence = run.sentences[Number(node.dataset.sentence)];
    node.classList.toggle('linked', id !== null && id !== undefined && reads(sentence, id));
  }
}

// The sentence with the most to tell: one that is refuted, else one that was written again, else the first.
function firstToShow(run) {
  const refuted = run.sentences.findIndex((sentence) => sentence.verdict === 'refuted');
  const rewritten = run.sentences.findIndex((sentence) => sentence.removed.length);
  return Math.max(refuted >= 0 ? refuted : rewritten, 0);
}

const say = (text) => { byId('said').textContent = text; };
const SPOKEN = {
  checking: (run) => `${run.underCheck.replace('c', 'C')}.`,
  rewind: (run) => `Sentence ${run.sentences.length + 1} was refuted and is taken back.`,
  sentence: (run, data) => `${data.text} (${VERDICTS[verdictOf(data.verdict)].name})`,
};
const spoken = (run, event) => SPOKEN[event.kind](run, event.data);

// At most ten times a second, and once more after the last call.
function throttled(work) {
  let timer = null;
  return () => {
    timer ??= setTimeout(() => {
      timer = null;
      work();
    }, 100);
  };
}

function curlOf(run) {
  const body = JSON.stringify(run.request, null, 2).replaceAll("'", "'\\''");
  const key = Settings.key ? ` \\\n  -H "Authorization: Bearer $EWE_KEY"` : '';
  return `curl -N ${new URL(run.path, location)} \\\n  -H 'Content-Type: application/json'${key} \\\n  -d '${body}'`;
}
