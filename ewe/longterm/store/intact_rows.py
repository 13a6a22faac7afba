"""Rows compared with their checksums when they are read: what is returned is what was written, or an error names it."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ewe.longterm.records import Memory, Revision, Scope
from ewe.longterm.store.checksums import is_intact
from ewe.longterm.store.memory_rows import (
    EVIDENCE,
    MEMORY_COLUMNS,
    RECALLS,
    REVISION_COLUMNS,
    SOURCE_ID,
    Deletion,
    memory_of,
    revision_of,
)
from ewe.longterm.store.memory_session import MemorySession
from ewe.longterm.store.voices import Voices, voice_in

SELECT_MEMORY = (
    "SELECT memories.number, scopes.user, scopes.agent, revisions, memories.checksum, "  # noqa: S608
    # A memory whose scope is not there has to be found, too, and told.
    f"{MEMORY_COLUMNS} FROM memories LEFT JOIN scopes ON scopes.number = memories.scope"
)
"""Finds what `stored` takes."""


class StoredMemory(NamedTuple):
    """A row of memories as it lies there; user and agent: of its scope. values: of `MEMORY_COLUMNS`."""

    number: int
    user: str
    agent: str
    revisions: int
    noted: int
    values: tuple[Any, ...]

    @property
    def is_intact(self) -> bool:
        """Whether row and scope are what was written."""
        values = (self.user, self.agent, *self.values[:RECALLS], *self.values[RECALLS + 1 :])
        return is_intact(self.noted, values, self.values[RECALLS])

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"row {self.number} of memories (memory {self.values[0]!r})"


def stored(rows: Iterable[Sequence[Any]]) -> list[StoredMemory]:
    """What `SELECT_MEMORY` found, unchecked."""
    return [StoredMemory._make((*row[:5], tuple(row[5:]))) for row in rows]


def intact_memories(session: MemorySession, rows: Sequence[StoredMemory]) -> list[Memory]:
    """The memories of rows. Raises DatastoreError naming one that is not what was written."""
    for row in rows:
        if not row.is_intact:
            raise session.damaged(row.name)
    names = Voices(session).names(row.values[SOURCE_ID] for row in rows)
    return [memory_of(Scope(row.user, row.agent), row.values, names) for row in rows]


def intact_history(session: MemorySession, row: StoredMemory) -> list[Revision]:
    """The revisions of a memory. Raises DatastoreError if one is lost or not what was written."""
    rows = session.query(
        f"SELECT checksum, {REVISION_COLUMNS} FROM revisions WHERE memory = ? ORDER BY number",  # noqa: S608
        (row.number,),
    )
    whole = [number for _, number, *_ in rows] == list(range(1, row.revisions + 1))
    if not whole or not all(is_intact(noted, values) for noted, *values in rows):
        raise session.damaged(f"the history of {row.name}")
    names = Voices(session).names(voice_in(piece) for _, *values in rows for piece in json.loads(values[EVIDENCE]))
    return [revision_of(row.values[0], values, names) for _, *values in rows]


def intact_scopes(session: MemorySession, rows: Iterable[Sequence[Any]]) -> dict[Scope, int]:
    """How many memories scopes hold. rows: number, checksum, user, agent, count. Raises DatastoreError for damage."""
    scopes = {}
    for number, noted, user, agent, count in rows:
        if not is_intact(noted, (user, agent), count):
            raise session.damaged(f"row {number} of scopes")
        scopes[Scope(user, agent)] = count
    return scopes


def intact_deletions(session: MemorySession, rows: Iterable[Sequence[Any]]) -> list[Deletion]:
    """Entries of the log. rows: number, checksum, `DELETION_COLUMNS`. Raises DatastoreError for damage."""
    deletions = []
    for number, noted, *values in rows:
        if not is_intact(noted, values):
            raise session.damaged(f"row {number} of deletions")
        at, user, agent, memory_id, reason = values
        deletions.append(Deletion(at, Scope(user, agent), memory_id, reason))
    return deletions
