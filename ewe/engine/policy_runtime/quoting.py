"""Quotations: a sentence of a passage takes the place of one that was written, as if its tokens had been drawn."""

from __future__ import annotations

from collections import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ewe.engine.answer_text.detokenizer import Detokenizer
from ewe.engine.evidence.sentence_checks import SentenceState, fields_of
from ewe.engine.evidence.workers import Job
from ewe.engine.output import record_check, record_checking, show
from ewe.engine.policy_runtime.rewind import Rewinder
from ewe.engine.sampling.sampler import Token
from ewe.engine.sequence import Sequence
from ewe.text.quotation import Quotation
from ewe.types import Claim, Evidence, Verdict, VerificationResult


@dataclass(eq=False)
class Quoter:
    """Puts quotations into texts. encode: the tokens of a text, as a prompt has them, without a prefix."""

    rewinder: Rewinder
    encode: Callable[[str], abc.Sequence[int]]

    def quote(self, sequence: Sequence, index: int, quotation: Quotation) -> bool:
        """Replaces a sentence, and all after it, by a quotation, which its passage supports; the text goes on after it.

        The number after the last sentence puts it in the place of what is being written, or behind a text that has
        ended. Returns whether it can stand there: its tokens give its very words, the answer has room for it, and
        nothing in it ends a text or calls a tool. If not, nothing has changed.
        """
        output = sequence.output_text
        start, keep = output.start_of(index)
        is_last = index == len(output.sentences)
        if is_last and index and output.fixed_chars(keep) < output.sentences[-1].end:
            return False  # a stop string could still take away the last sentence
        lead = output.text[output.end_of(keep) : start]
        lead = " " if is_last and start == len(output.text) and not output.text[-1:].isspace() else lead
        before = output.text[: output.end_of(keep)] + lead
        before_ids = (*sequence.request.prompt_ids, *output.ids[:keep])
        ids = written(self.encode, output.tokenizer, before_ids, lead, quotation)
        has_room = keep + len(ids) <= sequence.request.max_tokens
        if not ids or not has_room or not output.takes(before + quotation.text):
            return False
        known, states = output.sentences[:index], sequence.feedback.states[:index]
        self.rewinder.rewind(sequence, index, "quote")
        places = [(one.start, one.end) for one in known[len(output.sentences) :]]
        places.append((len(before), len(before) + len(quotation.text)))
        output.append_sentences([Token(token_id, 0.0, 0.0) for token_id in ids], places)
        sequence.feedback.states = states
        self._record(sequence, index, quotation)
        sequence.stats.tokens_copied += len(ids)
        sequence.end_text(stopped=False)
        return True

    def _record(self, sequence: Sequence, index: int, quotation: Quotation) -> None:
        """Notes a quotation as what it is, and as a check that finds what is known of it."""
        state, span, passage = sequence.feedback, sequence.output_text.sentences[index], quotation.passage
        state.progress.retrieved = state.progress.verified = index + 1
        claim = Claim(quotation.text, 0, len(quotation.text), Verdict.SUPPORTED, 1.0, (passage.id,), support=1.0)
        evidence = Evidence(passage, Verdict.SUPPORTED, 1.0, quotation.text, claim.text)
        show(sequence)  # before its check is announced
        place: dict[str, Any] = {"start": span.start, "end": span.end, "text": quotation.text}
        sequence.record("quote", **place, **fields_of(passage, "id", "title", "source"))
        record_checking(sequence, index)
        job = Job(quotation, 0.0)
        job.settle()
        record_check(sequence, job, index, VerificationResult((claim,), (evidence,)))
        state.set_state(index, SentenceState(Verdict.SUPPORTED, 1.0, (claim,), quotes=passage.id))


def written(
    encode: Callable[[str], abc.Sequence[int]],
    tokenizer: Any,
    before: abc.Sequence[int],
    lead: str,
    quotation: Quotation,
) -> list[int]:
    """The tokens that continue those before by the lead, which is white space or a sentence's end, and the quotation.

    Some tokenizers put a space before every text, which then stands for the lead's, or in the way of it. None if no
    tokens give that text.
    """
    text = lead + quotation.text
    anchored, anchor = encode(f"a{text}"), encode("a")
    inside = anchored[len(anchor) :] if anchored[: len(anchor)] == anchor else []
    for ids in (encode(text), encode(text.lstrip(" ")), inside):
        if _text_of(tokenizer, before, ids) == text:
            return list(ids)
    return []


def _text_of(tokenizer: Any, before: abc.Sequence[int], ids: abc.Sequence[int]) -> str:
    detokenizer = Detokenizer(tokenizer, before)
    for token_id in ids:
        detokenizer.append(token_id)
    return detokenizer.text
