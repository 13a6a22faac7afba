"""What may change of a memory, and what it is then."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ewe.longterm.records import Memory

_REPLACED = ("veracity", "uncertainty", "content", "contradicts", "supersedes", "metadata")


@dataclass(frozen=True, slots=True)
class Change:
    """What a revision changes; None leaves a field as it is. correct, incorrect: feedback to count in.

    valid: valid_from and valid_until, either of which may be None (open). A higher veracity, or feedback that a memory
    is correct, confirms it at the time of the revision.
    """

    veracity: float | None = None
    uncertainty: float | None = None
    content: str | None = None
    contradicts: tuple[str, ...] | None = None
    supersedes: tuple[str, ...] | None = None
    metadata: Mapping[str, str] | None = None
    valid: tuple[float | None, float | None] | None = None
    correct: int = 0
    incorrect: int = 0

    def apply(self, memory: Memory, at: float) -> Memory:
        """The memory after the change. Raises InvalidRequestError if it would be none."""
        confirms = self.correct > 0 or (self.veracity is not None and self.veracity > memory.veracity)
        new: dict[str, Any] = {name: value for name in _REPLACED if (value := getattr(self, name)) is not None}
        if self.valid is not None:
            new |= {"valid_from": self.valid[0], "valid_until": self.valid[1]}
        return replace(
            memory,
            **new,
            updated_at=at,
            correct_count=memory.correct_count + self.correct,
            incorrect_count=memory.incorrect_count + self.incorrect,
            confirmed_at=max(memory.confirmed_at, at) if confirms else memory.confirmed_at,
        )
