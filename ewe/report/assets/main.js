// Which answer is shown and which sentence is chosen; the parts above draw.
const data = JSON.parse(byId('data').textContent);

class Page {
  constructor(generations) {
    this.generations = generations;
    this.pinned = null;
  }

  show(index) {
    this.generation = this.generations[index];
    this.pinned = null;
    drawAnswer(this.generation, this);
    drawTimeline(this.generation, this);
    drawAttention(this.generation);
    drawNumbers(this.generation);
    drawEvents(this.generation);
    const rewritten = this.generation.sentences.findIndex((sentence) => sentence.removed.length);
    drawEvidence(this.generation, Math.max(rewritten, 0));
    this.link(null);
  }

  // Pointing at a sentence or tabbing to it: its evidence; leaving it: back to the pinned one.
  preview(index) {
    if (index !== null) drawEvidence(this.generation, index);
    else if (this.pinned !== null) drawEvidence(this.generation, this.pinned);
    this.link(index ?? this.pinned);
  }

  pin(index) {
    this.pinned = this.pinned === index ? null : index;
    byId('evidence').classList.toggle('open', this.pinned !== null);
    this.preview(index);
    for (const node of document.querySelectorAll('#text .sentence')) {
      node.setAttribute('aria-pressed', String(Number(node.dataset.sentence) === this.pinned));
    }
  }

  link(index) {
    for (const node of document.querySelectorAll('[data-sentence]')) {
      node.classList.toggle('chosen', index !== null && Number(node.dataset.sentence) === index);
    }
    const sentence = index === null ? null : this.generation.sentences[index];
    let any = false;
    for (const node of document.querySelectorAll('#timeline .unit')) {
      const linked = sentence !== null && reads(sentence, node.dataset.passage);
      node.classList.toggle('linked', linked);
      any ||= linked;
    }
    byId('timeline').classList.toggle('linking', any);
  }

  linkSentences(id) {
    for (const node of document.querySelectorAll('#text .sentence')) {
      const sentence = this.generation.sentences[Number(node.dataset.sentence)];
      node.classList.toggle('linked', id !== null && id !== undefined && reads(sentence, id));
    }
  }

  unpin() {
    if (this.pinned !== null) this.pin(this.pinned);
    this.link(null);
    hideTip();
  }
}

const page = new Page(data.generations);
byId('page').hidden = false;
if (data.generations.length) {
  const which = byId('which');
  which.append(...data.generations.map((generation, index) =>
    el('option', { value: index }, `${index + 1}. ${clip(generation.prompt, 70)}`)));
  which.addEventListener('change', () => page.show(Number(which.value)));
  byId('picker').hidden = data.generations.length < 2;
  page.show(0);
}
byId('close').addEventListener('click', () => page.unpin());
addEventListener('keydown', (event) => { if (event.key === 'Escape') page.unpin(); });
let width = innerWidth;
addEventListener('resize', () => {
  if (innerWidth === width || !page.generation) return;
  width = innerWidth;
  drawTimeline(page.generation, page);
  page.link(page.pinned);
});
