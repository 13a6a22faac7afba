// Questions that follow on each other: what the next one follows, and the turns before the answer that is shown.
const follows = (run) => Boolean(run) && !run.isCheck && run.done && run.text.trim() !== '';
const turnsOf = (run) => (run ? [...turnsOf(run.previous), run] : []);

const Conversation = {
  latest: null,

  // A question follows the answer that is shown, or takes the place of one that came to nothing or is not finished.
  follow(run) {
    this.latest = follows(run) ? run : run?.previous ?? null;
    byId('fresh').hidden = !this.latest;
  },

  messages(prompt) {
    const said = turnsOf(this.latest).flatMap((run) => [
      { role: 'user', content: run.prompt }, { role: 'assistant', content: run.text.trim() }]);
    return [...said, { role: 'user', content: prompt }];
  },
};

function drawTurns(run, page) {
  const turns = turnsOf(run.previous);
  byId('turns').hidden = !turns.length;
  byId('turns').replaceChildren(...turns.map((turn) => el('li', null,
    el('button', { type: 'button', class: 'turn', onclick: () => page.select(turn) }, el('b', null, clip(turn.prompt, 200)), el('span', null, clip(turn.text.trim(), 300))))));
}

// The sources of an answer by number, as its sentences name them, in the order in which they come.
const sourcesOf = (run) => [...new Set(run.sentences.flatMap((sentence) => sentence.source_ids))];

// Behind every sentence the numbers of its sources, and below the answer what they are.
function drawSources(run) {
  const ids = sourcesOf(run);
  for (const node of document.querySelectorAll('#text .cites')) node.remove();
  for (const node of document.querySelectorAll('#text .sentence')) {
    const cited = run.sentences[Number(node.dataset.sentence)]?.source_ids ?? [];
    if (cited.length) node.after(el('sup', { class: 'cites' }, cited.map((id) => citation(run, id, ids.indexOf(id) + 1))));
  }
  byId('sources').hidden = !ids.length;
  byId('sources').replaceChildren(...ids.map((id) => {
    const source = run.sources[id] ?? { id };
    return el('li', null, link(source.url, label(source)), source.source ? el('span', { class: 'origin' }, ` ${source.source}`) : null);
  }));
}

function citation(run, id, place) {
  const source = run.sources[id] ?? { id };
  return el('span', { class: 'cite', title: label(source) }, link(source.url, `[${place}]`));
}
