"""What reading the passages found for a claim gives, whichever way a judge reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ewe.types import Passage, Verdict
from ewe.verification.combination import Decision, JudgedPiece, source_weight
from ewe.verification.judges.protocol import Judge, can_judge


@dataclass(frozen=True, slots=True)
class StatedClaim:
    """A claim that stands alone, how its sentence words it, and the sentence that stands before that."""

    text: str
    wording: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class ClaimReading:
    """The decision on a claim, and the judged evidence for it.

    is_mentioned: whether the passages speak of what is claimed, though they may not settle it.
    """

    decision: Decision
    pieces: tuple[JudgedPiece, ...] = ()
    is_mentioned: bool = False


class ClaimReader(Protocol):
    """A way of showing passages to a judge, and of deciding by its answers."""

    def read(self, claims: Sequence[StatedClaim], passages: Sequence[Sequence[Passage]]) -> list[ClaimReading]:
        """Per claim the reading of its passages; all that can be asked at once is."""

    def warm(self) -> None:
        """Has the judge load its model, if it has one."""


class CascadeReader:
    """Two readers in a row: the first is quick and right where it decides, the second reads what it leaves open.

    judge: that the second reader asks; where it turns out to be none, the first decides alone.
    """

    def __init__(self, first: ClaimReader, second: ClaimReader, judge: Judge) -> None:
        self._first = first
        self._second = second
        self._judge = judge

    def read(self, claims: Sequence[StatedClaim], passages: Sequence[Sequence[Passage]]) -> list[ClaimReading]:
        """Per claim the reading of its passages; the second reader is asked once, if at all."""
        readings = self._first.read(claims, passages)
        left = [at for at, one in enumerate(readings) if one.decision.verdict is Verdict.INCONCLUSIVE]
        if left and can_judge(self._judge):
            again = self._second.read([claims[at] for at in left], [passages[at] for at in left])
            for at, reading in zip(left, again, strict=True):
                readings[at] = reading
        return readings

    def warm(self) -> None:
        """Has both judges load their models."""
        self._first.warm()
        self._second.warm()


def weight_of(passage: Passage, by_veracity: bool) -> float:
    """How much a passage counts, in [0, 1]: by its source's veracity, or fully."""
    return source_weight(passage.veracity) if by_veracity else 1.0
