"""The passages of a datastore on disk."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

from ewe.errors import DatastoreError
from ewe.retrieval.store.integrity import checksum_after, content_digest, passage_digest
from ewe.retrieval.store.session import FileSession
from ewe.retrieval.store.sqlite_file import StoreFormat
from ewe.types import Passage

_BATCH = 1000
_PAGE = 1000
_FIELDS = "id, text, title, source, url, date, veracity"
_COLUMNS = f"{_FIELDS}, metadata"
_VALUES = attrgetter(*_FIELDS.split(", "))
_INSERT = (
    f"INSERT INTO passages (rowid, {_COLUMNS}, content, digest) "  # noqa: S608
    f"VALUES ({','.join('?' * 11)}) ON CONFLICT (id) DO NOTHING ON CONFLICT (content) DO NOTHING"
)
_SCHEMA = """
CREATE TABLE passages (
    rowid INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    title TEXT NOT NULL,
    source TEXT NOT NULL,
    url TEXT NOT NULL,
    date TEXT NOT NULL,
    veracity REAL NOT NULL,
    metadata TEXT NOT NULL,
    content BLOB NOT NULL UNIQUE,
    digest BLOB NOT NULL
);
CREATE TABLE state (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    generation INTEGER NOT NULL,
    passages INTEGER NOT NULL,
    next_rowid INTEGER NOT NULL,
    checksum TEXT NOT NULL
);
INSERT INTO state VALUES (1, 0, 0, 1, '0000000000000000000000000000000000000000000000000000000000000000');
"""


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


class PassageStore(FileSession):
    """A folder with `passages.sqlite` (the one truth) and `indexes/` (made from it).

    One process writes, any number read at the same time; each sees what was committed before it looked. Rows keep
    their number for life, and no number is used twice. Every passage is checked against its digest when it is read.
    Safe to call from several threads, not to be carried across a fork. All methods raise DatastoreError, naming the
    file and what to do, for damage, a full disk and files that may not be written.
    """

    FORMAT = StoreFormat(
        kind="datastore",
        file_name="passages.sqlite",
        application_id=0x45574550,  # "EWEP"
        version=3,
        script=_SCHEMA,
        to_make="build one with 'ewe index build'",
        to_renew="build the datastore again",
    )

    @classmethod
    def create(cls, path: str | Path) -> Self:
        """A new, empty store, open for writing. Raises DatastoreError if the folder holds one already."""
        cls.make(path)
        return cls.open(path, read_only=False)

    @classmethod
    def open(cls, path: str | Path, read_only: bool = True) -> Self:
        """The store in a folder. Raises DatastoreError if there is none, or another process writes to it."""
        return cls(path, read_only)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return int(self.query("SELECT passages FROM state")[0][0])

    @property
    def generation(self) -> int:
        """How many times passages were added or removed."""
        return int(self.query("SELECT generation FROM state")[0][0])

    @property
    def checksum(self) -> str:
        """64 hexadecimal digits over all rows and their numbers; the same on every machine."""
        return str(self.query("SELECT checksum FROM state")[0][0])

    def index_dir(self, name: str) -> Path:
        """The folder of one index; it need not exist."""
        return self.folder / "indexes" / name

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
        found, extent = 0, self._extent()
        for rowid, _, passage in self.scan_digests(after_rowid):
            yield rowid, passage
            found += 1
        if not after_rowid and extent == self._extent() and found != extent[1]:
            raise DatastoreError(f"{self.file} is damaged: it counts {extent[1]} passages, {found} can be read")

    def scan_digests(self, after_rowid: int = 0) -> Iterator[tuple[int, bytes, Passage]]:
        """(rowid, digest, passage) as in `scan`, each digest checked against its passage; they are not counted."""
        statement = f"SELECT rowid, digest, {_COLUMNS} FROM passages WHERE rowid > ? ORDER BY rowid LIMIT {_PAGE}"  # noqa: S608
        while page := self.query(statement, (after_rowid,)):
            for rowid, digest, *values in page:
                yield rowid, digest, self._checked(rowid, digest, values)
            after_rowid = page[-1][0]

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
        distinct = list(dict.fromkeys(ids))
        with self.transaction() as connection:
            rows = self._where("rowid, digest", "id", distinct)
            connection.executemany("DELETE FROM passages WHERE rowid = ?", ((rowid,) for rowid, _ in rows))
            self._account(removed=rows)
        return len(rows)

    def verify(self) -> list[str]:
        """Problems with the file, its rows, its counters and its indexes, each naming what to do; empty if none."""
        from ewe.retrieval.store.integrity import problems

        with self.snapshot():
            return problems(self)

    def _add_batch(self, batch: Sequence[Passage]) -> AddResult:
        prints = [self._digests(passage) for passage in batch]
        [(rowid,)] = self.query("SELECT next_rowid FROM state")
        rowids: list[int | None] = []
        conflicts, new = [], []
        for passage, (content, digest) in zip(batch, prints, strict=True):
            metadata = json.dumps(passage.metadata, sort_keys=True, ensure_ascii=False)
            values = (rowid, *_VALUES(passage), metadata, content, digest)
            is_new = self._connection.execute(_INSERT, values).rowcount
            rowids.append(rowid if is_new else None)
            if is_new:
                new.append((rowid, digest))
                rowid += 1
            elif self.query("SELECT 1 FROM passages WHERE id = ? AND digest <> ?", (passage.id, digest)):
                conflicts.append(passage.id)
        self._account(added=new)
        return AddResult(tuple(rowids), len(batch) - len(new) - len(conflicts), tuple(conflicts))

    def _account(self, added: Sequence[tuple[int, bytes]] = (), removed: Sequence[tuple[int, bytes]] = ()) -> None:
        """Brings counters and checksum up to date with rows of (rowid, digest)."""
        if not added and not removed:
            return
        checksum = checksum_after(self.checksum, added, removed)
        self._connection.execute(
            "UPDATE state SET generation = generation + 1, passages = passages + ?, "
            "next_rowid = max(next_rowid, ?), checksum = ?",
            (len(added) - len(removed), added[-1][0] + 1 if added else 0, checksum),
        )

    def _digests(self, passage: Passage) -> tuple[bytes, bytes]:
        try:
            return content_digest(passage), passage_digest(passage)
        except UnicodeEncodeError as error:
            raise DatastoreError(f"passage {passage.id!r} holds half of a surrogate pair: repair its text") from error
        except TypeError as error:
            raise DatastoreError(f"passage {passage.id!r}: metadata must be JSON ({error})") from error

    def _extent(self) -> tuple[int, int]:
        """Generation and number of passages: the same ones as long as nobody writes."""
        [(generation, count)] = self.query("SELECT generation, passages FROM state")
        return int(generation), int(count)

    def _where(self, columns: str, key: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """The named columns of the passages whose `key` is one of the values, in no particular order."""
        return self.lookup(f"SELECT {columns} FROM passages WHERE {key} IN", values)  # noqa: S608

    def _read(self, key: str, keys: Sequence[str] | Sequence[int]) -> list[Passage]:
        rows = {
            value: self._checked(rowid, digest, values)
            for value, rowid, digest, *values in self._where(
                f"{key}, rowid, digest, {_COLUMNS}", key, list(dict.fromkeys(keys))
            )
        }
        for value in keys:
            if value not in rows:
                raise DatastoreError(f"{self.folder} holds no passage with the {key} {value!r}")
        return [rows[value] for value in keys]

    def _checked(self, rowid: int, digest: bytes, values: Sequence[Any]) -> Passage:
        """The passage of a row; raises DatastoreError if it is not what was written."""
        *fields, metadata = values
        try:
            passage = Passage(*[*fields, json.loads(metadata)])
            intact = passage_digest(passage) == digest
        except (ValueError, TypeError, AttributeError):
            intact = False
        if not intact:
            raise DatastoreError(
                f"{self.file} is damaged at row {rowid}: restore it from a copy, or have "
                f"'ewe index check --repair {self.folder}' take the passage out"
            )
        return passage
