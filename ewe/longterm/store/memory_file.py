"""A memory store in an SQLite file."""

from collections.abc import Sequence

from ewe.errors import DatastoreError
from ewe.longterm.store.memory_session import MemorySession, VectorIndex
from ewe.longterm.store.schema import SQLITE
from ewe.longterm.store.upgrades import DELETIONS_STAY, REVISIONS_STAY, from_version_4
from ewe.longterm.store.vector_file import FileVectors
from ewe.retrieval.store.session import FileSession
from ewe.retrieval.store.sqlite_file import StoreFormat

_ADDED = f"""
ALTER TABLE scopes ADD COLUMN vectors_changed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memories_by_cell ON memories (scope, cell);
CREATE TABLE cells (
    scope INTEGER NOT NULL,
    cell INTEGER NOT NULL,
    centre BLOB NOT NULL,
    PRIMARY KEY (scope, cell)
);
CREATE TABLE unwiped (memory INTEGER PRIMARY KEY);
{REVISIONS_STAY};
CREATE TRIGGER revisions_stay BEFORE DELETE ON revisions
WHEN EXISTS (SELECT 1 FROM memories WHERE number = OLD.memory)
BEGIN SELECT RAISE(ABORT, 'revisions go with their memory only'); END;
CREATE TRIGGER revisions_go_with_their_memory AFTER DELETE ON memories
BEGIN DELETE FROM revisions WHERE memory = OLD.number; END;
{DELETIONS_STAY};
CREATE TRIGGER deletions_stay BEFORE DELETE ON deletions WHEN OLD.user NOT IN (SELECT user FROM erasing)
BEGIN SELECT RAISE(ABORT, 'the log of deletions is never shortened'); END;
INSERT INTO state VALUES (1, '', 0);
"""  # noqa: S608


_OF_MEMORIES = ("sqlite_schema", "scopes", "memories", "revisions", "deletions", "voices", "encoder", "cells")
"""The tables whose damage would lose, double or mix up memories; by words and postings they are only ranked."""


class MemoryFile(FileSession, MemorySession):
    """The SQLite store in a folder; `MemorySession` says what its methods are for."""

    FORMAT = StoreFormat(
        kind="memory store",
        file_name="memories.sqlite",
        application_id=0x4557454D,  # "EWEM"
        version=5,
        script=SQLITE + _ADDED,
        to_make="'ewe memory add' makes a store",
        to_renew="export the memories with the engine that wrote them, and import them here",
        private=True,  # what people told is nobody else's business
        upgrades={4: from_version_4},
    )

    def check(self) -> None:
        """Compares the tables of memories with their indexes; takes about 2 microseconds for each memory.

        A row has a checksum, but the entry of an index by which it is found, or not found, has none.
        """
        for table in _OF_MEMORIES:
            [(message,), *_] = self.query(f"PRAGMA integrity_check({table})")
            if message != "ok":
                place = message.splitlines()[-1]
                raise DatastoreError(
                    f"{self.file} is damaged ({place}): 'ewe memory check --repair {self.folder}' makes its indexes "
                    "again; where that does not help, restore the store from a copy"
                )

    def new_numbers(self, count: int) -> Sequence[int]:
        """The numbers that AUTOINCREMENT comes to next."""
        [(last,)] = self.query("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'memories'), 0)")
        return range(last + 1, last + 1 + count)

    def vector_index(self) -> VectorIndex:
        """A file beside the database."""
        return FileVectors(self)

    def size(self) -> int:
        """The bytes of all files of the folder."""
        return sum(file.stat().st_size for file in self.folder.iterdir() if file.is_file())
