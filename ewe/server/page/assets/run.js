// One answer as far as it is known: events in, the state that the page draws out. The same events give the same state.
const KINDS_LISTED = new Set(['retrieving', 'retrieval', 'checking', 'verification', 'refresh', 'evict', 'restore', 'rewind', 'sentence', 'asking', 'answered', 'decision']);

class Run {
  constructor(prompt, request) {
    this.prompt = this.title = prompt;
    this.path = 'v1/chat/completions';
    this.request = request;
    this.record = [];
    this.error = '';
    this.clear();
  }

  clear() {
    Object.assign(this, {
      chars: [], born: [], final: 0, written: 0, checks: [], checking: [], sources: {}, sentences: [],
      withdrawn: [], cuts: [], units: new Map(), stays: [], events: [],
      finish_reason: '', done: false, stats: {}, settings: {}, policy: '', doing: 'waiting for the model',
    });
  }

  get text() { return this.chars.join(''); }

  // Provisional text: everything behind what can no longer be taken back.
  get draft() { return this.chars.slice(this.final).join(''); }

  apply(event) {
    if (KINDS_LISTED.has(event.kind)) {
      const kind = event.kind === 'sentence' ? 'commit' : event.kind;
      this.events.push({ kind, time_s: event.time_s, num_tokens: this.kept, at: this.written, data: event.data });
    }
    this[`on_${event.kind}`]?.(event.data);
  }

  get kept() { return this.written - this.cuts.reduce((sum, cut) => sum + cut.to - cut.from, 0); }

  put(start, text) {
    this.chars.length = this.born.length = Math.min(start, this.chars.length);
    for (const char of text) {
      this.chars.push(char);
      this.born.push(this.written);
    }
  }

  on_draft({ text, start }) {
    this.put(start, text);
    this.written += 1;
    const number = 1 + Math.max(this.sentences.length, ...this.checking.map((check) => check.number));
    this.doing = [`writing sentence ${number}`, this.underCheck].filter(Boolean).join(', ');
  }

  // What is being checked, in words; empty while nothing is.
  get underCheck() {
    const numbers = this.checking.map((check) => check.number);
    return numbers.length ? `checking sentence${numbers.length > 1 ? 's' : ''} ${numbers.join(', ')}` : '';
  }

  // Final text; where no drafts are sent it is the only text there is.
  on_text({ text }) {
    const added = Array.from(text);
    const known = this.chars.length - this.final;
    if (added.length > known) {
      this.put(this.chars.length, added.slice(known).join(''));
      this.written += 1;
    }
    this.final += added.length;
  }

  on_rewind({ start, text, reason, attempt, kept_chars: kept = start }) {
    const from = this.born[kept] ?? this.written;
    if (from < this.written) this.cuts.push({ from, to: this.written, text });
    const later = this.chars.slice(start + Array.from(text).length).join(''); // written while it was being checked
    this.withdrawn.push({ start, text, later, reason, attempt, claims: [], ...this.proofs(start, text) });
    this.put(kept, '');
    this.checking = [];
    this.doing = reason === 'drop' ? 'leaving the sentence out' : `writing sentence ${this.sentences.length + 1} again`;
  }

  on_retrieving() { this.doing = 'looking for passages'; }

  on_reasoning() { this.doing = 'reasoning'; }

  on_asking({ step }) { this.doing = `asking the model: ${step}`; }

  on_checking(check) {
    this.checking.push(check);
    this.doing = this.underCheck;
  }

  // A check is over, with a verdict or because the answer ends.
  checked(start) {
    const check = this.checking.find((item) => item.start === start);
    this.checking = this.checking.filter((item) => item !== check);
    return check;
  }

  on_retrieval({ passages, error }) {
    for (const passage of passages ?? []) this.learn(passage);
    this.doing = error ? 'retrieval failed' : `found ${count((passages ?? []).length, 'passage')}`;
  }

  on_verification(check) {
    const number = this.checked(check.start)?.number ?? this.sentences.length + 1;
    this.checks.push({ ...check, number });
    for (const item of check.evidence ?? []) this.learn(item);
    this.doing = check.error ? 'the check failed' : `sentence ${number} is ${VERDICTS[verdictOf(check.verdict)].name}`;
  }

  on_refresh(data) {
    if (data.passage) this.learn(data.passage);
    this.stay(data);
  }

  on_restore({ lane, unit_id }) {
    const known = this.units.get(`${lane} ${unit_id}`);
    if (known) this.stay(known);
  }

  on_evict({ lane, unit_id }) {
    const unit = this.units.get(`${lane} ${unit_id}`);
    if (unit) Object.assign(unit, { to: this.written, stays: false });
  }

  stay(data) {
    const unit = { ...data, from: this.written, to: this.written, stays: true };
    this.units.set(`${data.lane} ${data.unit_id}`, unit);
    this.stays.push(unit);
  }

  on_sentence(data) {
    this.checked(data.start);
    const at = this.withdrawn.filter((item) => item.start === data.start && item.reason !== 'drop' && data.removed.includes(item.text));
    this.withdrawn = this.withdrawn.filter((item) => !at.includes(item) && item.text !== data.text);
    this.sentences.push({
      source_ids: [], attention: {}, reason: '', claims: [], ...data, ...this.proofs(data.start, data.text),
      removed: at, runs: this.runs(data.start, data.end), left_out: this.withdrawn.splice(0),
    });
  }

  on_finished({ reason }) { this.finish_reason = reason; }

  // What the server says at the end is what counts; the stream has told most of it already.
  on_result(result) {
    for (const source of result.sources ?? []) this.learn(source);
    (result.sentences ?? []).forEach((item, index) => {
      const known = this.sentences[index];
      if (!known) return;
      known.source_ids = item.source_ids ?? known.source_ids;
      known.reason = item.reason ?? known.reason;
      known.attention = item.attention ?? known.attention;
      if (item.claims?.length) known.claims = item.claims;
    });
    this.stats = result.stats ?? this.stats;
    this.finish_reason = result.finish_reasons?.[0] ?? this.finish_reason;
  }

  finish(reason = '', error = '') {
    this.finish_reason = error ? 'error' : reason || this.finish_reason || 'stop';
    this.error = error;
    if (!Object.keys(this.stats).length) this.stats = this.counted();
    this.chars.length = this.born.length = Math.max(this.final, 0);
    this.done = true;
    this.doing = '';
    this.checking = [];
  }

  // What can be counted here, for an answer that never came to its own end.
  counted() {
    const of = (kind) => this.events.filter((event) => event.kind === kind).length;
    return {
      sentences: this.sentences.length, rewrites: of('rewind'), tokens_kept: this.kept, tokens_discarded: this.written - this.kept,
      retrievals: of('retrieval'), verifications: of('verification'), refreshes: of('refresh'), total_s: this.record.at(-1)?.time_s,
    };
  }

  learn(passage) {
    const known = this.sources[passage.id] ?? {};
    const told = Object.entries(passage).filter(([, value]) => value !== '' && value !== null && value !== undefined);
    this.sources[passage.id] = { ...known, ...Object.fromEntries(told) };
  }

  proofs(start, text) {
    const check = this.checks.findLast((item) => item.start === start && item.text === text);
    return check ? { claims: check.claims ?? [], evidence: check.evidence ?? [] } : { evidence: [] };
  }

  // The written tokens that hold code points [start, end), as runs without the gaps that rewinds left.
  runs(start, end) {
    const found = [];
    for (const token of this.born.slice(start, end)) {
      const last = found.at(-1);
      if (last && token <= last[1] && token >= last[0]) last[1] = Math.max(last[1], token + 1);
      else found.push([token, token + 1]);
    }
    return found;
  }

  get timeline() {
    const length = this.done ? this.written : Math.max(32, Math.ceil(this.written / 32) * 32);
    for (const unit of this.stays) if (unit.stays) unit.to = this.written;
    const names = [...new Set(['retrieval', 'verification', ...this.stays.map((unit) => unit.lane)])];
    return { length, removed: this.cuts, empty: this.done ? 'stayed empty' : 'empty so far', lanes: names.map((name) => laneOf(name, this.stays.filter((unit) => unit.lane === name))) };
  }
}

// Every unit in the first row that is free when it comes.
function laneOf(name, units) {
  const ends = [];
  for (const unit of units) {
    const free = ends.findIndex((end) => end <= unit.from);
    unit.row = free < 0 ? ends.length : free;
    ends[unit.row] = unit.stays ? Infinity : unit.to;
  }
  return { lane: name, rows: ends.length, units };
}
