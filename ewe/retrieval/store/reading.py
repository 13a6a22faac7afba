"""Reading the passages of a store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from ewe.errors import DatastoreError
from ewe.retrieval.store.database import FILE_NAME, sqlite_errors
from ewe.retrieval.store.integrity import passage_digest
from ewe.types import Passage

COLUMNS = "id, text, title, source, url, date, veracity"
_PAGE = 1000
_ASKED_AT_ONCE = 500


class StoreReader:
    """The reading half of `PassageStore`, which says what all methods guarantee."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = RLock()
        self._views = 0
        self._begun = False  # whether the open snapshots began a transaction of their own

    def __len__(self) -> int:
        return int(self.query("SELECT passages FROM state")[0][0])

    @property
    def generation(self) -> int:
        """How many changes were committed."""
        return int(self.query("SELECT generation FROM state")[0][0])

    @property
    def checksum(self) -> str:
        """64 hexadecimal digits over all rows and their numbers; the same on every machine."""
        return str(self.query("SELECT checksum FROM state")[0][0])

    def index_dir(self, name: str) -> Path:
        """The folder of one index; it need not exist."""
        return self.path / "indexes" / name

    def get(self, ids: Sequence[str]) -> list[Passage]:
        """The passages with these ids, in this order. Raises DatastoreError naming an id that is not there."""
        return self._read("id", ids)

    def rows(self, rowids: Sequence[int]) -> list[Passage]:
        """The passages of these rows, in this order. Raises DatastoreError naming a row that is not there."""
        return self._read("rowid", rowids)

    def scan(self, after_rowid: int = 0) -> Iterator[tuple[int, Passage]]:
        """(rowid, passage) of every row after `after_rowid`, in order, holding a thousand at a time.

        Rows that are added meanwhile may appear at the end; inside `snapshot()` they do not.
        """
        for rowid, _, passage in self._pages(after_rowid):
            yield rowid, passage

    def scan_digests(self) -> Iterator[tuple[int, bytes]]:
        """(rowid, digest) of every row, each checked against its passage."""
        for rowid, digest, _ in self._pages(0):
            yield rowid, digest

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Inside, every read (of all threads that use this object) sees the store as it was when it was entered.

        Inside a transaction it sees what that has written so far, and ends nothing.
        """
        with self._lock:
            if not self._views:
                self._begun = not self._connection.in_transaction
                if self._begun:
                    self.query("BEGIN")
                    self.query("SELECT generation FROM state")  # the first read is what fixes the view
            self._views += 1
        try:
            yield
        finally:
            with self._lock:
                self._views -= 1
                if not self._views and self._begun:
                    self.query("ROLLBACK")

    def query(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows that an SQL statement yields, also on further tables that others keep in the same file."""
        with self._lock, sqlite_errors(self.path / FILE_NAME):
            return self._connection.execute(statement, tuple(values)).fetchall()

    def lookup(self, columns: str, key: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """The named columns of the passages whose `key` is one of the values, in no particular order."""
        rows = []
        for first in range(0, len(values), _ASKED_AT_ONCE):
            part = values[first : first + _ASKED_AT_ONCE]
            marks = ",".join("?" * len(part))
            rows += self.query(f"SELECT {columns} FROM passages WHERE {key} IN ({marks})", part)  # noqa: S608
        return rows

    def _read(self, key: str, wanted: Sequence[str] | Sequence[int]) -> list[Passage]:
        found = {
            row[0]: self._checked(row[1], row[2], row[3:])
            for row in self.lookup(f"{key}, rowid, digest, {COLUMNS}", key, list(dict.fromkeys(wanted)))
        }
        for value in wanted:
            if value not in found:
                raise DatastoreError(f"{self.path} holds no passage with the {key} {value!r}")
        return [found[value] for value in wanted]

    def _checked(self, rowid: int, digest: bytes, values: tuple[object, ...]) -> Passage:
        """The passage of a row; raises DatastoreError if it is not what was written."""
        try:
            passage = Passage(*values)  # type: ignore[arg-type]
            intact = passage_digest(passage) == digest
        except (ValueError, TypeError, AttributeError):
            intact = False
        if not intact:
            raise DatastoreError(f"{self.path / FILE_NAME} is damaged at row {rowid}: restore it from a copy")
        return passage

    def _pages(self, after_rowid: int) -> Iterator[tuple[int, bytes, Passage]]:
        statement = f"SELECT rowid, digest, {COLUMNS} FROM passages WHERE rowid > ? ORDER BY rowid LIMIT {_PAGE}"  # noqa: S608
        while page := self.query(statement, (after_rowid,)):
            for row in page:
                yield row[0], row[1], self._checked(row[0], row[1], row[2:])
            after_rowid = page[-1][0]
