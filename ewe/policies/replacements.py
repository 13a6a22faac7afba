"""What may stand in the place of a sentence that failed: the best of several wordings, a quotation, or nothing."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ewe.config import FeedbackConfig
from ewe.engine.effects import Draw, End, Judge, Quote, Remember, Rewind, Steps, Take, Verified, Write
from ewe.engine.policy_answer import Answer
from ewe.text.check_result import REPETITIONS
from ewe.text.overviews import asks_for_all, asks_for_length
from ewe.text.quotation import answers_otherwise, num_shared
from ewe.text.sentences import is_inside
from ewe.types import Lane, Verdict, VerificationResult

if TYPE_CHECKING:
    from ewe.engine.policy_runtime.wordings import Wording

GoesBack = Generator[Any, Any, bool]
"""Steps of a policy that give whether the text has gone back, or has another sentence now."""

_QUOTES_TRIED = 3  # Some do not fit into what is left of the answer.
_FEWEST_SENTENCES = 4  # Of an overview.
_IN_A_LIST = re.compile(r"(?:^|\n)[ \t]*(?:[-*•#|]|\d+[.)])[^\n]*\Z")  # the last line


def settled(settings: FeedbackConfig, answer: Answer) -> FeedbackConfig:
    """The settings with what "auto" stands for: an overview is held to the passages that stand in its prompt.

    Without passages there nothing is quoted.
    """
    chosen = {"rewrite_when": "unsupported" if _is_held(answer) else "refuted"}
    if answer.prompt_places is None:
        chosen["on_exhausted"] = "keep_best"
    return settings.model_copy(update={name: to for name, to in chosen.items() if getattr(settings, name) == "auto"})


def _is_held(answer: Answer) -> bool:
    return answer.prompt_places is not None and asks_for_all(answer.question)


def draw(answer: Answer, settings: FeedbackConfig, sentence: int) -> GoesBack:
    """Draws several wordings of a sentence and goes on with the best; gives whether it has.

    One wording is simply written, and so is the end of JSON, and one whose rewind has reopened the sentence before it.
    """
    if settings.wordings == 1 or answer.has_grammar or len(answer.sentences) != sentence:
        return False
    yield Draw(sentence, settings.wordings)
    drawn = yield Write()
    yield Judge(drawn.wordings, wants_answers(answer, settings))
    judged = yield Write()
    ranks = [_rank(answer, *pair) for pair in zip(judged.wordings, judged.results, strict=True)]
    yield Take(sentence, judged, ranks.index(max(ranks)))
    return True


def _rank(answer: Answer, wording: Wording, result: VerificationResult) -> tuple[bool, bool, int, float]:
    """Higher is better: not refuted and nothing that repeats, supported, nearer to the question, likelier."""
    fails = result.verdict is Verdict.REFUTED or result.reason in REPETITIONS
    near = num_shared(answer.question, wording.text)
    return not fails, result.verdict is Verdict.SUPPORTED, near, wording.mean_logprob


def may_quote(answer: Answer, settings: FeedbackConfig) -> bool:
    """Whether quotations may stand in the place of what fails."""
    return settings.on_exhausted in ("auto", "quote") and not answer.has_grammar


def wants_answers(answer: Answer, settings: FeedbackConfig) -> bool:
    """Whether a sentence that answers the question may stand in the place of what fails."""
    return may_quote(answer, settings) and not asks_for_all(answer.question)


def gives_way(answer: Answer, settings: FeedbackConfig, check: Verified) -> bool:
    """Whether an answer's first sentence, which nothing bears out, is to give way to one that answers the question."""
    result = check.result
    if check.sentence or result.verdict is not Verdict.INCONCLUSIVE or not wants_answers(answer, settings):
        return False
    wording = " ".join(claim.text for claim in result.claims)
    return answers_otherwise(
        answer.question, wording, [item.excerpt for item in result.answers], answer.prompt_passages
    )


def quote(answer: Answer, sentence: int, result: VerificationResult) -> GoesBack:
    """Puts the best sentence of the evidence in a sentence's place, if there is one."""
    for quotation in answer.quotations(sentence, result)[:_QUOTES_TRIED]:
        if (yield Quote(sentence, quotation)):
            return True
    return False


def lengthen(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Puts a quotation behind an overview that the model ended after very few sentences; it writes on after that."""
    is_short = answer.has_ended_itself and 0 < len(answer.sentences) < _FEWEST_SENTENCES and answer.is_settled
    if not is_short or not may_quote(answer, settings):
        return
    text = answer.text.text.rstrip()
    is_prose = text.endswith((".", "!", '"', "”")) and not _IN_A_LIST.search(text)
    if is_prose and _is_held(answer) and not asks_for_length(answer.question):
        yield from quote(answer, len(answer.sentences), VerificationResult())


def leave_circle(answer: Answer, settings: FeedbackConfig, dropped: set[int]) -> GoesBack:
    """Takes back a sentence that repeats itself without an end; the second time it gives way, or the text ends."""
    sentence = len(answer.sentences)
    if settings.on_repeat != "drop" or answer.has_grammar or not (answer.is_settled and answer.goes_in_circles):
        return False
    if is_inside(len(answer.text.text) - 1, answer.code_blocks):
        return False
    may_give_way = sentence in dropped and may_quote(answer, settings)
    if not (may_give_way and (yield from quote(answer, sentence, VerificationResult()))):
        yield from _leave_out(answer, sentence, dropped)
    return True


def drop(answer: Answer, check: Verified, dropped: set[int]) -> GoesBack:
    """Leaves a sentence out and goes on; a second one dropped before anything else was kept ends the text."""
    attempts, is_first = answer.attempts(check.sentence), check.sentence not in dropped
    yield from _leave_out(answer, check.sentence, dropped)
    if is_first:
        attempts.clear()
        yield Remember(answer.evidence_of(check.result), Lane.VERIFICATION)
    return True


def _leave_out(answer: Answer, sentence: int, dropped: set[int]) -> Steps:
    yield Rewind(sentence, "drop")
    if sentence in dropped:
        yield End()
    else:
        dropped.add(sentence)
        answer.vary(sentence)
