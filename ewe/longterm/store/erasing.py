"""Taking memories out of every table, and the receipt that says what was taken."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ewe.longterm.records import Scope
from ewe.longterm.store.checksums import checksum
from ewe.longterm.store.lexical import Lexicon
from ewe.longterm.store.memory_rows import DELETION_COLUMNS, IN_SCOPE, Deletion
from ewe.longterm.store.memory_session import MemorySession, VectorIndex
from ewe.longterm.store.voices import Voices
from ewe.retrieval.store.session import Connection

ALL_IDS = "*"
"""The id in the log that stands for everything of an erased user."""

ADD_DELETION = f"INSERT INTO deletions ({DELETION_COLUMNS}, checksum) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608
_Row = tuple[int, int, str, str, int, bool]  # number, number of the scope, content, id, revisions, has a vector


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was taken of one scope, from histories and indexes; log: its entries, if the whole user was erased."""

    scope: Scope
    memories: int = 0
    revisions: int = 0
    words: int = 0
    vectors: int = 0
    log: int = 0


def erased_name(user: str) -> str:
    """What the log keeps of an erased user: a digest, by which an old copy of their memories is recognized."""
    return "erased:" + hashlib.sha256(user.encode()).hexdigest()


def deletion_row(entry: Deletion) -> tuple[object, ...]:
    """The values of `ADD_DELETION`."""
    return (*entry.values, checksum(entry.values))


class Eraser:
    """Takes memories out of the tables; its methods belong inside a transaction."""

    def __init__(self, session: MemorySession, lexicon: Lexicon, vectors: VectorIndex) -> None:
        self._session, self._lexicon, self._vectors = session, lexicon, vectors
        self._voices = Voices(session)

    def delete(
        self, connection: Connection, scope: Scope, ids: Iterable[str] | None, at: float, reason: str
    ) -> Erasure:
        """Deletes memories of a scope (None: all of them); the log keeps scope, ids, time and reason."""
        rows = self._rows(scope, ids)
        taken = self._take(connection, scope, rows)
        connection.executemany(
            ADD_DELETION,
            [deletion_row(Deletion(at, scope, memory_id, reason)) for _, _, _, memory_id, *_ in rows],
        )
        return taken

    def erase(self, connection: Connection, user: str, at: float, reason: str) -> list[Erasure]:
        """Deletes all memories of a user, with every agent, and the user's part of the log; one entry stays instead.

        Who said what in other scopes is forgotten, too.
        """
        agents = (
            'SELECT agent FROM scopes WHERE "user" = ? UNION SELECT agent FROM deletions WHERE "user" = ? ORDER BY 1'
        )
        scopes = [Scope(user, agent) for (agent,) in self._session.query(agents, (user, user))]
        taken = []
        connection.execute("INSERT INTO erasing VALUES (?)", (user,))
        with self._session.seeing(scopes):
            for scope in scopes:
                part = self._take(connection, scope, self._rows(scope, None))
                forget = 'DELETE FROM deletions WHERE "user" = ? AND agent = ?'
                log = connection.execute(forget, (user, scope.agent)).rowcount
                taken.append(replace(part, log=log))
        connection.execute("DELETE FROM erasing")
        self._voices.forget(connection, user)
        connection.execute(ADD_DELETION, deletion_row(Deletion(at, Scope(erased_name(user)), ALL_IDS, reason)))
        return taken

    def _rows(self, scope: Scope, ids: Iterable[str] | None) -> list[_Row]:
        select = f"SELECT number, scope, content, id, revisions, cell IS NOT NULL FROM memories WHERE {IN_SCOPE}"  # noqa: S608
        names = (scope.user, scope.agent)
        if ids is None:
            return self._session.query(select, names)
        return self._session.lookup(f"{select} AND id IN", list(dict.fromkeys(ids)), names)

    def _take(self, connection: Connection, scope: Scope, rows: list[_Row]) -> Erasure:
        numbers = [number for number, *_ in rows]
        words = self._lexicon.remove(connection, [row[:3] for row in rows])
        scopes = {within for _, within, *_ in rows}
        self._vectors.forget(connection, scopes, numbers)
        connection.executemany("DELETE FROM memories WHERE number = ?", [(number,) for number in numbers])
        connection.execute("UPDATE state SET unscrubbed = unscrubbed + ?", (len(rows),))
        self._voices.leave(connection, scopes)
        connection.executemany("DELETE FROM scopes WHERE number = ? AND memories = 0", [(number,) for number in scopes])
        revisions, vectors = sum(row[4] for row in rows), sum(row[5] for row in rows)
        return Erasure(scope, len(rows), revisions, words, vectors)
