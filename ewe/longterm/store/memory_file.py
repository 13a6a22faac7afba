"""The SQLite file of a memory store: its tables, how it is made, opened and brought to a newer schema."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from ewe.errors import DatastoreError
from ewe.longterm.store.memory_session import MemorySession, VectorIndex
from ewe.longterm.store.schema import SQLITE
from ewe.longterm.store.vector_file import FileVectors
from ewe.retrieval.store.session import FileSession
from ewe.retrieval.store.sqlite_file import make_file, open_file

FILE_NAME = "memories.sqlite"
SCHEMA_VERSION = 4
# Per version the statements that lead to the next one. Never change one that was published: add another.
MIGRATIONS: dict[int, str] = {
    1: "ALTER TABLE revisions ADD COLUMN uncertainty REAL",
    2: """
ALTER TABLE memories ADD COLUMN confirmed_at REAL NOT NULL DEFAULT 0;
UPDATE memories SET confirmed_at = coalesce(
    (SELECT max(at) FROM revisions WHERE memory = memories.number AND veracity_after > veracity_before), 0)
""",
    3: """
ALTER TABLE memories ADD COLUMN valid_from REAL;
ALTER TABLE memories ADD COLUMN valid_until REAL;
ALTER TABLE memories ADD COLUMN checksum INTEGER;
ALTER TABLE revisions ADD COLUMN checksum INTEGER;
CREATE TABLE erasing (user TEXT NOT NULL);
DROP TRIGGER deletions_stay;
CREATE TRIGGER deletions_stay BEFORE DELETE ON deletions WHEN OLD.user NOT IN (SELECT user FROM erasing)
BEGIN SELECT RAISE(ABORT, 'the log of deletions is never shortened'); END
""",
}
_APPLICATION_ID = 0x4557454D  # "EWEM" in the header tells our files from other people's

_ADDED = """
ALTER TABLE scopes ADD COLUMN vectors_changed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memories_by_cell ON memories (scope, cell);
CREATE TABLE cells (
    scope INTEGER NOT NULL,
    cell INTEGER NOT NULL,
    centre BLOB NOT NULL,
    PRIMARY KEY (scope, cell)
);
CREATE TABLE unwiped (memory INTEGER PRIMARY KEY);
CREATE TRIGGER revisions_stay_as_they_are BEFORE UPDATE ON revisions
BEGIN SELECT RAISE(ABORT, 'revisions are never changed'); END;
CREATE TRIGGER revisions_stay BEFORE DELETE ON revisions
WHEN EXISTS (SELECT 1 FROM memories WHERE number = OLD.memory)
BEGIN SELECT RAISE(ABORT, 'revisions go with their memory only'); END;
CREATE TRIGGER revisions_go_with_their_memory AFTER DELETE ON memories
BEGIN DELETE FROM revisions WHERE memory = OLD.number; END;
CREATE TRIGGER deletions_stay_as_they_are BEFORE UPDATE ON deletions
BEGIN SELECT RAISE(ABORT, 'the log of deletions is never changed'); END;
CREATE TRIGGER deletions_stay BEFORE DELETE ON deletions WHEN OLD.user NOT IN (SELECT user FROM erasing)
BEGIN SELECT RAISE(ABORT, 'the log of deletions is never shortened'); END;
INSERT INTO state VALUES (1, '', 0);
"""


def create_database(folder: Path) -> None:
    """Makes an empty store in `folder`, which appears whole or not at all. Raises DatastoreError if one is there."""
    target = folder / FILE_NAME
    if target.exists():
        raise DatastoreError(f"{folder} holds memories already: open it, or choose another folder")
    # What people told is nobody else's business.
    make_file(target, _APPLICATION_ID, SCHEMA_VERSION, SQLITE + _ADDED, private=True)


def connect(folder: Path, read_only: bool) -> sqlite3.Connection:
    """A checked connection to the store in `folder`; may be used from several threads, one at a time.

    A writer brings an older schema up to date, step by step, each whole or not at all. Raises DatastoreError naming the
    file if it is missing, damaged, no store, of a newer schema, or of an older one and opened for reading only.
    """
    path = folder / FILE_NAME
    if not path.exists():
        raise DatastoreError(f"{folder} holds no memories ({FILE_NAME} is missing): 'ewe memory add' makes a store")

    def prepare(path: Path, connection: sqlite3.Connection) -> None:
        _check_schema(path, connection, read_only)
        # What is deleted is overwritten.
        connection.execute("PRAGMA secure_delete = ON")

    return open_file(path, read_only, prepare)


class MemoryFile(FileSession, MemorySession):
    """The SQLite store in a folder; `MemorySession` says what its methods are for."""

    def __init__(self, folder: Path, read_only: bool) -> None:
        super().__init__(folder / FILE_NAME, connect, read_only)
        self.path = folder

    def new_numbers(self, count: int) -> Sequence[int]:
        """The numbers that AUTOINCREMENT comes to next."""
        [(last,)] = self.query("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'memories'), 0)")
        return range(last + 1, last + 1 + count)

    def vector_index(self) -> VectorIndex:
        """A file beside the database."""
        return FileVectors(self)

    def damages(self) -> list[str]:
        """What SQLite's check says."""
        return [str(message) for (message,) in self.query("PRAGMA integrity_check(20)") if message != "ok"]

    def size(self) -> int:
        """The bytes of all files of the folder."""
        return sum(file.stat().st_size for file in self.folder.iterdir() if file.is_file())


def _check_schema(path: Path, connection: sqlite3.Connection, read_only: bool) -> None:
    if connection.execute("PRAGMA application_id").fetchone() != (_APPLICATION_ID,):
        raise DatastoreError(f"{path} is an SQLite file, but no memory store of this engine")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise DatastoreError(f"{path} has schema version {version}, this engine reads {SCHEMA_VERSION}: update it")
    if version < SCHEMA_VERSION and read_only:
        raise DatastoreError(
            f"{path} has schema version {version}, this engine reads {SCHEMA_VERSION}: "
            "open it once for writing, which brings it up to date ('ewe memory scrub' does, too)"
        )
    for step in range(version, SCHEMA_VERSION):
        if step not in MIGRATIONS:
            raise DatastoreError(f"{path} has schema version {version}, from which no step leads on: restore a copy")
        try:
            connection.executescript(f"BEGIN IMMEDIATE; {MIGRATIONS[step]}; PRAGMA user_version = {step + 1}; COMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    if connection.execute("SELECT count(*) FROM state").fetchone() != (1,):
        raise DatastoreError(f"{path} is damaged: its state is missing; restore it from a copy")
