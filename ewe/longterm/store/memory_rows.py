"""Memories and revisions as rows of tables and as JSON."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ewe.errors import InvalidRequestError
from ewe.longterm.records import Memory, MemorySource, Revision, Scope, holds

_NUMBERS = (
    *("created_at", "updated_at", "veracity", "uncertainty"),
    *("recall_count", "correct_count", "incorrect_count"),
)
_TIMES = ("confirmed_at", "valid_from", "valid_until")
_SAID = ("id", "content", "kind", "source_kind", "source_id", "reliability", "metadata")
MEMORY_COLUMNS = ", ".join((*_SAID, *_NUMBERS, "contradicts", *_TIMES))
MOMENT_COLUMNS = "scope, kind = 'turn', created_at, valid_from, valid_until"
REVISION_COLUMNS = "number, at, reason, veracity_before, veracity_after, evidence, content_before, uncertainty"
_REVISION_FIELDS = REVISION_COLUMNS.split(", ")

IN_SCOPE = 'scope = (SELECT number FROM scopes WHERE "user" = ? AND agent = ?)'
"""The condition that a memory is of a scope, by the names of user and agent."""

_UNCHECKED = MEMORY_COLUMNS.split(", ").index("recall_count")  # counts up without a revision
_SITTING = 3600.0  # seconds; turns further apart belong to two conversations


@dataclass(frozen=True, slots=True)
class Deletion:
    """One entry of the log of deletions: which memory went, when and why; never what it said."""

    at: float
    scope: Scope
    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Moment:
    """Times in seconds since 1970. is_turn: whether the memory is a turn of a conversation."""

    scope: int
    is_turn: bool
    created_at: float
    valid_from: float | None
    valid_until: float | None

    def is_beside(self, other: Self) -> bool:
        """Whether two memories that were added one after the other are turns of one conversation."""
        together = abs(self.created_at - other.created_at) <= _SITTING
        return bool(self.is_turn and other.is_turn) and self.scope == other.scope and together

    def holds_at(self, at: float) -> bool:
        """Whether the memory holds at a time."""
        return holds(self.valid_from, self.valid_until, at)


def memory_values(memory: Memory) -> tuple[object, ...]:
    """The values of `MEMORY_COLUMNS`."""
    source, metadata = memory.source, _text(dict(memory.metadata))
    said = (memory.id, memory.content, memory.kind, source.kind, source.id, source.reliability, metadata)
    numbers, times = (tuple(getattr(memory, name) for name in names) for names in (_NUMBERS, _TIMES))
    return (*said, *numbers, _text(memory.contradicts), *times)


def memory_checksum(values: Sequence[Any]) -> int:
    """The checksum of a row with `MEMORY_COLUMNS`, but for the count of recalls."""
    return checksum([*values[:_UNCHECKED], *values[_UNCHECKED + 1 :]])


def checksum(values: Sequence[Any]) -> int:
    """CRC-32 of a row's values; numbers count as the floats that the database may make of them."""
    # Adding 0.0 makes 0.0 of -0.0.
    plain = [value if value is None or isinstance(value, str) else float(value) + 0.0 for value in values]
    return zlib.crc32(json.dumps(plain).encode())


def memory_of(scope: Scope, values: Sequence[Any]) -> Memory:
    """The memory of a row with `MEMORY_COLUMNS`."""
    identity, content, kind, source_kind, source_id, reliability, metadata, *numbers, contradicts = values[:-3]
    source, about = MemorySource(source_kind, source_id, reliability), json.loads(metadata)
    fields = [identity, content, kind, source, scope, about, *numbers, tuple(json.loads(contradicts)), *values[-3:]]
    return Memory(*fields)


def revision_values(revision: Revision) -> tuple[object, ...]:
    """The values of `REVISION_COLUMNS`."""
    *values, evidence, before, uncertainty = (getattr(revision, name) for name in _REVISION_FIELDS)
    return (*values, _text(evidence), before, uncertainty)


def revision_of(memory_id: str, values: Sequence[Any]) -> Revision:
    """The revision of a row with `REVISION_COLUMNS`."""
    number, at, reason, before, after, evidence, content, uncertainty = values
    return Revision(memory_id, number, at, reason, before, after, tuple(json.loads(evidence)), content, uncertainty)


def memory_from_json(values: Mapping[str, Any]) -> Memory:
    """The memory that `asdict` wrote, with defaults; raises InvalidRequestError for unknown or wrong fields."""
    values = dict(values)
    try:
        if "scope" in values:
            values["scope"] = Scope(**values["scope"])
        if "source" in values:
            values["source"] = MemorySource(**values["source"])
        values["contradicts"] = _texts(values.get("contradicts", []))
        return Memory(**values)
    except (TypeError, AttributeError) as error:
        raise InvalidRequestError(f"this is no memory: {error}") from error


def revision_from_json(values: Mapping[str, Any]) -> Revision:
    """The revision that `asdict` wrote. Raises InvalidRequestError for fields that are unknown or missing."""
    try:
        return Revision(**{**values, "evidence": _texts(values.get("evidence", []))})
    except (TypeError, AttributeError) as error:
        raise InvalidRequestError(f"this is no revision: {error}") from error


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidRequestError(f"a list of texts is wanted, got {type(value).__name__}")
    return tuple(value)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
