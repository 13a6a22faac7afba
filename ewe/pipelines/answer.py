"""The answer of a pipeline that does not come from one last generation: its text, sentences, stream and result."""

import time
from collections.abc import Callable
from dataclasses import replace

from ewe.engine.output import sentence_data
from ewe.engine.sentence_checks import described
from ewe.engine.sequence import Sequence
from ewe.policies.steps import Write
from ewe.text.check_result import why_no_claim
from ewe.types import FinishReason, Generation, Sentence, VerificationResult


class ComposedAnswer:
    """What has been written of one answer. encode: a text's tokens; is_full: whether a stop string ended it."""

    def __init__(self, sequence: Sequence, encode: Callable[[str], list[int]]) -> None:
        self.text = ""
        self.is_full = False
        self.latency_s = 0.0
        self._sequence = sequence
        self._encode = encode
        self._sentences: list[Sentence] = []

    def add(self, step: Write) -> None:
        """Adds a sentence; wordings that were removed are shown, and taken back, before it."""
        words = step.text.strip()
        start = len(self.text) + len(step.text) - len(step.text.lstrip())
        gap = step.text[: start - len(self.text)]
        for attempt, (wording, result) in enumerate(step.removed, 1):
            self._emit_draft(gap + wording)
            self._tell_check(start, wording, result, attempt)
            self._sequence.record(
                "rewind",
                start=start,
                text=wording,
                kept_chars=len(self.text),
                discarded_tokens=len(self._encode(wording)),
                attempt=attempt,
                reason="refuted",
            )
            self._sequence.stats.rewrites += 1
        self._emit_draft(step.text)
        if step.result is not None and step.result.claims:
            self._tell_check(start, words, step.result, len(step.removed) + 1)
        self._extend(step.text)
        if words and not self.is_full:
            self._sentences.append(_sentence(words, start, step))

    def adopt(self, generation: Generation) -> None:
        """Takes the text of a generation, with its sentences, as the answer."""
        self._emit_draft(generation.text)
        self._extend(generation.text)
        self._sentences = list(generation.sentences)

    def close(self, reason: FinishReason, error: str = "", source: Generation | None = None) -> Generation:
        """Ends the stream and gives the result; source: the generation that it is, which has tokens of its own."""
        sequence, stats = self._sequence, self._sequence.stats
        for sentence in self._sentences:
            sequence.record(
                "commit", start=sentence.start, end=sentence.end, text=sentence.text, verdict=sentence.verdict.value
            )
            sequence.emit("sentence", sentence_data(sentence))
        sequence.record("finish", reason=reason)
        token_ids = tuple(self._encode(self.text)) if source is None else source.token_ids
        stats.tokens_kept = len(token_ids)
        stats.tokens_discarded = max(stats.tokens_discarded - len(token_ids), 0)
        stats.sentences = len(self._sentences)
        stats.total_s = time.monotonic() - sequence.arrived
        generation = Generation(
            prompt=sequence.request.prompt,
            text=self.text,
            token_ids=token_ids,
            finish_reason=reason,
            sentences=tuple(self._sentences),
            sources=dict(sequence.sources),
            stats=replace(stats),
            trace=tuple(sequence.trace),
            logprobs=() if source is None else source.logprobs,
            top_logprobs=() if source is None else source.top_logprobs,
            index=sequence.index,
            error=error,
        )
        sequence.emit("finish", {"reason": reason, "queued_s": sequence.schedule.queued_s}, generation)
        return generation

    def _emit_draft(self, text: str) -> None:
        self._sequence.emit("draft", {"text": text, "start": len(self.text)})

    def _extend(self, text: str) -> None:
        """Sends final text, up to the first stop string."""
        before, whole = len(self.text), self.text + text
        found = [whole.find(stop) for stop in self._sequence.request.params.stop]
        end = min((max(place, before) for place in found if place >= 0), default=None)  # what is sent stays
        self.text, self.is_full = whole[:end], end is not None
        kept, written = len(self._encode(self.text)), self._sequence.stats.tokens_discarded
        counts = {"num_tokens": max(written, kept), "num_discarded": max(written - kept, 0)}
        self._sequence.emit("text", {"text": self.text[before:], **counts})

    def _tell_check(self, start: int, wording: str, result: VerificationResult, attempt: int) -> None:
        sequence = self._sequence
        sequence.evidence += result.evidence
        for item in result.evidence:
            sequence.sources[item.passage.id] = item.passage
        place = {"start": start, "end": start + len(wording), "text": wording, "attempt": attempt}
        sequence.record("checking", number=len(self._sentences) + 1, **place)
        sequence.record("verification", **place, **described(result), latency_s=self.latency_s)


def _sentence(words: str, start: int, step: Write) -> Sentence:
    result = step.result or VerificationResult(notes=("no verifier",))
    claims, removed = result.claims, tuple(wording for wording, _ in step.removed)
    return Sentence(
        text=words,
        start=start,
        end=start + len(words),
        verdict=result.verdict,
        score=result.score,
        claims=claims,
        source_ids=tuple(dict.fromkeys(id_ for claim in claims for id_ in claim.evidence_ids)),
        attempts=len(removed) + 1,
        removed=removed,
        reason="" if claims else "; ".join(result.notes) or why_no_claim(result),
    )
