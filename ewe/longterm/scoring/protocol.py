"""What a scorer of memories is asked when a query found some, and what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ewe.longterm.records import Memory


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that was found for a query, and how close it is to it (in [-1, 1]; the finder's cosine or share)."""

    memory: Memory
    similarity: float


@dataclass(frozen=True, slots=True)
class Score:
    """What a scorer says of one candidate.

    belief: how far the memory can be believed, in [0, 1]; rank: higher comes first (the scale is the scorer's own);
    usable: whether the scorer's own rule lets it be used, before any threshold of the query.
    """

    belief: float
    rank: float
    usable: bool = True


@runtime_checkable
class MemoryScorer(Protocol):
    """Says how far the memories found for one query can be believed, and in which order they come."""

    name: str

    def score(self, candidates: Sequence[Candidate], now: float) -> list[Score]:
        """One score per candidate, in their order; the answers do not depend on that order. now: unix seconds."""
