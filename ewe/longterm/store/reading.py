"""Reading the memories of a store: of the scopes that are named, but for what only its owner may ask."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

from ewe.errors import InvalidRequestError
from ewe.longterm.records import Memory, Revision, Scope
from ewe.longterm.store.embeddings import Embeddings
from ewe.longterm.store.erasing import ALL_IDS, erased_name
from ewe.longterm.store.intact_rows import (
    SELECT_MEMORY,
    StoredMemory,
    intact_deletions,
    intact_history,
    intact_memories,
    intact_scopes,
    stored,
)
from ewe.longterm.store.lexical import Lexicon
from ewe.longterm.store.memory_rows import (
    DELETION_COLUMNS,
    IN_SCOPE,
    MOMENT_COLUMNS,
    STATEMENT_COLUMNS,
    Deletion,
    Moment,
    Statement,
)
from ewe.longterm.store.memory_session import MemorySession
from ewe.longterm.store.voices import Voices

_PAGE = 1000


class MemoryReader:
    """The reading half of `MemoryStore`, which says what all methods guarantee."""

    def __init__(self, session: MemorySession) -> None:
        self._session = session
        self.lexicon = Lexicon(session)
        self.voices = Voices(session)
        self.embeddings = Embeddings(session)

    def __len__(self) -> int:
        with self.seeing(None):
            return sum(self.scopes().values())

    @property
    def path(self) -> Path | str:
        """The folder of the store, or its URL."""
        return self._session.path

    def seeing(self, scopes: Sequence[Scope] | None) -> AbstractContextManager[None]:
        """Inside, a database with row-level security shows what is of these scopes (None: all) and nothing else."""
        return self._session.seeing(scopes)

    def get(self, scope: Scope, memory_id: str) -> Memory:
        """One memory. Raises InvalidRequestError if this scope holds none with this id."""
        memory = self.find(scope, memory_id)
        if memory is None:
            raise missing(memory_id)
        return memory

    def find(self, scope: Scope, memory_id: str) -> Memory | None:
        """One memory, or None if this scope holds none with this id."""
        with self.seeing([scope]):
            row = self._row(scope, memory_id)
            return intact_memories(self._session, [row])[0] if row is not None else None

    def history(self, scope: Scope, memory_id: str) -> list[Revision]:
        """All revisions of a memory, the first first. Raises InvalidRequestError as `get` does."""
        with self.seeing([scope]):
            row = self._row(scope, memory_id)
            if row is None:
                raise missing(memory_id)
            intact_memories(self._session, [row])
            return intact_history(self._session, row)

    def scan(self, scopes: Sequence[Scope] | None = None) -> Iterator[Memory]:
        """Every memory of these scopes (None: of all, for whoever runs the store), as they were added, in pages."""
        after = 0
        while page := self._page(after, scopes):
            for _, memory in page:
                yield memory
            after = page[-1][0]

    def page(self, scopes: Sequence[Scope], offset: int, limit: int, as_of: float | None = None) -> list[Memory]:
        """At most `limit` memories of these scopes as they were added, the first `offset` left out.

        as_of: only those that hold at that time, in seconds since 1970.
        """
        return [memory for _, memory in self._page(0, scopes, limit, offset, as_of)]

    def rows(self, numbers: Sequence[int], scopes: Sequence[Scope]) -> dict[int, Memory]:
        """Per number of a memory the memory, if it is there and in one of the scopes."""
        with self.seeing(scopes):
            rows = stored(self._session.lookup(f"{SELECT_MEMORY} WHERE memories.number IN", numbers))
            memories = intact_memories(self._session, rows)
        allowed = set(scopes)
        pairs = zip(rows, memories, strict=True)
        return {row.number: memory for row, memory in pairs if memory.scope in allowed}

    def moments(self, numbers: Sequence[int], scopes: Sequence[int]) -> dict[int, Moment]:
        """Per number of a memory its times, if it is there and in one of the scopes (by number)."""
        select = f"SELECT number, {MOMENT_COLUMNS} FROM memories WHERE number IN"  # noqa: S608
        rows = self._session.lookup(select, numbers)
        return {number: Moment(*values) for number, *values in rows if values[0] in scopes}

    def statements(self, numbers: Sequence[int], scopes: Sequence[int]) -> dict[int, Statement]:
        """Per number of a memory what it says, if it is there and in one of the scopes (by number)."""
        select = f"SELECT number, {STATEMENT_COLUMNS} FROM memories WHERE number IN"  # noqa: S608
        rows = self._session.lookup(select, numbers)
        return {number: Statement(*values) for number, *values in rows if values[0] in scopes}

    def all_statements(self, scopes: Sequence[int]) -> dict[int, Statement]:
        """As `statements`, of all memories in these scopes (by number)."""
        select = f"SELECT number, {STATEMENT_COLUMNS} FROM memories WHERE scope = ?"  # noqa: S608
        rows = [row for scope in scopes for row in self._session.query(select, (scope,))]
        return {number: Statement(*values) for number, *values in rows}

    def scopes(self) -> dict[Scope, int]:
        """How many memories each scope holds, in alphabetical order; for whoever runs the store."""
        with self.seeing(None):
            rows = self._session.query(
                'SELECT number, checksum, "user", agent, memories FROM scopes ORDER BY "user", agent'
            )
        return intact_scopes(self._session, rows)

    def scope_numbers(self, scopes: Sequence[Scope]) -> list[int]:
        """The numbers of those scopes that hold memories."""
        numbers = []
        with self.seeing(scopes):
            for scope in dict.fromkeys(scopes):
                rows = self._session.query(
                    'SELECT number FROM scopes WHERE "user" = ? AND agent = ?', (scope.user, scope.agent)
                )
                numbers += [int(number) for (number,) in rows]
        return numbers

    def extent(self, scope: Scope) -> list[tuple[int, int]]:
        """How many memories and words a scope holds, which tells whether somebody has written to it; empty for none."""
        with self.seeing([scope]):
            return self._session.query(
                'SELECT memories, words FROM scopes WHERE "user" = ? AND agent = ?', (scope.user, scope.agent)
            )

    def deletions(self, scope: Scope | None = None) -> list[Deletion]:
        """The log of deletions of a scope (None: of all, for whoever runs the store), the first first."""
        where, values = ("", ()) if scope is None else ('WHERE "user" = ? AND agent = ?', (scope.user, scope.agent))
        with self.seeing(None if scope is None else [scope]):
            rows = self._session.query(
                f"SELECT number, checksum, {DELETION_COLUMNS} FROM deletions {where} ORDER BY number",  # noqa: S608
                values,
            )
        return intact_deletions(self._session, rows)

    def was_deleted(self, memory: Memory) -> bool:
        """Whether the log says that a memory of this scope and id was deleted, or its user erased, since then."""
        since = memory.created_at
        return self._is_logged(memory.scope, memory.id, since) or self.was_erased(memory.scope.user, since)

    def was_erased(self, user: str, since: float) -> bool:
        """Whether the log says that all of a user was erased since then (seconds since 1970)."""
        return self._is_logged(Scope(erased_name(user)), ALL_IDS, since)

    def stats(self) -> dict[str, Any]:
        """What a store holds, as JSON-ready counts; bytes are those of all its files."""
        with self.snapshot(), self.seeing(None):
            return {
                "memories": len(self),
                "scopes": self._count("SELECT count(*) FROM scopes"),
                "shared": self.scopes().get(Scope(), 0),
                "kinds": dict(self._session.query("SELECT kind, count(*) FROM memories GROUP BY kind ORDER BY kind")),
                "mean_veracity": self._session.query("SELECT avg(veracity) FROM memories")[0][0],
                "revisions": self._count("SELECT count(*) FROM revisions"),
                "deletions": self._count("SELECT count(*) FROM deletions"),
                "deleted_and_not_scrubbed": self._count("SELECT unscrubbed FROM state"),
                "without_vector": self._count("SELECT count(*) FROM memories WHERE cell IS NULL"),
                "encoder": next((name for (name,) in self._session.query("SELECT name FROM encoder")), None),
                "bytes": self._session.size(),
            }

    def snapshot(self) -> AbstractContextManager[None]:
        """Inside, every read (of all threads that use this object) sees the store as it was when it was entered."""
        return self._session.snapshot()

    def _is_logged(self, scope: Scope, memory_id: str, since: float) -> bool:
        statement = 'SELECT 1 FROM deletions WHERE id = ? AND "user" = ? AND agent = ? AND at >= ? LIMIT 1'
        with self.seeing([scope]):
            return bool(self._session.query(statement, (memory_id, scope.user, scope.agent, since)))

    def _row(self, scope: Scope, memory_id: str) -> StoredMemory | None:
        """The row of a memory, which is to be compared with its checksum."""
        rows = self._session.query(
            f"{SELECT_MEMORY} WHERE {IN_SCOPE} AND id = ?",
            (scope.user, scope.agent, memory_id),
        )
        if not rows:
            return None
        row = stored(rows)[0]._replace(user=scope.user, agent=scope.agent)
        if row.values[0] != memory_id:
            raise self._session.damaged(f"the index that leads from memory {memory_id!r} to {row.name}")
        return row

    def _page(
        self,
        after: int,
        scopes: Sequence[Scope] | None,
        limit: int = _PAGE,
        offset: int = 0,
        as_of: float | None = None,
    ) -> list[tuple[int, Memory]]:
        """Numbers and memories of these scopes behind a number."""
        with self.seeing(scopes):
            numbers = () if scopes is None else self.scope_numbers(scopes)
            if scopes is not None and not numbers:
                return []
            inside = "" if scopes is None else f"AND memories.scope IN ({','.join('?' * len(numbers))})"
            then = () if as_of is None else (as_of, as_of)
            page_rows = self._session.query(
                f"{SELECT_MEMORY} WHERE memories.number > ? {inside} {_HELD if then else ''} "
                "ORDER BY memories.number LIMIT ? OFFSET ?",
                (after, *numbers, *then, limit, offset),
            )
            rows = stored(page_rows)
            if any(second.number <= first.number for first, second in pairwise(rows)):
                raise self._session.damaged("an index, which leads to a memory more than once")
            return [
                (row.number, memory) for row, memory in zip(rows, intact_memories(self._session, rows), strict=True)
            ]

    def _count(self, statement: str) -> int:
        return int(self._session.query(statement)[0][0])


_HELD = "AND (valid_from IS NULL OR valid_from <= ?) AND (valid_until IS NULL OR ? < valid_until)"


def missing(memory_id: str) -> InvalidRequestError:
    """The error for an id that a scope does not hold; the same whether or not another scope holds it."""
    return InvalidRequestError(f"there is no memory {memory_id!r} here: look for it with a search, or in another scope")
