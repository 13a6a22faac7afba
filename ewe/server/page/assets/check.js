// A text of the reader's own, checked sentence by sentence: nothing is written, so there is no memory to draw.
async function checkedText(text, documents, key, signal) {
  const request = { text, ...(documents.length ? { documents } : {}), ...Settings.closedWorld };
  const response = await call('v1/verify', key, {
    method: 'POST', signal, headers: { 'content-type': 'application/json' }, body: JSON.stringify(request),
  });
  return new CheckedRun(text, request, await response.json());
}

class CheckedRun extends Run {
  constructor(text, request, result) {
    super('', request);
    this.isCheck = true;
    this.path = 'v1/verify';
    this.title = clip(text, 70);
    this.verdict = result.verdict;
    this.chars = Array.from(text);
    this.final = this.chars.length;
    for (const source of result.sources) this.learn(source);
    this.sentences = result.sentences.map((item) => ({
      ...item, start: item.start_index, end: item.end_index, reason: [item.reason, ...item.notes].filter(Boolean).join('; '),
      evidence: item.evidence.map((entry) => ({ ...entry, id: entry.source_id })),
      source_ids: [...new Set(item.claims.flatMap((claim) => claim.source_ids))],
      attempts: 1, removed: [], left_out: [], attention: {}, runs: [],
    }));
    this.done = true;
    this.error = result.error ? `The check is not complete: ${result.error}` : '';
    this.support = result.support_score;
  }
}

function drawCheckChips(run) {
  const claims = run.sentences.reduce((sum, sentence) => sum + sentence.claims.length, 0);
  const facts = [count(run.sentences.length, 'sentence'), count(claims, 'claim'),
    typeof run.support === 'number' ? `${Math.round(run.support * 100)}% of the claims supported` : null, run.error];
  byId('chips').replaceChildren(badge(run.verdict), ...facts.filter(Boolean).map((fact) => el('span', { class: 'chip' }, fact)));
}
