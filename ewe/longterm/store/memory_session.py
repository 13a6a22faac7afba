"""What the store of memories asks of a database beyond the SQL that SQLite and PostgreSQL share."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ewe.errors import DatastoreError
from ewe.longterm.records import Scope
from ewe.retrieval.store.session import Connection, Session

Entry = tuple[int, int, str]  # number of a memory, number of its scope, content


class VectorIndex(Protocol):
    """Where the vectors of memories lie; `memories.cell` is NULL for a memory that has none."""

    def start(self, connection: Connection, dimension: int) -> None:
        """Makes room for an encoder's vectors; those of an earlier one are gone. Belongs inside a transaction."""

    def write(self, connection: Connection, entries: Sequence[Entry], vectors: np.ndarray) -> None:
        """Keeps vectors (float32 [entries, dimension]) of memories that still have these contents."""

    def search(self, query: np.ndarray, scopes: Sequence[int], top_k: int) -> list[tuple[int, float]]:
        """(number of a memory, inner product with `query`, float32 [dimension]) of the best, the best first."""

    def forget(self, connection: Connection, scopes: Iterable[int], memories: Sequence[int]) -> None:
        """Gives up the vectors of memories in the scopes. Belongs inside the transaction that changes the memories."""

    def wipe(self) -> bool:
        """Takes the vectors that were given up from the disk, unless they were made again; whether there were any."""

    def damaged(self, numbers: Sequence[int]) -> list[int]:
        """Those of memories (by number) with vectors whose vector is not what was written, as far as that is known."""

    def arrange(self, scopes: Iterable[int]) -> None:
        """Speeds up searches of scopes that have grown large."""


class MemorySession(Session):
    """A session with the tables of a store of memories."""

    @classmethod
    @abstractmethod
    def exists(cls, path: str | Path) -> bool:
        """Whether a store is there. Raises DatastoreError for a server that cannot be reached."""

    @classmethod
    @abstractmethod
    def make(cls, path: str | Path) -> None:
        """Makes an empty store, whole or not at all. Raises DatastoreError if there is one already."""

    def seeing(self, scopes: Sequence[Scope] | None) -> AbstractContextManager[None]:
        """Inside, statements are about these scopes (None: all), and a database with row-level security shows no other.

        In a transaction, other writers to these scopes wait until it has ended. In SQLite whoever writes is alone.
        """
        return nullcontext()

    def lock_out(self) -> None:
        """Has all other writers wait until the transaction has ended."""

    def damaged(self, what: str) -> DatastoreError:
        """The error for something that is not what was written, and what to do about it."""
        return DatastoreError(
            f"{self.file} is damaged at {what}, which is not what was written: restore the store from a copy, or "
            f"delete that memory; 'ewe memory check {self.name}' names all damage"
        )

    def check(self) -> None:
        """Raises DatastoreError if the database is damaged where memories are found; a server looks after its own."""

    @abstractmethod
    def new_numbers(self, count: int) -> Sequence[int]:
        """Numbers of new memories, each given once; belongs inside a transaction."""

    def pages(self, columns: str) -> Iterator[list[tuple[Any, ...]]]:
        """The number and these columns of all memories in sight, in pages of 1000, as they were added."""
        after = 0
        select = f"SELECT number, {columns} FROM memories WHERE number > ? ORDER BY number LIMIT 1000"  # noqa: S608
        while page := self.query(select, (after,)):
            yield page
            after = page[-1][0]

    @abstractmethod
    def vector_index(self) -> VectorIndex:
        """Where vectors lie."""

    def empty_log(self) -> bool:
        """Takes what was deleted from the database's log, as far as it can; false while a reader holds it."""
        return True  # a server's log is the server's

    def reindex(self) -> None:
        """Makes the database's own indexes again from its tables."""
        self.query("REINDEX")

    def damages(self) -> list[str]:
        """What the database itself finds damaged; pg_amcheck looks into the files of a server."""
        return []

    @abstractmethod
    def size(self) -> int:
        """The bytes of the store."""
