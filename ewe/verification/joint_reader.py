"""Reading passages together, as a reader would: for judges that have room for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ewe.config.lazy import warm
from ewe.types import Passage, Verdict
from ewe.verification.claim_reading import ClaimReading, StatedClaim, weight_of
from ewe.verification.combination import JudgedPiece, Thresholds, combine
from ewe.verification.excerpts import Excerpt, ExcerptSelector
from ewe.verification.judges.protocol import INCONCLUSIVE, Judge, ReadingWindow


@dataclass(frozen=True, slots=True)
class _Question:
    """A claim beside what is to be read at once, the excerpt that shares most with it first; and the weight of it."""

    claim: StatedClaim
    excerpts: tuple[Excerpt, ...]
    weight: float

    def piece(self, probabilities: Sequence[float]) -> JudgedPiece:
        """All excerpts as one piece of evidence, under the name of the best."""
        supported, refuted, rest = probabilities
        best = self.excerpts[0]
        return JudgedPiece(best.passage, best.sentence, self.weight, (supported, refuted, rest))

    def apart(self) -> Iterator[_Question]:
        """The same claim beside each excerpt alone."""
        return (replace(self, excerpts=(excerpt,)) for excerpt in self.excerpts)


class JointReader:
    """Shows a judge the best of all passages together, so that a claim may rest on several.

    Passages that do not count the same (by_veracity) are read one by one. What is refuted by several together is read
    again, excerpt by excerpt: only then is it known which of them refutes it, and whether another one supports it.
    """

    def __init__(self, judge: Judge, window: ReadingWindow, thresholds: Thresholds, by_veracity: bool) -> None:
        self._judge = judge
        self._window = window
        self._thresholds = thresholds
        self._by_veracity = by_veracity
        self._selector = ExcerptSelector()

    def read(self, claims: Sequence[StatedClaim], passages: Sequence[Sequence[Passage]]) -> list[ClaimReading]:
        """Per claim one piece for all of its passages, or one for each of them where they do not count the same."""
        questions = [list(self._questions(claim, own)) for claim, own in zip(claims, passages, strict=True)]
        readings = self._read(questions)
        again = [at for at, reading in enumerate(readings) if _needs_explaining(reading, questions[at])]
        apart = self._read([[alone for one in questions[at] for alone in one.apart()] for at in again])
        for at, reading in zip(again, apart, strict=True):
            readings[at] = _explained(readings[at], reading)
        return readings

    def warm(self) -> None:
        """Has the judge load its model, if it has one."""
        warm(self._judge)

    def _questions(self, claim: StatedClaim, passages: Sequence[Passage]) -> Iterator[_Question]:
        weights = {weight_of(passage, self._by_veracity) for passage in passages}
        for group in [passages] if len(weights) == 1 else [[one] for one in passages]:
            excerpts = self._selector.select(claim.text, group, self._window.max_characters)
            if excerpts:
                ranked = tuple(sorted(excerpts, key=lambda one: -one.share))
                yield _Question(claim, ranked, weight_of(group[0], self._by_veracity))

    def _read(self, questions: Sequence[Sequence[_Question]]) -> list[ClaimReading]:
        """Per claim what the judge says to its questions; it is asked once, if at all."""
        pairs = [self._pair(one) for own in questions for one in own]
        rows = iter(self._judge.judge(pairs).tolist() if pairs else ())
        return [self._reading(own, [next(rows) for _ in own]) for own in questions]

    def _pair(self, question: _Question) -> tuple[str, str]:
        shown = [excerpt.shown for excerpt in question.excerpts]
        return self._window.evidence(shown, question.claim.before), question.claim.text

    def _reading(self, questions: Sequence[_Question], rows: Sequence[Sequence[float]]) -> ClaimReading:
        pieces = tuple(one.piece(row) for one, row in zip(questions, rows, strict=True))
        is_mentioned = any(row[INCONCLUSIVE] < 0.5 for row in rows)
        return ClaimReading(combine(pieces, self._thresholds), pieces, is_mentioned)


def _needs_explaining(reading: ClaimReading, questions: Sequence[_Question]) -> bool:
    return reading.decision.verdict is Verdict.REFUTED and any(len(one.excerpts) > 1 for one in questions)


def _explained(joint: ClaimReading, apart: ClaimReading) -> ClaimReading:
    """A refutation by excerpts together with the evidence of each alone; the decision of these, if one supports."""
    single = apart.decision
    if not any(piece.stance is Verdict.SUPPORTED for piece in single.evidence):
        single = replace(joint.decision, evidence=single.evidence or joint.decision.evidence)
    return replace(joint, decision=single)
