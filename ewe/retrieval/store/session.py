"""One connection to a store's database, shared by threads: queries, consistent views and transactions."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Condition, RLock, get_ident
from typing import Any, ClassVar, Protocol

from ewe.errors import DatastoreError
from ewe.retrieval.store.sqlite_file import StoreFormat, lock_for_writing, sqlite_errors

_LOOKUP_SIZE = 500


class Connection(Protocol):
    """What a transaction writes with: `sqlite3.Connection`, or another database's that takes the same statements."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        """Runs a statement; what it found, as a cursor."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """Runs a statement once per row; a cursor, whose `rowcount` is that of all rows."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was begun and not ended."""

    def close(self) -> None:
        """Ends the connection."""


class Session(ABC):
    """One connection to a database, open for reading, or for writing too.

    Safe to call from several threads, not to be carried across a fork. Raises DatastoreError, naming the database and
    what to do, for whatever fails there.
    """

    _connection: Connection

    def __init__(self, path: str | Path, read_only: bool) -> None:
        self.path, self.name, self.read_only = path, str(path), read_only
        self.file: str | Path = self.name  # what messages about damage name
        self._lock = RLock()
        self._free = Condition(self._lock)
        self._views: Counter[int] = Counter()  # open snapshots per thread
        self._waiting = 0  # threads that wait to write
        self.in_transaction = False  # of any thread

    @abstractmethod
    def _begin(self, write: bool) -> None:
        """Begins a transaction; one that does not write reads what was there when it first read."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Turns errors of the database into DatastoreError."""

    @abstractmethod
    def rewrite(self) -> bool:
        """Writes the whole database again without its free space; false while a reader holds on to that."""

    def close(self) -> None:
        """Ends the connection; a writer also lets the next one in."""
        with self._lock:
            self._connection.close()

    def query(self, statement: str, values: Iterable[object] = ()) -> list[tuple[Any, ...]]:
        """All rows that an SQL statement yields; none where it has no result."""
        with self._lock, self._errors():
            cursor = self._connection.execute(statement, tuple(values))
            rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description is not None else []
            return rows

    def lookup(self, statement: str, values: Sequence[object], before: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement that ends in "IN ", for any number of values; `before` stand before them."""
        rows = []
        for first in range(0, len(values), _LOOKUP_SIZE):
            part = values[first : first + _LOOKUP_SIZE]
            rows += self.query(f"{statement} ({','.join('?' * len(part))})", (*before, *part))
        return rows

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Inside, every read (of all threads that use this session) sees the store as it was when it was entered."""
        me = get_ident()
        with self._free:
            # Snapshots that overlap would keep a writer waiting for ever.
            self._free.wait_for(lambda: self._views[me] or not self._waiting)
            if not self._views.total() and not self.in_transaction:
                with self._errors():
                    self._begin(write=False)
                try:
                    self.query("SELECT 1 FROM state")  # the first read is what fixes the view
                except BaseException:
                    self._roll_back()
                    raise
            self._views[me] += 1
        try:
            yield
        finally:
            with self._free:
                self._views[me] -= 1
                if not self._views.total() and not self.in_transaction:
                    self._roll_back()
                    self._views.clear()
                    self._free.notify_all()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """What is written inside is committed together, or not at all if an exception leaves it.

        Waits for the snapshots of other threads to end; other threads wait for it. Inside an open transaction it joins
        that one. Raises DatastoreError if the store is open for reading only, or inside a snapshot of this thread.
        """
        if self.read_only:
            raise DatastoreError(f"{self.name} is open for reading only: open it with read_only=False")
        with self._free, self._errors():
            if self._views[get_ident()]:
                raise DatastoreError(f"{self.name}: nothing can be written inside a snapshot")
            if self.in_transaction:
                yield self._connection
                return
            self._wait_for_snapshots()
            self._begin(write=True)
            self.in_transaction = True
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            finally:
                self.in_transaction = False
                self._free.notify_all()

    def _roll_back(self) -> None:
        # A full disk makes SQLite roll back by itself, and a lost connection a server.
        if self._connection.in_transaction:
            self.query("ROLLBACK")

    def _wait_for_snapshots(self) -> None:
        self._waiting += 1
        try:
            self._free.wait_for(lambda: not self._views.total() and not self.in_transaction)
        finally:
            self._waiting -= 1


class FileSession(Session):
    """The SQLite store in a folder, open for reading, or for writing as the only one that does."""

    FORMAT: ClassVar[StoreFormat]

    def __init__(self, folder: str | Path, read_only: bool) -> None:
        self.folder = Path(folder)
        super().__init__(self.folder, read_only)
        self.file: Path = self.folder / self.FORMAT.file_name
        # A folder that holds no store gets no lock file.
        self._lock_file = lock_for_writing(self.folder) if not read_only and self.file.exists() else None
        try:
            if self.file.exists() and self.FORMAT.is_older(self.folder):
                with nullcontext() if self._lock_file is not None else lock_for_writing(self.folder):
                    self.FORMAT.upgrade(self.folder)
            self._connection = self.FORMAT.connect(self.folder, read_only)
        except BaseException:
            if self._lock_file is not None:
                self._lock_file.close()
            raise

    @classmethod
    def exists(cls, folder: str | Path) -> bool:
        """Whether a store is there."""
        return (Path(folder) / cls.FORMAT.file_name).exists()

    @classmethod
    def make(cls, folder: str | Path) -> None:
        """Makes an empty store. Raises DatastoreError if there is one already."""
        cls.FORMAT.make(Path(folder))

    def close(self) -> None:
        """Ends the connection; a writer also lets the next one in."""
        with self._lock:
            super().close()
            if self._lock_file is not None:
                self._lock_file.close()

    def damages(self) -> list[str]:
        """What SQLite's check says."""
        return [str(message) for (message,) in self.query("PRAGMA integrity_check(20)") if message != "ok"]

    def empty_log(self) -> bool:
        """Moves everything from the write-ahead log to the file and empties the log; false while a reader holds it."""
        return not self.query("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]

    def rewrite(self) -> bool:
        """Writes the whole file again without its free space; false as in `empty_log`."""
        self.query("VACUUM")
        return self.empty_log()

    def _begin(self, write: bool) -> None:
        self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def _errors(self) -> AbstractContextManager[None]:
        return sqlite_errors(self.file)
