"""Memories and revisions as rows of tables and as JSON."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ewe.errors import InvalidRequestError
from ewe.longterm.query_time import Period
from ewe.longterm.records import Memory, MemorySource, Revision, Scope
from ewe.longterm.store.checksums import COUNTED, checksum
from ewe.longterm.store.voices import retold

_NUMBERS = (
    *("created_at", "updated_at", "veracity", "uncertainty"),
    *("recall_count", "correct_count", "incorrect_count"),
)
_TIMES = ("confirmed_at", "valid_from", "valid_until", "observed_at")
_SAID = ("id", "content", "kind", "source_kind", "source_id", "reliability", "metadata")
MEMORY_COLUMNS = ", ".join((*_SAID, *_NUMBERS, "contradicts", *_TIMES, "supersedes"))
MOMENT_COLUMNS = "scope, kind = 'turn', coalesce(observed_at, created_at), valid_from, valid_until, content"
STATEMENT_COLUMNS = "scope, id, content, coalesce(valid_from, observed_at, created_at), valid_from, valid_until"
SOURCE_ID = _SAID.index("source_id")
EVIDENCE = 5
"""The places of what holds pseudonyms, in `MEMORY_COLUMNS` and in `REVISION_COLUMNS`."""
REVISION_COLUMNS = "number, at, reason, veracity_before, veracity_after, evidence, content_before, uncertainty"
DELETION_COLUMNS = 'at, "user", agent, id, reason'
_REVISION_FIELDS = REVISION_COLUMNS.split(", ")

IN_SCOPE = 'scope = (SELECT number FROM scopes WHERE "user" = ? AND agent = ?)'
"""The condition that a memory is of a scope, by the names of user and agent."""

RECALLS = MEMORY_COLUMNS.split(", ").index("recall_count")
"""The place of what counts up without a revision."""
_BEHIND = len(_TIMES) + 1  # the columns behind `contradicts`
_QUESTION = re.compile(r"\?[^.!?]*$")
_SITTING = 3600.0  # seconds; turns further apart belong to two conversations


@dataclass(frozen=True, slots=True)
class Deletion:
    """One entry of the log of deletions: which memory went, when and why; never what it said."""

    at: float
    scope: Scope
    memory_id: str
    reason: str

    @property
    def values(self) -> tuple[object, ...]:
        """The values of `DELETION_COLUMNS`."""
        return (self.at, self.scope.user, self.scope.agent, self.memory_id, self.reason)


@dataclass(frozen=True, slots=True)
class Moment:
    """Times in seconds since 1970. is_turn: whether the memory is a turn of a conversation."""

    scope: int
    is_turn: bool
    said_at: float
    valid_from: float | None
    valid_until: float | None
    content: str

    @property
    def asks(self) -> bool:
        """Whether it is a turn whose last sentence is a question."""
        return bool(self.is_turn) and _QUESTION.search(self.content) is not None

    def is_beside(self, other: Self) -> bool:
        """Whether two memories that were added one after the other are turns of one conversation."""
        together = abs(self.said_at - other.said_at) <= _SITTING
        return bool(self.is_turn and other.is_turn) and self.scope == other.scope and together

    def holds_during(self, period: Period) -> bool:
        """Whether the memory holds for a part of a period."""
        return period.meets(self.valid_from, self.valid_until)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a memory says, and when it holds (seconds since 1970), as `Memory` has it; not compared with its checksum.

    For choosing among many memories: those that are chosen are read whole.
    """

    scope: int
    id: str
    content: str
    begins: float
    valid_from: float | None
    valid_until: float | None

    def holds_at(self, at: float) -> bool:
        """Whether it is valid at a time."""
        return Period.at(at).meets(self.valid_from, self.valid_until)


def memory_values(memory: Memory, voices: Mapping[str, str]) -> tuple[object, ...]:
    """The values of `MEMORY_COLUMNS`; voices: the pseudonyms of ids of sources."""
    source, metadata = memory.source, _text(dict(memory.metadata))
    values = (memory.id, memory.content, memory.kind, source.kind, voices[source.id], source.reliability, metadata)
    numbers, times = (tuple(getattr(memory, name) for name in names) for names in (_NUMBERS, _TIMES))
    return (*values, *numbers, _text(memory.contradicts), *times, _text(memory.supersedes))


def memory_checksum(scope: Scope, values: Sequence[Any]) -> int:
    """The checksum of a row with `MEMORY_COLUMNS` in a scope, with the count of recalls."""
    fixed = [*values[:RECALLS], *values[RECALLS + 1 :]]
    return checksum([scope.user, scope.agent, *fixed]) + COUNTED * int(values[RECALLS])


def memory_of(scope: Scope, values: Sequence[Any], names: Mapping[str, str]) -> Memory:
    """The memory of a row with `MEMORY_COLUMNS`; names: the ids behind pseudonyms."""
    identity, content, kind, source_kind, source_id, reliability, metadata, *numbers, contradicts = values[:-_BEHIND]
    source, about = MemorySource(source_kind, names[source_id], reliability), json.loads(metadata)
    *times, supersedes = values[-_BEHIND:]
    lists = [tuple(json.loads(ids)) for ids in (contradicts, supersedes)]
    fields = [identity, content, kind, source, scope, about, *numbers, lists[0], *times, lists[1]]
    return Memory(*fields)


def revision_values(revision: Revision, voices: Mapping[str, str]) -> tuple[object, ...]:
    """The values of `REVISION_COLUMNS`; voices: the pseudonyms of ids of sources."""
    *values, evidence, before, uncertainty = (getattr(revision, name) for name in _REVISION_FIELDS)
    return (*values, _text(retold(evidence, voices)), before, uncertainty)


def revision_of(memory_id: str, values: Sequence[Any], names: Mapping[str, str]) -> Revision:
    """The revision of a row with `REVISION_COLUMNS`; names: the ids behind pseudonyms."""
    number, at, reason, before, after, evidence, content, uncertainty = values
    pieces = retold(json.loads(evidence), names)
    return Revision(memory_id, number, at, reason, before, after, pieces, content, uncertainty)


def memory_from_json(values: Mapping[str, Any]) -> Memory:
    """The memory that `asdict` wrote, with defaults; raises InvalidRequestError for unknown or wrong fields."""
    values = dict(values)
    try:
        if "scope" in values:
            values["scope"] = Scope(**values["scope"])
        if "source" in values:
            values["source"] = MemorySource(**values["source"])
        for key in ("contradicts", "supersedes"):
            values[key] = _texts(values.get(key, []))
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
