"""Rewinds as transactions: a text goes back, with its memory, its stream and all that was under way."""

from dataclasses import dataclass

from ewe.engine.answer_text.sentence_spans import Span
from ewe.engine.evidence.sentence_checks import Attempt
from ewe.engine.memory_manager import MemoryManager
from ewe.engine.sequence import Sequence


@dataclass(eq=False)
class Rewinder:
    """Takes texts back to the starts of sentences."""

    memory_manager: MemoryManager

    def rewind(self, sequence: Sequence, index: int, reason: str) -> None:
        """The transaction: everything is as if the tokens from the sentence's start on had never been.

        The number after the last sentence takes back what is being written, or that the text has ended. Kept are the
        memory (as it was when the oldest open check was opened), the attempts and the number of rewinds.
        """
        state, output = sequence.feedback, sequence.output_text
        start, keep = output.start_of(index)
        discarded = len(output) - keep
        kept_chars = output.fixed_chars(keep)
        sequence.record(
            "rewind",
            start=start,
            text=output.text_of(output.sentences[index]) if index < len(output.sentences) else output.text[start:],
            kept_chars=kept_chars,
            discarded_tokens=discarded,
            attempt=state.attempt_at(start) - 1,
            reason=reason,
        )
        output.truncate(keep)
        assert len(output.sentences) >= sequence.settled, "a final sentence cannot be taken back"
        self._return_memory(sequence)
        # The last kept token is computed again, under the memory of now, as in a run that never went further.
        sequence.forget_ahead()
        del state.states[len(output.sentences) :]
        state.progress.retrieved = min(state.progress.retrieved, len(output.sentences))
        state.progress.verified = min(state.progress.verified, len(output.sentences))
        sequence.shown_chars = min(sequence.shown_chars, kept_chars)
        sequence.sent_tokens = min(sequence.sent_tokens, keep)
        sequence.finish = None
        state.rewinds += 1
        sequence.stats.rewrites += 1
        sequence.stats.tokens_discarded += discarded

    def restore(self, sequence: Sequence, index: int, attempt: Attempt, reason: str) -> None:
        """Replaces the wording of a sentence by an earlier one; the text goes on after it."""
        state, output = sequence.feedback, sequence.output_text
        spans, states = output.sentences[: index + 1], state.states[:index]
        span = spans.pop()
        self.rewind(sequence, index, reason)
        reopened = len(output.sentences)  # fewer than `index` if the rewind reopened another sentence
        end_token = span.first_token + len(attempt.tokens)
        restored = Span(span.start, span.start + len(attempt.text), span.first_token, end_token)
        stopped = output.restore(attempt.tokens, [*spans[reopened:], restored])
        state.states = [*states, attempt.state]
        state.progress.retrieved = state.progress.verified = index + 1
        sequence.end_text(stopped)

    def _return_memory(self, sequence: Sequence) -> None:
        """Gives up all that is under way and goes back to the memory that the oldest open check saw."""
        policy, progress = sequence.policy, sequence.feedback.progress
        policy.retrieval = None
        self.memory_manager.drop_pending(sequence)
        for position, check in enumerate(policy.checks):
            if position == 0:
                progress.retrieved = min(progress.retrieved, check.retrieved)
            if position == 0 and check.snapshot is not None:
                self.memory_manager.restore(sequence, check.snapshot)
            else:
                self.memory_manager.drop_snapshot(check.snapshot)
        policy.checks.clear()
