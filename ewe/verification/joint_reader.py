"""Reading passages together, as a reader would: for judges that have room for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ewe.types import Passage
from ewe.verification.claim_reading import ClaimReading, StatedClaim, weight_of
from ewe.verification.combination import JudgedPiece
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


class JointReader:
    """Shows a judge the best of all passages together, so that a claim may rest on several.

    Passages that do not count the same (by_veracity) are read one by one.
    """

    def __init__(self, judge: Judge, window: ReadingWindow, by_veracity: bool) -> None:
        self._judge = judge
        self._window = window
        self._by_veracity = by_veracity
        self._selector = ExcerptSelector()

    def read(self, claims: Sequence[StatedClaim], passages: Sequence[Sequence[Passage]]) -> list[ClaimReading]:
        """Per claim one piece for all of its passages, or one for each of them where they do not count the same."""
        return self._read(claims, [self._groups(own) for own in passages])

    def read_apart(self, claims: Sequence[StatedClaim], passages: Sequence[Sequence[Passage]]) -> list[ClaimReading]:
        """Per claim one piece for each of its passages."""
        return self._read(claims, [[[one] for one in own] for own in passages])

    def _groups(self, passages: Sequence[Passage]) -> list[list[Passage]]:
        weights = {weight_of(passage, self._by_veracity) for passage in passages}
        return [list(passages)] if len(weights) == 1 else [[one] for one in passages]

    def _read(self, claims: Sequence[StatedClaim], groups: Sequence[Sequence[Sequence[Passage]]]) -> list[ClaimReading]:
        questions = [
            [one for group in own if (one := self._question(claim, group)).excerpts]
            for claim, own in zip(claims, groups, strict=True)
        ]
        rows = iter(self._judge.judge([self._pair(one) for own in questions for one in own]).tolist())
        return [_reading(own, [next(rows) for _ in own]) for own in questions]

    def _question(self, claim: StatedClaim, passages: Sequence[Passage]) -> _Question:
        excerpts = self._selector.select(claim.text, passages, self._window.max_characters)
        ranked = sorted(excerpts, key=lambda one: -one.share)
        return _Question(claim, tuple(ranked), max(weight_of(one, self._by_veracity) for one in passages))

    def _pair(self, question: _Question) -> tuple[str, str]:
        shown = [excerpt.shown for excerpt in question.excerpts]
        return self._window.evidence(shown, question.claim.before), question.claim.text


def _reading(questions: Sequence[_Question], rows: Sequence[Sequence[float]]) -> ClaimReading:
    pieces = tuple(one.piece(row) for one, row in zip(questions, rows, strict=True))
    is_joint = any(len(one.excerpts) > 1 for one in questions)
    return ClaimReading(pieces, is_joint, is_mentioned=any(row[INCONCLUSIVE] < 0.5 for row in rows))
