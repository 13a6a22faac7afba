"""What leaves the engine: the stream of one sequence, what its trace tells, and its finished Generation."""

import time
from collections import Counter, abc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ewe.engine.answer_text.sentence_spans import Span
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.evidence.sentence_checks import SentenceState, described, fields_of
from ewe.engine.evidence.workers import Job
from ewe.engine.sequence import Sequence
from ewe.types import Generation, ScoredPassage, Sentence, Verdict, VerificationResult

_NOT_VERIFIED = SentenceState(reason="no verifier")
_ENDED_BEFORE = {"abort": "the request was aborted", "timeout": "the deadline passed", "error": "the request failed"}


def show(sequence: Sequence) -> None:
    """Emits the text that is new as a draft, but for an end that may become a stop string while the text goes on."""
    listener, output = sequence.listener, sequence.output_text
    if listener is None:
        return
    if output.reasoning is not None and (reasoned := output.reasoning.text_from(sequence.reasoned_chars)):
        sequence.reasoned_chars += len(reasoned)
        listener(StreamEvent("reasoning", {"text": reasoned}, None, sequence.index))
    if sequence.on_tokens is not None:
        _send_tokens(sequence, sequence.on_tokens)
        if sequence.finish is None:
            return
    begin = sequence.shown_chars
    upto = output.firm_end if sequence.finish is None else len(output.text)
    if upto > begin:
        listener(StreamEvent("draft", {"text": output.text_between(begin, upto), "start": begin}, None, sequence.index))
        sequence.shown_chars = upto


def _send_tokens(sequence: Sequence, on_tokens: Callable[[abc.Sequence[int]], None]) -> None:
    """Sends the tokens that are new; what is left of a text that has ended is sent as text."""
    output, sent = sequence.output_text, sequence.sent_tokens
    if sent < len(output):
        on_tokens(output.ids[sent:])
        sequence.sent_tokens = len(output)
    if sequence.finish is not None:
        chars = output.end_of(len(output))
        sequence.shown_chars = max(sequence.shown_chars, chars)
        if sequence.is_final_at_once:
            sequence.sent_chars = max(sequence.sent_chars, chars)


def publish(sequence: Sequence, holds_text: bool) -> None:
    """Emits what is new: drafts at once; sentences and text at once, too, or held until they are final."""
    output = sequence.output_text
    if not holds_text:
        if sequence.listener is not None:  # else nobody looks at the text yet
            show(sequence)
            # Of tokens that were sent there is no text before the end.
            send(sequence, output.firm_end if sequence.on_tokens is None else sequence.shown_chars)
        return
    show(sequence)
    for index in range(sequence.settled, _num_final(sequence)):
        _commit(sequence, index, sequence.feedback.state_of(index) or _NOT_VERIFIED)
    if sequence.settled:
        send(sequence, output.sentences[sequence.settled - 1].end)


def complete(sequence: Sequence) -> Generation:
    """Ends the stream of a finished sequence and builds its result."""
    show(sequence)
    output, stats = sequence.output_text, sequence.stats
    missing = SentenceState(reason=_ENDED_BEFORE.get(sequence.finish or "", _NOT_VERIFIED.reason))
    for index in range(sequence.settled, len(output.sentences)):
        _commit(sequence, index, sequence.feedback.state_of(index) or missing)
    send(sequence, len(output.text))
    sequence.record("finish", reason=sequence.finish)
    stats.tokens_kept = len(output.ids)
    stats.reasoning_tokens = 0 if output.reasoning is None else output.reasoning.num_tokens
    stats.tokens_discarded = _num_discarded(sequence)
    if not sequence.policy.is_composed:
        stats.prompt_tokens += sequence.request.num_prompt_tokens  # its policy may have asked for texts before
    stats.sentences = len(output.sentences)
    stats.total_s = time.monotonic() - sequence.arrived
    generation = _generation(sequence)
    sequence.emit("finish", {"reason": sequence.finish, "queued_s": sequence.schedule.queued_s}, generation)
    return generation


def retrieved_passages(job: Job, threshold: float) -> list[ScoredPassage]:
    """What a finished retrieval found over the threshold, best first."""
    return [hit for hit in job.result or () if hit.score > threshold]


def record_retrieval(sequence: Sequence, job: Job, hits: abc.Sequence[ScoredPassage]) -> None:
    """Notes a finished retrieval in the trace and the counters."""
    listed = [{**fields_of(hit.passage, "id", "title", "source", "veracity"), "score": hit.score} for hit in hits]
    extra = {"error": job.error} if job.error else {}
    sequence.record("retrieval", query=job.payload.text, passages=listed, latency_s=job.latency_s, **extra)
    sequence.stats.retrievals += 1
    sequence.stats.retrieval_wait_s += job.latency_s


def record_checking(sequence: Sequence, index: int) -> None:
    """Notes in the trace that a sentence of the text is being checked."""
    span, text = sequence.output_text.sentences[index], sequence.output_text
    place = {"start": span.start, "end": span.end, "text": text.text_of(span)}
    sequence.record("checking", number=index + 1, **place, attempt=sequence.feedback.attempt_at(span.start))


def record_check(sequence: Sequence, job: Job, index: int, result: VerificationResult) -> None:
    """Notes what a check found of a sentence in the trace, among the evidence and among the sources."""
    span = sequence.output_text.sentences[index]
    sequence.evidence += result.evidence
    sequence.sources.update({item.passage.id: item.passage for item in result.evidence})
    extra = {"error": job.error} if job.error else {}
    sequence.record(
        "verification",
        start=span.start,
        end=span.end,
        text=sequence.output_text.text_of(span),
        **described(result),
        latency_s=job.latency_s,
        attempt=sequence.feedback.attempt_at(span.start),
        **extra,
    )


def sentence_data(sentence: Sentence) -> dict[str, Any]:
    """What a stream tells of a sentence that is final."""
    return {
        "start": sentence.start,
        "end": sentence.end,
        "text": sentence.text,
        "verdict": sentence.verdict.value,
        "score": sentence.score,
        "claims": [{"text": claim.text, "verdict": claim.verdict.value} for claim in sentence.claims],
        "attempts": sentence.attempts,
        "removed": list(sentence.removed),
        **({"quotes": sentence.quotes} if sentence.quotes else {}),
    }


def _num_final(sequence: Sequence) -> int:
    """How many sentences no rewind can reach: their checks are over, and so are those of sentences that reopen them."""
    final = sequence.settled
    for index in range(final, len(sequence.output_text.sentences)):
        if sequence.feedback.state_of(index) is None:
            break
        if not sequence.output_text.is_reopened_by_next(sequence.output_text.sentences[index]):
            final = index + 1
    return final


def _commit(sequence: Sequence, index: int, state: SentenceState) -> None:
    sequence.feedback.set_state(index, state)
    sequence.settled = index + 1
    span = sequence.output_text.sentences[index]
    text = sequence.output_text.text_of(span)
    sequence.record("commit", start=span.start, end=span.end, text=text, verdict=state.verdict.value)
    if sequence.listener is not None:
        sequence.emit("sentence", sentence_data(_sentence(sequence, span, state)))


def _num_discarded(sequence: Sequence) -> int:
    """Tokens that did not become the text; those of a composed one have been counted where they were written."""
    own = len(sequence.output_text.ids) if sequence.policy.is_composed else 0
    return max(sequence.stats.tokens_discarded - own, 0)


def send(sequence: Sequence, upto: int) -> None:
    """Emits the text up to a code point as final, with how many tokens have been written and discarded for it."""
    listener, output, begin = sequence.listener, sequence.output_text, sequence.sent_chars
    if upto <= begin:
        return
    if listener is not None:
        discarded = _num_discarded(sequence) if sequence.stats.tokens_discarded else 0
        num_tokens, text = len(output.ids) + discarded, output.text_between(begin, upto)
        data = {"text": text, "num_tokens": num_tokens, "num_discarded": discarded}
        listener(StreamEvent("text", data, None, sequence.index))
    sequence.sent_chars = upto


def _sentence(sequence: Sequence, span: Span, state: SentenceState) -> Sentence:
    text = sequence.output_text.text_of(span)
    removed = [attempt.text for attempt in sequence.feedback.attempts.get(span.start, ())]
    failed = state.verdict in (Verdict.REFUTED, Verdict.INCONCLUSIVE)
    if failed and text in removed:  # kept although it failed: the wording itself was not removed
        removed.remove(text)
    return Sentence(
        text=text,
        start=span.start,
        end=span.end,
        verdict=state.verdict,
        score=state.score,
        claims=state.claims,
        source_ids=tuple(dict.fromkeys(id_ for claim in state.claims for id_ in claim.evidence_ids)),
        attempts=len(removed) + 1,
        removed=tuple(removed),
        attention=_mean_attention(sequence, span),
        reason=state.reason,
        quotes=state.quotes,
    )


def _mean_attention(sequence: Sequence, span: Span) -> dict[str, float]:
    """Mean share per passage id over the sentence's tokens; what is missing to 1 went to the context."""
    shares = [token.attention for token in sequence.output_text.tokens[span.first_token : span.end_token]]
    total: Counter[str] = Counter()
    for share in shares:
        total.update(share or {})
    return {passage_id: value / len(shares) for passage_id, value in total.items()}


def _generation(sequence: Sequence) -> Generation:
    output = sequence.output_text
    states = [(span, sequence.feedback.state_of(index) or _NOT_VERIFIED) for index, span in enumerate(output.sentences)]
    wants_top = bool(sequence.request.params.logprobs)
    scores = [sequence.prompt_scores[place] for place in sorted(sequence.prompt_scores)]
    return Generation(
        prompt=sequence.request.prompt,
        text=output.text,
        token_ids=tuple(output.ids),
        finish_reason=sequence.finish or "error",
        sentences=tuple(_sentence(sequence, span, state) for span, state in states),
        sources=dict(sequence.sources),
        stats=replace(sequence.stats),
        trace=tuple(sequence.trace),
        logprobs=tuple(token.logprob for token in output.tokens),
        top_logprobs=tuple(dict(token.top_logprobs or {}) for token in output.tokens) if wants_top else (),
        prompt_logprobs=tuple(score.logprob for score in scores),
        prompt_top_logprobs=tuple(score.top for score in scores) if sequence.request.params.prompt_logprobs else (),
        index=sequence.index,
        error=sequence.error,
        reasoning="" if output.reasoning is None else output.reasoning.text,
    )
