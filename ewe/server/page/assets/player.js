// Shows events no faster than a reader can follow. The engine is not held up; what piles up is shown sooner.
const LONGEST_LAG_S = 6;
const SECONDS_SHOWN = { rewind: 0.7, verification: 0.25, sentence: 0.2 };

class Player {
  constructor(show, tokensPerSecond) {
    this.show = show;
    this.rate = tokensPerSecond;
    this.queue = [];
    this.cancelled = false;
    this.stopped = new Promise((resolve) => { this.stop = resolve; });
  }

  push(event) {
    this.queue.push(event);
    this.wake?.();
  }

  // No further events will come.
  end() {
    this.ended = true;
    this.wake?.();
  }

  cancel() {
    this.cancelled = true;
    this.stop();
    this.end();
  }

  secondsFor(event) {
    if (!this.rate) return 0;
    const backlog = this.queue.reduce((sum, item) => sum + this.pause(item), 0);
    return this.pause(event) * Math.min(1, LONGEST_LAG_S / Math.max(backlog, 0.001));
  }

  pause(event) {
    return event.kind === 'draft' ? 1 / this.rate : (SECONDS_SHOWN[event.kind] ?? 0) * (30 / this.rate);
  }

  // Resolves when everything has been shown, or at once when it is cancelled.
  async play() {
    let due = performance.now();
    for (;;) {
      while (!this.queue.length && !this.ended) await new Promise((resolve) => { this.wake = resolve; });
      if (this.cancelled || !this.queue.length) return;
      const event = this.queue.shift();
      due = Math.max(due, performance.now() - 50) + 1000 * this.secondsFor(event);
      const left = due - performance.now();
      if (left > 4) await Promise.race([this.stopped, new Promise((resolve) => { setTimeout(resolve, left); })]);
      if (this.cancelled) {
        this.queue.unshift(event); // for whoever applies what was not shown
        return;
      }
      this.show(event);
    }
  }
}
