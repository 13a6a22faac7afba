// The trace page: the answer beside its evidence, and what the memory held meanwhile.
const data = JSON.parse(byId('data').textContent);

class TracePage extends Reader {
  draw(generation) {
    drawAnswer(generation, this);
    drawTimeline(generation, this);
    drawAttention(generation);
    drawNumbers(generation);
    drawEvents(generation);
    const rewritten = generation.sentences.findIndex((sentence) => sentence.removed.length);
    drawEvidence(generation, Math.max(rewritten, 0));
  }

  drawPanel(generation, index) {
    drawEvidence(generation, index);
  }

  link(index) {
    super.link(index);
    const sentence = index === null ? null : this.text.sentences[index];
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
      const sentence = this.text.sentences[Number(node.dataset.sentence)];
      node.classList.toggle('linked', id !== null && id !== undefined && reads(sentence, id));
    }
  }
}

const page = new TracePage(data.generations);
page.start((generation) => generation.prompt);
let width = innerWidth;
addEventListener('resize', () => {
  if (innerWidth === width || !page.text) return;
  width = innerWidth;
  drawTimeline(page.text, page);
  page.link(page.pinned);
});
