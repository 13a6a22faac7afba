"""Answers that are not drawn from their request's prompt: put together from sentences, or taken from another text."""

from collections.abc import Callable

from ewe.engine.answer_text.sentence_spans import Span
from ewe.engine.evidence.sentence_checks import Attempt, SentenceState, described
from ewe.engine.output import send, show
from ewe.engine.sequence import Sequence
from ewe.engine.side_texts import Add
from ewe.text.check_result import why_no_claim
from ewe.types import FinishReason, VerificationResult


def add_sentence(answer: Sequence, step: Add, encode: Callable[[str], list[int]]) -> None:
    """Adds a sentence; wordings that were removed are shown, and taken back, before it. A stop string ends the answer.

    encode: a text's tokens.
    """
    output, words, begin = answer.output_text, step.text.strip(), len(answer.output_text.text)
    gap = step.text[: len(step.text) - len(step.text.lstrip())]
    start = begin + len(gap)
    for attempt, (wording, result) in enumerate(step.removed, 1):
        answer.emit("draft", {"text": gap + wording, "start": begin})
        _record_check(answer, start, wording, result, attempt)
        answer.record(
            "rewind",
            start=start,
            text=wording,
            kept_chars=begin,
            discarded_tokens=len(encode(wording)),
            attempt=attempt,
            reason="refuted",
        )
        answer.stats.rewrites += 1
    answer.emit("draft", {"text": step.text, "start": begin})
    if step.result is not None and step.result.claims:
        _record_check(answer, start, words, step.result, len(step.removed) + 1)
    if output.add_text(step.text):
        answer.finish = "stop"
    elif words:
        output.sentences.append(Span(start, start + len(words), 0, 0))
        answer.feedback.attempts[start] = [Attempt(wording, (), SentenceState()) for wording, _ in step.removed]
        answer.feedback.set_state(len(output.sentences) - 1, _state(step.result))
    output.ids = encode(output.text)
    answer.shown_chars = len(output.text)
    send(answer, len(output.text))


def adopt(answer: Sequence, source: Sequence, reason: FinishReason) -> None:
    """Makes a finished text, with its sentences, the answer, and ends it."""
    answer.output_text, answer.feedback.states = source.output_text, source.feedback.states
    answer.finish = reason
    show(answer)
    send(answer, len(answer.output_text.text))


def _state(result: VerificationResult | None) -> SentenceState:
    if result is None:
        return SentenceState(reason="no verifier")
    reason = "" if result.claims else "; ".join(result.notes) or why_no_claim(result)
    return SentenceState(result.verdict, result.score, result.claims, reason)


def _record_check(answer: Sequence, start: int, wording: str, result: VerificationResult, attempt: int) -> None:
    answer.evidence += result.evidence
    answer.sources.update({item.passage.id: item.passage for item in result.evidence})
    place = {"start": start, "end": start + len(wording), "text": wording, "attempt": attempt}
    answer.record("checking", number=len(answer.output_text.sentences) + 1, **place)
    answer.record("verification", **place, **described(result), latency_s=answer.policy.check_latency_s)
