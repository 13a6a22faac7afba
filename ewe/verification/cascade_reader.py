"""Two readers in a row: a quick one that is right where it decides, and one for what it leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from ewe.types import Passage, Verdict
from ewe.verification.claim_reading import ClaimReader, ClaimReading, StatedClaim
from ewe.verification.judges.protocol import Judge, can_judge


class CascadeReader:
    """The decisions of the first reader; those of the second on what the first leaves open.

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
