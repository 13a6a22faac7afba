"""What reading the passages found for a claim gives, whichever way a judge reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ewe.types import Passage
from ewe.verification.combination import Decision, JudgedPiece, source_weight


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


def weight_of(passage: Passage, by_veracity: bool) -> float:
    """How much a passage counts, in [0, 1]: by its source's veracity, or fully."""
    return source_weight(passage.veracity) if by_veracity else 1.0
