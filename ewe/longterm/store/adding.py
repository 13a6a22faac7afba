"""Putting new memories and their histories into the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ewe.errors import InvalidRequestError
from ewe.longterm.records import Memory, Revision, Scope
from ewe.longterm.store.checksums import checksum, scope_checksum
from ewe.longterm.store.lexical import Lexicon
from ewe.longterm.store.memory_rows import (
    MEMORY_COLUMNS,
    REVISION_COLUMNS,
    memory_checksum,
    memory_values,
    revision_values,
)
from ewe.longterm.store.memory_session import MemorySession
from ewe.longterm.store.voices import Voices, voice_in
from ewe.retrieval.store.session import Connection

ADD_REVISION = f"INSERT INTO revisions (memory, {REVISION_COLUMNS}, checksum) VALUES ({','.join('?' * 10)})"  # noqa: S608
_ADD_MEMORY = (
    f"INSERT INTO memories (number, scope, {MEMORY_COLUMNS}, revisions, checksum) VALUES ({','.join('?' * 24)})"  # noqa: S608
)
_BATCH = 1000
History = tuple[Memory, Sequence[Revision]]


@dataclass(frozen=True, slots=True)
class AddResult:
    """What became of memories that were to be added; conflicts: whose id stands for another content there."""

    added: int = 0
    duplicates: int = 0
    conflicts: tuple[tuple[Scope, str], ...] = ()

    def __add__(self, other: AddResult) -> AddResult:
        return AddResult(self.added + other.added, self.duplicates + other.duplicates, self.conflicts + other.conflicts)


def add(session: MemorySession, lexicon: Lexicon, histories: Iterable[History]) -> AddResult:
    """Adds memories with their histories, 1000 per transaction. Raises InvalidRequestError for a faulty history."""
    stream = iter(histories)
    result = AddResult()
    while batch := list(islice(stream, _BATCH)):
        for memory, revisions in batch:
            _check(memory, revisions)
        scopes = list(dict.fromkeys(memory.scope for memory, _ in batch))
        with session.transaction() as connection, session.seeing(scopes):
            result += _add_batch(session, connection, lexicon, batch)
    return result


def revision_row(number: int, revision: Revision, voices: Mapping[str, str]) -> tuple[object, ...]:
    """The values of `ADD_REVISION`; number: of the memory. voices: the pseudonyms of ids of sources."""
    values = revision_values(revision, voices)
    return (number, *values, checksum(values))


def _check(memory: Memory, revisions: Sequence[Revision]) -> None:
    known = [(revision.memory_id, revision.number) for revision in revisions]
    if not known or known != [(memory.id, number) for number in range(1, len(known) + 1)]:
        raise InvalidRequestError(f"memory {memory.id!r}: its revisions must be its own, from number 1 without a gap")


def _add_batch(session: MemorySession, connection: Connection, lexicon: Lexicon, batch: Sequence[History]) -> AddResult:
    memories = [memory for memory, _ in batch]
    scopes = {scope: _scope_number(connection, scope) for scope in dict.fromkeys(memory.scope for memory in memories)}
    new, duplicates, conflicts = _compared(session, memories, scopes)
    voices = _voices(session, connection, [batch[place] for place in new], scopes)
    rows, changes, entries = [], [], []
    for number, place in zip(session.new_numbers(len(new)), new, strict=True):
        memory, revisions = batch[place]
        scope = scopes[memory.scope]
        values = memory_values(memory, voices[scope])
        rows.append((number, scope, *values, len(revisions), memory_checksum(memory.scope, values)))
        changes += [revision_row(number, revision, voices[scope]) for revision in revisions]
        entries.append((number, scope, memory.content))
    connection.executemany(_ADD_MEMORY, rows)
    connection.executemany(ADD_REVISION, changes)
    lexicon.add(connection, entries)
    return AddResult(len(new), duplicates, tuple(conflicts))


def _voices(
    session: MemorySession, connection: Connection, histories: Sequence[History], scopes: Mapping[Scope, int]
) -> dict[int, dict[str, str]]:
    """Per scope, by its number, the pseudonyms of all who are cited."""
    named: defaultdict[int, set[str]] = defaultdict(set)
    for memory, revisions in histories:
        cited = {voice_in(piece) for revision in revisions for piece in revision.evidence}
        named[scopes[memory.scope]] |= {memory.source.id, *cited}
    return {scope: Voices(session).assign(connection, scope, names) for scope, names in named.items()}


def _compared(
    session: MemorySession, memories: Sequence[Memory], scopes: Mapping[Scope, int]
) -> tuple[list[int], int, list[tuple[Scope, str]]]:
    """The places of the new memories, how many are there already, and the conflicts; scopes: their numbers."""
    ids: dict[Scope, list[str]] = {}
    for memory in memories:
        ids.setdefault(memory.scope, []).append(memory.id)
    known: dict[tuple[Scope, str], str] = {}
    for scope, own in ids.items():
        rows = session.lookup("SELECT id, content FROM memories WHERE scope = ? AND id IN", own, (scopes[scope],))
        known.update(((scope, memory_id), content) for memory_id, content in rows)
    new, duplicates, conflicts = [], 0, []
    for place, memory in enumerate(memories):
        key = (memory.scope, memory.id)
        if key not in known:
            known[key] = memory.content
            new.append(place)
        elif known[key] == memory.content:
            duplicates += 1
        else:
            conflicts.append(key)
    return new, duplicates, conflicts


def _scope_number(connection: Connection, scope: Scope) -> int:
    """The number of a scope; one that held nothing so far gets one."""
    [(number,)] = connection.execute(
        'INSERT INTO scopes ("user", agent, checksum) VALUES (?, ?, ?) '
        'ON CONFLICT ("user", agent) DO UPDATE SET agent = excluded.agent RETURNING number',
        (scope.user, scope.agent, scope_checksum(scope, 0)),
    )
    return int(number)
