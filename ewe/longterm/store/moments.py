"""When a memory was made and when it holds: what a search needs of many memories, without reading them."""

from __future__ import annotations

from dataclasses import dataclass

from ewe.longterm.records import holds

MOMENT_COLUMNS = "scope, kind = 'turn', created_at, valid_from, valid_until"
_SITTING = 3600.0  # seconds; turns further apart belong to two conversations


@dataclass(frozen=True, slots=True)
class Moment:
    """Times in seconds since 1970. is_turn: whether the memory is a turn of a conversation."""

    scope: int
    is_turn: bool
    created_at: float
    valid_from: float | None
    valid_until: float | None

    def is_beside(self, other: Moment) -> bool:
        """Whether two memories that were added one after the other are turns of one conversation."""
        together = abs(self.created_at - other.created_at) <= _SITTING
        return bool(self.is_turn and other.is_turn) and self.scope == other.scope and together

    def holds_at(self, at: float) -> bool:
        """Whether the memory holds at a time."""
        return holds(self.valid_from, self.valid_until, at)
