"""Stores of earlier versions: rows get checksums over all that is read of them, and pseudonyms for who said it."""

import json
import sqlite3
from pathlib import Path

from ewe.longterm.records import Scope
from ewe.longterm.store.checksums import COUNTED, checksum, is_intact, scope_checksum
from ewe.longterm.store.memory_rows import (
    DELETION_COLUMNS,
    EVIDENCE,
    MEMORY_COLUMNS,
    RECALLS,
    REVISION_COLUMNS,
    SOURCE_ID,
)
from ewe.longterm.store.schema import SQLITE_VOICES
from ewe.longterm.store.vector_rows import add_checks
from ewe.longterm.store.voices import new_voice, retold, voice_in
from ewe.retrieval.store.session import Connection

REVISIONS_STAY = """CREATE TRIGGER revisions_stay_as_they_are BEFORE UPDATE ON revisions
BEGIN SELECT RAISE(ABORT, 'revisions are never changed'); END"""
DELETIONS_STAY = """CREATE TRIGGER deletions_stay_as_they_are BEFORE UPDATE ON deletions
BEGIN SELECT RAISE(ABORT, 'the log of deletions is never changed'); END"""
_PAGE = 1000
_NEW_COLUMNS = 2  # the last of `MEMORY_COLUMNS`: earlier versions had neither, nor did their checksums cover them


def from_version_4(connection: sqlite3.Connection, folder: Path) -> None:
    """Makes version 5 of an SQLite store of version 4; what was damaged stays so, for its old checksum stays."""
    for statement in (
        "ALTER TABLE scopes ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE deletions ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE memories ADD COLUMN observed_at REAL",
        "ALTER TABLE memories ADD COLUMN supersedes TEXT NOT NULL DEFAULT '[]'",
        SQLITE_VOICES,
        "DROP TRIGGER revisions_stay_as_they_are",
        "DROP TRIGGER deletions_stay_as_they_are",
    ):
        connection.execute(statement)
    add_checksums(connection)
    for statement in (REVISIONS_STAY, DELETIONS_STAY):
        connection.execute(statement)
    for number, size in connection.execute("SELECT file, length(probe) FROM encoder").fetchall():
        add_checks(folder, number, size // 4)


def add_checksums(connection: Connection) -> None:
    """Fills the new columns, and puts pseudonyms in the place of ids of sources."""
    scopes = {}
    rows = connection.execute('SELECT number, "user", agent, memories FROM scopes').fetchall()
    for number, user, agent, count in rows:
        scopes[number] = Scope(user, agent)
        noted = scope_checksum(scopes[number], count)
        connection.execute("UPDATE scopes SET checksum = ? WHERE number = ?", (noted, number))
    rows = connection.execute(f"SELECT number, {DELETION_COLUMNS} FROM deletions").fetchall()  # noqa: S608
    for number, *values in rows:
        connection.execute("UPDATE deletions SET checksum = ? WHERE number = ?", (checksum(values), number))
    voices = _Voices(connection)
    of_memory = _memories(connection, scopes, voices)
    _revisions(connection, of_memory, voices)


class _Voices:
    """Pseudonyms of a store that has none yet."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._known = connection, dict[tuple[int, str], str]()

    def of(self, scope: int, name: str) -> str:
        """The pseudonym of an id of a source in a scope."""
        if not name:
            return name
        if (scope, name) not in self._known:
            voice = self._known[scope, name] = new_voice()
            row = (voice, scope, name, checksum((voice, scope, name)))
            self._connection.execute("INSERT INTO voices VALUES (?, ?, ?, ?)", row)
        return self._known[scope, name]


def _memories(connection: Connection, scopes: dict[int, Scope], voices: _Voices) -> dict[int, int]:
    """Goes through all memories; per number of one the number of its scope."""
    of_memory, after = {}, 0
    select = f"SELECT number, scope, checksum, {MEMORY_COLUMNS} FROM memories"  # noqa: S608
    while page := connection.execute(f"{select} WHERE number > ? ORDER BY number LIMIT {_PAGE}", (after,)).fetchall():
        for number, scope, noted, *values in page:
            of_memory[number] = scope
            before = is_intact(noted, [*values[:RECALLS], *values[RECALLS + 1 : -_NEW_COLUMNS]])
            values[SOURCE_ID] = voices.of(scope, values[SOURCE_ID])
            if before and scope in scopes:
                owner, recalls = scopes[scope], values.pop(RECALLS)
                noted = checksum([owner.user, owner.agent, *values]) + COUNTED * recalls
            change = "UPDATE memories SET source_id = ?, checksum = ? WHERE number = ?"
            connection.execute(change, (values[SOURCE_ID], noted, number))
        after = page[-1][0]
    return of_memory


def _revisions(connection: Connection, of_memory: dict[int, int], voices: _Voices) -> None:
    """Goes through all revisions; those that name nobody keep their checksums."""
    select = f"SELECT memory, checksum, {REVISION_COLUMNS} FROM revisions WHERE memory = ?"  # noqa: S608
    for memory, scope in of_memory.items():
        for _, noted, *values in connection.execute(select, (memory,)).fetchall():
            if not is_intact(noted, values):
                continue
            pieces = json.loads(values[EVIDENCE])
            names = {name: voices.of(scope, name) for name in map(voice_in, pieces) if name}
            if names:
                values[EVIDENCE] = json.dumps(retold(pieces, names), ensure_ascii=False, separators=(",", ":"))
                connection.execute(
                    "UPDATE revisions SET evidence = ?, checksum = ? WHERE memory = ? AND number = ?",
                    (values[EVIDENCE], checksum(values), memory, values[0]),
                )
