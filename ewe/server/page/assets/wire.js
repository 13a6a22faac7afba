// The server's wire format: one request, a stream of chunks, errors in words. Nothing of the page is known here.
class ServerError extends Error {
  constructor(message, status, param) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

async function errorOf(response) {
  let told = {};
  try { told = (await response.json()).error ?? {}; } catch { /* a proxy may answer with anything */ }
  let message = told.message || `The server answered ${response.status} ${response.statusText}`.trim();
  const wait = response.headers.get('retry-after');
  if ([429, 503].includes(response.status) && wait) message += ` Try again in ${count(Number(wait), 'second')}.`;
  return new ServerError(message, response.status, told.param);
}

async function call(path, key, options = {}) {
  const headers = { ...options.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServerError('The server does not answer. Is it still running?', 0);
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

// The records of an event stream, as they arrive; comments and unfinished records are left out.
async function* records(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      const parts = text.split(/\r?\n\r?\n/);
      text = parts.pop();
      for (const part of parts) {
        const lines = part.split(/\r?\n/).filter((line) => line.startsWith('data:'));
        if (lines.length) yield lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n');
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

// The events of one answer: {kind, data}. "text" and the engine's own kinds, then "result" with what is known at the end.
async function* answerEvents(request, key, signal) {
  const response = await call('v1/chat/completions', key, {
    method: 'POST', signal, headers: { 'content-type': 'application/json' }, body: JSON.stringify(request),
  });
  let ended = false;
  for await (const record of records(response.body)) {
    if (record === '[DONE]') { ended = true; break; }
    const chunk = JSON.parse(record);
    if (chunk.error) throw new ServerError(chunk.error.message, chunk.error.code, chunk.error.param);
    yield* eventsOf(chunk);
  }
  if (!ended) throw new ServerError('The connection broke before the answer was complete.', 0);
}

function* eventsOf(chunk) {
  const [choice] = chunk.choices ?? [];
  if (choice?.delta?.reasoning_content) yield { kind: 'reasoning', data: {} };
  if (choice?.delta?.content) yield { kind: 'text', data: { text: choice.delta.content } };
  if (choice?.finish_reason) yield { kind: 'finished', data: { reason: choice.finish_reason } };
  if (chunk.ewe?.event) yield { kind: chunk.ewe.event, data: chunk.ewe.data ?? {}, time_s: chunk.ewe.time_s };
  else if (chunk.ewe) yield { kind: 'result', data: chunk.ewe };
}
