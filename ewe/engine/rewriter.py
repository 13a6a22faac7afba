"""What becomes of verdicts: sentences are kept, or dropped and written again under new memory (design 2.4)."""

import time
from dataclasses import dataclass

from ewe.checked import LOOPS, REPEATS, why_no_claim
from ewe.config import FeedbackConfig
from ewe.engine.output_text import Span
from ewe.engine.refresh import MemoryKeeper
from ewe.engine.sentence_checks import Attempt, SentenceState, described
from ewe.engine.sequence import Sequence
from ewe.protocols import FeedbackBuilder
from ewe.types import Lane, ScoredPassage, Verdict, VerificationResult

_MUCH_MORE = 0.2  # Share of the evidence's weight; below it two wordings are supported alike.


@dataclass(eq=False)
class Rewriter:
    """Applies verdicts to a sequence.

    feedback: turns a verification result into passages for the verification lane; None without a verifier.
    """

    keeper: MemoryKeeper
    config: FeedbackConfig
    feedback: FeedbackBuilder | None

    def rewrite_unsure(self, sequence: Sequence, index: int, error: str) -> None:
        """Goes back to an unsure sentence whose retrieval has come (FLARE); with an error the sentence stays."""
        if error:
            sequence.feedback.set_state(index, SentenceState(reason="the retrieval failed"))
            sequence.feedback.retrieved = index + 1
            return
        self._remember(sequence, sequence.output_text.sentences[index], SentenceState(reason="an unsure look-ahead"))
        self.keeper.clear(sequence)
        self._go_back(sequence, index, "unsure")

    def apply_verdicts(self, sequence: Sequence) -> None:
        """Works off the oldest finished check: sets what is known, or rewinds to the first sentence that failed."""
        check = sequence.feedback.checks[0]
        job = check.job
        self._count_wait(sequence)
        sequence.stats.verifications += 1
        for position, index in enumerate(check.sentences):
            result = VerificationResult() if job.error else job.result[position]
            reason = job.error or why_no_claim(result)
            state = SentenceState(result.verdict, result.score, result.claims, reason)
            self._record(sequence, index, result)
            if index and result.reason in (REPEATS, LOOPS) and _may_drop(sequence, self.config.on_repeat):
                self._drop(sequence, index, result)
                return
            failed = self._fails(state.verdict)
            if failed and self._rewrite(sequence, index, state, result):
                return
            if not failed and self._is_worse(sequence, index, state):
                return
            sequence.feedback.set_state(index, state)
        sequence.feedback.checks.popleft()
        self.keeper.drop_snapshot(check.snapshot)

    def _fails(self, verdict: Verdict) -> bool:
        """Whether a sentence with this verdict is to be written again."""
        is_open = verdict is Verdict.INCONCLUSIVE and self.config.rewrite_when == "unsupported"
        return verdict is Verdict.REFUTED or is_open

    def _rewrite(self, sequence: Sequence, index: int, state: SentenceState, result: VerificationResult) -> bool:
        """Handles a sentence that failed; returns whether the draft was rewound (the check is over then)."""
        span = sequence.output_text.sentences[index]
        history = self._remember(sequence, span, state)
        if len(history) >= self.config.max_attempts:
            return self._exhausted(sequence, index, span, result)
        self._go_back(sequence, index, "refuted" if state.verdict is Verdict.REFUTED else "unsupported")
        self._add_feedback(sequence, index, result)
        return True

    def _is_worse(self, sequence: Sequence, index: int, state: SentenceState) -> bool:
        """Puts back an earlier wording that much more evidence supports than this one; returns whether it did.

        What was refuted on disputed evidence may be true, and what nothing speaks of may be made up.
        """
        span = sequence.output_text.sentences[index]
        earlier = sequence.feedback.attempts.get(span.start, [])
        if self.config.on_exhausted != "keep_best" or not earlier:
            return False
        best = max(reversed(earlier), key=lambda attempt: attempt.state.support)
        if best.state.support < state.support + _MUCH_MORE:
            return False
        self._remember(sequence, span, state)
        self._put_back(sequence, index, best, "less supported")
        return True

    def _exhausted(self, sequence: Sequence, index: int, span: Span, result: VerificationResult) -> bool:
        history = sequence.feedback.attempts[span.start]
        if self.config.on_exhausted == "flag":
            return False
        if _may_drop(sequence, self.config.on_exhausted):
            self._drop(sequence, index, result)
            return True
        best = max(reversed(history), key=lambda attempt: attempt.rank)
        if best is history[-1]:
            return False
        self._put_back(sequence, index, best, "keep_best")
        return True

    def _put_back(self, sequence: Sequence, index: int, best: Attempt, reason: str) -> None:
        """Replaces the last attempt at a sentence by an earlier one; the text goes on after it."""
        draft = sequence.output_text
        spans, states = draft.sentences[: index + 1], sequence.feedback.states[:index]
        span = spans.pop()
        self._go_back(sequence, index, reason)
        reopened = len(draft.sentences)  # fewer than `index` if the rewind reopened another sentence
        end_token = span.first_token + len(best.tokens)
        restored = Span(span.start, span.start + len(best.text), span.first_token, end_token)
        stopped = draft.restore(best.tokens, [*spans[reopened:], restored])
        sequence.feedback.states = [*states, best.state]
        sequence.feedback.retrieved = sequence.feedback.verified = index + 1
        sequence.end_text(stopped)

    def _drop(self, sequence: Sequence, index: int, result: VerificationResult) -> None:
        """Leaves the sentence out and goes on; a second one dropped at the same place ends the text."""
        span = sequence.output_text.sentences[index]
        self._go_back(sequence, index, "drop")
        if span.start in sequence.feedback.dropped:
            sequence.end_text(stopped=True)
            return
        sequence.feedback.dropped.add(span.start)
        sequence.feedback.attempts.pop(span.start, None)
        self._add_feedback(sequence, index, result)
        sequence.feedback.hot_sentence = index

    def _add_feedback(self, sequence: Sequence, index: int, result: VerificationResult) -> None:
        assert self.feedback is not None
        hits = [ScoredPassage(passage, 0.0) for passage in self.feedback.build(result)]
        self.keeper.plan(sequence, hits, Lane.VERIFICATION)
        # Under the same memory the same words would come again: the next wording is drawn at a higher temperature.
        sequence.feedback.hot_sentence = None if sequence.schedule.pending_units else index

    def _remember(self, sequence: Sequence, span: Span, state: SentenceState) -> list[Attempt]:
        text = sequence.output_text.text_of(span)
        tokens = tuple(sequence.output_text.tokens[span.first_token : span.end_token])
        history = sequence.feedback.attempts.setdefault(span.start, [])
        history.append(Attempt(text, tokens, state))
        return history

    def _go_back(self, sequence: Sequence, index: int, reason: str) -> None:
        """The transaction: everything is as if the tokens from the sentence's start on had never been.

        Kept are the memory (as it was when the check was opened), the attempts and the number of rewinds.
        """
        span = sequence.output_text.sentences[index]
        keep = sequence.output_text.tokens_before(span.start)
        discarded = len(sequence.output_text) - keep
        text = sequence.output_text.text_of(span)
        kept_chars = sequence.output_text.fixed_chars(keep)
        sequence.record(
            "rewind",
            start=span.start,
            text=text,
            kept_chars=kept_chars,
            discarded_tokens=discarded,
            attempt=sequence.feedback.attempt_at(span.start) - 1,
            reason=reason,
        )
        sequence.output_text.truncate(keep)
        assert len(sequence.output_text.sentences) >= sequence.settled, "a final sentence cannot be taken back"
        self._return_memory(sequence)
        # The last kept token is computed again, under the memory of now, as in a run that never went further.
        sequence.forget_ahead()
        del sequence.feedback.states[len(sequence.output_text.sentences) :]
        sequence.feedback.retrieved = min(sequence.feedback.retrieved, len(sequence.output_text.sentences))
        sequence.feedback.verified = min(sequence.feedback.verified, len(sequence.output_text.sentences))
        sequence.shown_chars = min(sequence.shown_chars, kept_chars)
        sequence.finish = None
        sequence.feedback.rewinds += 1
        sequence.stats.rewrites += 1
        sequence.stats.tokens_discarded += discarded

    def _return_memory(self, sequence: Sequence) -> None:
        """Gives up all that is under way and goes back to the memory that the first open check saw."""
        sequence.feedback.retrieval = None
        self.keeper.drop_pending(sequence)
        for position, check in enumerate(sequence.feedback.checks):
            if position == 0:
                sequence.feedback.retrieved = min(sequence.feedback.retrieved, check.retrieved)
            if position == 0 and check.snapshot is not None:
                self.keeper.restore(sequence, check.snapshot)
            else:
                self.keeper.drop_snapshot(check.snapshot)
        sequence.feedback.checks.clear()

    def _count_wait(self, sequence: Sequence) -> None:
        if sequence.feedback.checks_awaited_since is not None:
            sequence.stats.verification_wait_s += time.monotonic() - sequence.feedback.checks_awaited_since
            sequence.feedback.checks_awaited_since = None

    def _record(self, sequence: Sequence, index: int, result: VerificationResult) -> None:
        span = sequence.output_text.sentences[index]
        job = sequence.feedback.checks[0].job
        sequence.evidence += result.evidence
        for item in result.evidence:
            sequence.sources[item.passage.id] = item.passage
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


def _may_drop(sequence: Sequence, setting: str) -> bool:
    """Whether a sentence is dropped as the setting says: left out of a JSON text, the rest would have no end."""
    return setting == "drop" and sequence.grammar is None
