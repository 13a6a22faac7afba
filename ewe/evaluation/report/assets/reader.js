// Which text is shown and which of its sentences is chosen: pointing previews, a click pins, Escape lets go.
class Reader {
  constructor(texts) {
    this.texts = texts;
    this.pinned = null;
  }

  // What a page draws: the whole text, and the panel for one of its sentences.
  draw() {}
  drawPanel() {}

  show(index) {
    this.text = this.texts[index];
    this.pinned = null;
    tellApart(passagesOf(this.text));
    this.draw(this.text);
    this.link(null);
  }

  // Pointing at a sentence or tabbing to it: its evidence; leaving it: back to the pinned one.
  preview(index) {
    if (index !== null) this.drawPanel(this.text, index);
    else if (this.pinned !== null) this.drawPanel(this.text, this.pinned);
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
  }

  unpin() {
    if (this.pinned !== null) this.pin(this.pinned);
    this.link(null);
    hideTip();
  }

  // Shows the first text; with several, the picker lists them.
  start(nameOf) {
    byId('page').hidden = false;
    if (this.texts.length) {
      const which = byId('which');
      which.append(...this.texts.map((text, index) => el('option', { value: index }, `${index + 1}. ${clip(nameOf(text), 70)}`)));
      which.addEventListener('change', () => this.show(Number(which.value)));
      byId('picker').hidden = this.texts.length < 2;
      this.show(0);
    }
    byId('close').addEventListener('click', () => this.unpin());
    addEventListener('keydown', (event) => { if (event.key === 'Escape') this.unpin(); });
  }
}
