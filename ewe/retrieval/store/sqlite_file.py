"""Files of stores: how SQLite's are made and opened, how others are written whole, and what their errors mean."""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO

from ewe.errors import DatastoreError

_MAGIC = b"SQLite format 3\0"
_BUSY_S = 30.0


@dataclass(frozen=True, slots=True)
class StoreFormat:
    """One kind of store in an SQLite file.

    kind: what messages call it. application_id: stands in the header and tells our files from other people's. script:
    makes the tables, among them `state` with one row. to_make, to_renew: what to do where there is none, or one of an
    older schema. private: nobody but its owner may read the file, nor the folder if it is new. upgrades: by an older
    version, what makes the next one of it, in a transaction.
    """

    kind: str
    file_name: str
    application_id: int
    version: int
    script: str
    to_make: str
    to_renew: str
    private: bool = False
    upgrades: Mapping[int, Callable[[sqlite3.Connection, Path], None]] = field(default_factory=dict)

    def make(self, folder: Path) -> None:
        """Makes an empty store in WAL mode, whole or not at all. Raises DatastoreError if there is one already."""
        target = folder / self.file_name
        if target.exists():
            raise DatastoreError(f"{folder} holds a {self.kind} already: open it, or choose another folder")
        partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
        with file_errors(folder), sqlite_errors(folder):
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700 if self.private else 0o777)
                partial.unlink(missing_ok=True)
                partial.touch(mode=0o600 if self.private else 0o666)
                with closing(sqlite3.connect(partial, isolation_level=None)) as connection:
                    connection.execute(f"PRAGMA application_id = {self.application_id}")
                    connection.execute(f"PRAGMA user_version = {self.version}")
                    connection.execute("PRAGMA journal_mode = WAL")
                    connection.executescript(f"BEGIN; {self.script} COMMIT;")
                partial.rename(target)
            finally:
                partial.unlink(missing_ok=True)

    def connect(self, folder: Path, read_only: bool) -> sqlite3.Connection:
        """A connection to the store in `folder`; may be used from several threads, one at a time.

        Raises DatastoreError naming the file if it is missing, damaged, no such store, or of another schema.
        """
        path = folder / self.file_name
        if not path.exists():
            raise DatastoreError(f"{folder} holds no {self.kind} ({self.file_name} is missing): {self.to_make}")
        with file_errors(path), sqlite_errors(path):
            _check_header(path)
            connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?{_open_mode(path, read_only)}",
                uri=True,
                timeout=_BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._check_schema(path, connection)
                # A commit is on the disk before it is acknowledged, so that not even a power cut takes it back.
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA cache_size = -65536")
                if self.private:  # what is deleted is overwritten
                    connection.execute("PRAGMA secure_delete = ON")
            except BaseException:
                connection.close()
                raise
        return connection

    def is_older(self, folder: Path) -> bool:
        """Whether the store in `folder` is of an earlier version that can be brought up to date."""
        path = folder / self.file_name
        with file_errors(path), path.open("rb") as file:
            header = file.read(100)
        return header.startswith(_MAGIC) and int.from_bytes(header[60:64], "big") in self.upgrades

    def upgrade(self, folder: Path) -> None:
        """Brings the store in `folder` up to date, whole or not at all; nobody else may write to it meanwhile."""
        path = folder / self.file_name
        with sqlite_errors(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            for step in range(version, self.version):
                self.upgrades[step](connection, folder)
            connection.execute(f"PRAGMA user_version = {self.version}")
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _check_schema(self, path: Path, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA application_id").fetchone() != (self.application_id,):
            raise DatastoreError(f"{path} is an SQLite file, but no {self.kind} of this engine")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != self.version:
            raise DatastoreError(
                f"{path} has schema version {version}, this engine reads version {self.version}: "
                f"{'update the engine' if version > self.version else self.to_renew}"
            )
        if connection.execute("SELECT count(*) FROM state").fetchone() != (1,):
            raise DatastoreError(f"{path} is damaged: its state is missing; restore it from a copy")


def _open_mode(path: Path, read_only: bool) -> str:
    """How SQLite opens the file: a WAL file needs a writable folder even for reading, unless nobody can write it."""
    if not read_only:
        return "mode=rw"
    if not os.access(path.parent, os.W_OK) and not _log_size(path):
        return "mode=ro&immutable=1"
    return "mode=ro"


def _log_size(path: Path) -> int:
    log = path.with_name(f"{path.name}-wal")
    return log.stat().st_size if log.exists() else 0


def _check_header(path: Path) -> None:
    """Refuses what is no SQLite file, and one that was cut short, before SQLite touches it."""
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise DatastoreError(f"{path} is no datastore, or damaged: its header is not SQLite's")
    page_size = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    expected = (65536 if page_size == 1 else page_size) * pages
    if path.stat().st_size < expected and not _log_size(path):
        raise DatastoreError(
            f"{path} is damaged: it was cut short ({path.stat().st_size} bytes of {expected}); restore it from a copy"
        )


def lock_for_writing(folder: Path) -> BinaryIO:
    """A file that the one process which writes to a store keeps open; the system closes it when that process dies."""
    path = folder / "writer.lock"
    with file_errors(path):
        file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise DatastoreError(
            f"another process is writing to {folder}, or this one opened it twice: wait until it has ended, or use the "
            "one that is open"
        ) from error
    return file


_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space and run again, what was committed is kept",
    sqlite3.SQLITE_READONLY: "it cannot be written: make the file and its folder writable, or copy it elsewhere",
    sqlite3.SQLITE_BUSY: "another process holds it: wait until that has ended",
    sqlite3.SQLITE_LOCKED: "another process holds it: wait until that has ended",
    sqlite3.SQLITE_CORRUPT: "it is damaged: restore it from a copy, or build it again from its sources",
    sqlite3.SQLITE_NOTADB: "it is damaged or no datastore: restore it from a copy, or build it again",
    sqlite3.SQLITE_IOERR: "the disk failed or is full: check it and run again, what was committed is kept",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: its folder must exist, writable, at a path under 500 bytes",
}


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turns errors of SQLite into a DatastoreError that names `path` and what to do."""
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite's message quotes a name that is no text any more
        raise DatastoreError(f"{path}: {_ADVICE[sqlite3.SQLITE_CORRUPT]} ({error})") from error
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.ProgrammingError) and "closed database" in str(error):
            raise DatastoreError(f"{path} was closed: open it again") from error
        code = getattr(error, "sqlite_errorcode", None)
        advice = _ADVICE.get(code & 0xFF, "") if code is not None else ""
        raise DatastoreError(f"{path}: {advice or 'unexpected error'} ({error})") from error


@contextmanager
def whole_file(path: Path, mode: int = 0o666) -> Iterator[IO[str]]:
    """A text file to write, which takes the place of `path` at the end, once it is on the disk; none if that fails.

    Raises DatastoreError naming the file.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with file_errors(path):
        try:
            partial.touch(mode)
            with partial.open("w", encoding="utf-8") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turns errors of the file system into a DatastoreError that names `path`."""
    try:
        yield
    except OSError as error:
        raise DatastoreError(f"{path}: {error.strerror or error}") from error
