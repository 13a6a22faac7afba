"""The passages of a datastore on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import TracebackType

from ewe.errors import DatastoreError
from ewe.retrieval.store.database import FILE_NAME, WriterLock, connect, create_database, sqlite_errors
from ewe.retrieval.store.integrity import checksum_after, content_digest, passage_digest
from ewe.retrieval.store.reading import COLUMNS, StoreReader
from ewe.types import Passage

_BATCH = 1000
_VALUES = attrgetter(*COLUMNS.split(", "))


@dataclass(frozen=True, slots=True)
class AddResult:
    """What became of passages that were to be added.

    rowids: per passage its new row, or None if it was not added. duplicates: how many were there already (the same
    passage, or its title, text and source under another id). conflicts: ids that stand for another passage already.
    """

    rowids: tuple[int | None, ...] = ()
    duplicates: int = 0
    conflicts: tuple[str, ...] = ()

    @property
    def added(self) -> int:
        """How many passages are new."""
        return sum(rowid is not None for rowid in self.rowids)


class PassageStore(StoreReader):
    """A folder with `passages.sqlite` (the one truth) and `indexes/` (made from it).

    One process writes, any number read at the same time; each sees what was committed before it looked. Rows keep
    their number for life, and no number is used twice. Every passage is checked against its digest when it is read.
    Safe to call from several threads, not to be carried across a fork. All methods raise DatastoreError, naming the
    file and what to do, for damage, a full disk and files that may not be written.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, writer: WriterLock | None) -> None:
        super().__init__(path, connection)
        self._writer = writer
        self._changed = False

    @classmethod
    def create(cls, path: str | Path) -> PassageStore:
        """A new, empty store, open for writing. Raises DatastoreError if the folder holds one already."""
        create_database(Path(path))
        return cls.open(path, read_only=False)

    @classmethod
    def open(cls, path: str | Path, read_only: bool = True) -> PassageStore:
        """The store in a folder. Raises DatastoreError if there is none, or another process writes to it."""
        folder = Path(path)
        if read_only:
            return cls(folder, connect(folder, read_only=True), None)
        connect(folder, read_only=True).close()  # a folder that holds no store gets no lock file
        writer = WriterLock(folder)
        try:
            return cls(folder, connect(folder, read_only=False), writer)
        except BaseException:
            writer.release()
            raise

    def close(self) -> None:
        """Ends the connection; a writer also lets the next one in."""
        with self._lock:
            self._connection.close()
            if self._writer is not None:
                self._writer.release()

    def __enter__(self) -> PassageStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, passages: Iterable[Passage]) -> AddResult:
        """Adds passages in their order, a transaction for every 1000 (or the one that is open).

        Raises DatastoreError for a text that is not valid Unicode; what earlier transactions committed stays.
        """
        stream = iter(passages)
        rowids: list[int | None] = []
        conflicts: list[str] = []
        duplicates = 0
        while batch := list(islice(stream, _BATCH)):
            with self.transaction():
                result = self._add_batch(batch)
            rowids += result.rowids
            duplicates += result.duplicates
            conflicts += result.conflicts
        return AddResult(tuple(rowids), duplicates, tuple(conflicts))

    def remove(self, ids: Iterable[str]) -> int:
        """Removes the passages with these ids in one transaction; the number that were there."""
        wanted = list(dict.fromkeys(ids))
        with self.transaction() as connection:
            rows = self.lookup("rowid, digest", "id", wanted)
            connection.executemany("DELETE FROM passages WHERE rowid = ?", ((rowid,) for rowid, _ in rows))
            self._account(removed=rows)
        return len(rows)

    def verify(self) -> list[str]:
        """Problems with the file, its rows, its counters and its indexes, each naming what to do; empty if none."""
        from ewe.retrieval.store.integrity import problems

        with self.snapshot():
            return problems(self)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """What is written inside is committed together, or not at all if an exception leaves it.

        The generation rises by one if passages changed. Inside an open transaction it joins that one. The connection
        may be used for further tables of the same file. Raises DatastoreError if the store is open for reading only.
        """
        if self._writer is None:
            raise DatastoreError(f"{self.path} is open for reading only: open it with read_only=False")
        with self._lock, sqlite_errors(self.path / FILE_NAME):
            if self._views:
                raise DatastoreError(f"{self.path}: nothing can be written inside a snapshot")
            if self._connection.in_transaction:
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            self._changed = False
            try:
                yield self._connection
                if self._changed:
                    self._connection.execute("UPDATE state SET generation = generation + 1")
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk makes SQLite roll back by itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _add_batch(self, batch: Sequence[Passage]) -> AddResult:
        """At most 1000 passages, inside a transaction."""
        prints = [self._digests(passage) for passage in batch]
        known = dict(self.lookup("id, digest", "id", [passage.id for passage in batch]))
        contents = {content for (content,) in self.lookup("content", "content", [content for content, _ in prints])}
        (rowid,) = self.query("SELECT next_rowid FROM state")[0]
        rowids: list[int | None] = []
        conflicts, new = [], []
        for passage, (content, digest) in zip(batch, prints, strict=True):
            if known.get(passage.id, digest) != digest:
                conflicts.append(passage.id)
                rowids.append(None)
            elif passage.id in known or content in contents:
                rowids.append(None)
            else:
                known[passage.id] = digest
                contents.add(content)
                new.append((rowid, *_VALUES(passage), content, digest))
                rowids.append(rowid)
                rowid += 1
        self._connection.executemany(
            f"INSERT INTO passages (rowid, {COLUMNS}, content, digest) VALUES ({','.join('?' * 10)})",  # noqa: S608
            new,
        )
        self._account(added=[(row[0], row[-1]) for row in new])
        return AddResult(tuple(rowids), len(batch) - len(new) - len(conflicts), tuple(conflicts))

    def _account(self, added: Sequence[tuple[int, bytes]] = (), removed: Sequence[tuple[int, bytes]] = ()) -> None:
        """Brings counters and checksum up to date with rows of (rowid, digest)."""
        if not added and not removed:
            return
        checksum = checksum_after(self.checksum, added, removed)
        self._connection.execute(
            "UPDATE state SET passages = passages + ?, next_rowid = max(next_rowid, ?), checksum = ?",
            (len(added) - len(removed), added[-1][0] + 1 if added else 0, checksum),
        )
        self._changed = True

    def _digests(self, passage: Passage) -> tuple[bytes, bytes]:
        try:
            return content_digest(passage), passage_digest(passage)
        except UnicodeEncodeError as error:
            raise DatastoreError(f"passage {passage.id!r} holds half of a surrogate pair: repair its text") from error
