"""The memories of all users and agents on disk."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from ewe.config import is_postgres
from ewe.errors import DatastoreError, InvalidRequestError
from ewe.longterm.records import Memory, Revision, Scope
from ewe.longterm.store.adding import ADD_REVISION, AddResult, History, add, revision_row
from ewe.longterm.store.check import mend, problems
from ewe.longterm.store.checksums import COUNTED
from ewe.longterm.store.erasing import ADD_DELETION, Eraser, Erasure, deletion_row
from ewe.longterm.store.intact_rows import intact_memories
from ewe.longterm.store.memory_change import Change
from ewe.longterm.store.memory_file import MemoryFile
from ewe.longterm.store.memory_rows import MEMORY_COLUMNS, Deletion, memory_checksum, memory_values
from ewe.longterm.store.memory_session import MemorySession
from ewe.longterm.store.reading import MemoryReader, missing
from ewe.longterm.store.voices import voice_in
from ewe.retrieval.store.session import Connection

ADDED = "added"


class MemoryStore(MemoryReader):
    """A folder with `memories.sqlite` (the one truth) and its vectors (made from it), or tables in PostgreSQL.

    To a folder one process writes, and any number read it at the same time; each sees what was committed before it
    looked. An id names one memory of one scope. Every change but the count of recalls makes a revision, and revisions
    stay as long as their memory. Safe to call from several threads, not to be carried across a fork. All methods raise
    DatastoreError, naming the file and what to do, for damage, a full disk and files that may not be written.
    """

    def __init__(self, session: MemorySession) -> None:
        super().__init__(session)
        self._eraser = Eraser(session, self.lexicon, self.embeddings.index)

    @staticmethod
    def exists(path: str | Path) -> bool:
        """Whether a store is there. Raises DatastoreError for a server that cannot be reached."""
        return _database(path).exists(path)

    @classmethod
    def create(cls, path: str | Path) -> Self:
        """A new, empty store, open for writing. Raises DatastoreError if there is one already."""
        _database(path).make(path)
        return cls.open(path, read_only=False)

    @classmethod
    def open(cls, path: str | Path, read_only: bool = True, checked: bool = True) -> Self:
        """The store in a folder or behind a URL.

        checked: only if memories can be found as they were written; without, what is damaged can be looked at and
        mended. Raises DatastoreError if there is none, it is damaged so, or another process writes to the folder.
        """
        store = cls(_database(path)(path, read_only))
        try:
            if checked:
                store._session.check()
            if not read_only:
                store._recover()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Ends the connection; a writer also lets the next one in."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def transaction(self) -> AbstractContextManager[Connection]:
        """What is read and written inside belongs together: other threads wait, and an exception undoes all of it."""
        return self._session.transaction()

    def add(self, memories: Iterable[Memory], reason: str = ADDED, evidence: tuple[str, ...] = ()) -> AddResult:
        """Adds memories, a transaction for every 1000; the history of each begins with `reason` and `evidence`."""
        return self.restore((memory, [_first(memory, reason, evidence)]) for memory in memories)

    def restore(self, histories: Iterable[History]) -> AddResult:
        """Adds memories with their histories, 1000 per transaction. Raises DatastoreError for one with a gap."""
        return add(self._session, self.lexicon, histories)

    def revise(
        self, scope: Scope, memory_id: str, change: Change, *, at: float, reason: str, evidence: Iterable[str] = ()
    ) -> Revision:
        """Changes a memory and writes down when, why and on what evidence; returns what was written down.

        To decide by what is there now, `get` it inside the same `transaction`. Raises InvalidRequestError if the scope
        holds no memory with this id, or the change makes it invalid.
        """
        with self._session.transaction() as connection, self.seeing([scope]):
            row = self._row(scope, memory_id)
            if row is None:
                raise missing(memory_id)
            [old] = intact_memories(self._session, [row])
            new = change.apply(old, at)
            before = "" if new.content == old.content else old.content
            revision = Revision(
                memory_id, row.revisions + 1, at, reason, old.veracity, new.veracity, tuple(evidence), before,
                new.uncertainty,
            )  # fmt: skip
            [within] = self.scope_numbers([scope])
            voices = self.voices.assign(connection, within, [new.source.id, *map(voice_in, revision.evidence)])
            values = memory_values(new, voices)
            settings = ", ".join(f"{column} = ?" for column in MEMORY_COLUMNS.split(", "))
            connection.execute(
                f"UPDATE memories SET {settings}, revisions = ?, checksum = ? WHERE number = ?",  # noqa: S608
                (*values, revision.number, memory_checksum(scope, values), row.number),
            )
            connection.execute(ADD_REVISION, revision_row(row.number, revision, voices))
            if before:
                self.lexicon.remove(connection, [(row.number, within, old.content)])
                self.lexicon.add(connection, [(row.number, within, new.content)])
                self.embeddings.index.forget(connection, [within], [row.number])
        self._wipe()
        return revision

    def recalled(self, scope: Scope, ids: Iterable[str]) -> None:
        """Counts one recall of each of these memories; ids that are not there (any more) are passed over."""
        with self._session.transaction() as connection, self.seeing([scope]):
            numbers = self.scope_numbers([scope])
            connection.executemany(
                f"UPDATE memories SET recall_count = recall_count + 1, checksum = checksum + {COUNTED} "  # noqa: S608
                "WHERE scope = ? AND id = ?",
                [(number, memory_id) for number in numbers for memory_id in ids],
            )

    def delete(self, scope: Scope, ids: Iterable[str] | None = None, *, at: float, reason: str) -> int:
        """Deletes memories (None: all of the scope) with their histories, words and vectors; how many there were.

        The log keeps scope, id, time and reason; `scrub` takes the last traces from the file.
        """
        with self._session.transaction() as connection, self.seeing([scope]):
            taken = self._eraser.delete(connection, scope, ids, at, reason)
        self._wipe()
        return taken.memories

    def erase(self, user: str, *, at: float, reason: str) -> list[Erasure]:
        """Deletes all memories of a user, with every agent, from all tables; what was taken, a receipt per agent.

        The log forgets the user but for a digest of the name, so that an old copy does not bring the memories back.
        `scrub` takes the last traces from the file. Raises InvalidRequestError for nobody.
        """
        if not user:
            raise InvalidRequestError("name the user whose memories are to be erased")
        with self._session.transaction() as connection, self.seeing(None):
            taken = self._eraser.erase(connection, user, at, reason)
        self._wipe()
        return taken

    def note_deletions(self, entries: Iterable[Deletion]) -> None:
        """Takes over entries of another store's log that are not in this one's, nor of a user erased here."""
        with self._session.transaction() as connection, self.seeing(None):
            known = {entry.values[:4] for entry in self.deletions()}
            new = (entry for entry in entries if not self.was_erased(entry.scope.user, entry.at))
            rows = {entry.values[:4]: deletion_row(entry) for entry in new if entry.values[:4] not in known}
            connection.executemany(ADD_DELETION, list(rows.values()))

    def scrub(self) -> None:
        """Rewrites the database, so that nothing of what was deleted is left in any file of the store.

        Raises DatastoreError while a reader holds on to what was there before.
        """
        self._wipe()
        [(deleted,)] = self._session.query("SELECT unscrubbed FROM state")
        if not self._session.rewrite():
            raise DatastoreError(f"{self.path}: a reader holds on to deleted memories: close it and scrub again")
        with self._session.transaction() as connection:
            connection.execute(  # what others deleted meanwhile is left
                "UPDATE state SET unscrubbed = CASE WHEN unscrubbed > ? THEN unscrubbed - ? ELSE 0 END",
                (deleted, deleted),
            )

    def verify(self) -> list[str]:
        """Problems with the file, its memories, histories, words and vectors; empty if there are none."""
        with self.snapshot(), self.seeing(None):
            return problems(self._session)

    def mend(self) -> list[str]:
        """Makes again what memories are found by, where it is damaged; what was done. No memory is changed."""
        done = mend(self._session, self.lexicon, self.embeddings.index)
        self._wipe()
        return done

    def _wipe(self) -> None:
        """Takes the vectors of memories that are gone from their file, and what was deleted from the log of SQLite."""
        if self._session.in_transaction:
            return  # the one who began it may still take it back; the next change, or the next start, does it
        if self.embeddings.index.wipe():
            self._session.empty_log()

    def _recover(self) -> None:
        """Ends what a killed process had begun, and makes the index of words again if its tokenizer was another one."""
        self._wipe()
        if not self.lexicon.is_current():
            with self._session.transaction() as connection, self.seeing(None):
                self.lexicon.rebuild(connection)


def _database(path: str | Path) -> type[MemorySession]:
    if is_postgres(path):
        from ewe.longterm.store.postgres import PostgresSession

        return PostgresSession
    return MemoryFile


def _first(memory: Memory, reason: str, evidence: tuple[str, ...]) -> Revision:
    return Revision(
        memory.id, 1, memory.created_at, reason, memory.veracity, memory.veracity, evidence, "", memory.uncertainty
    )  # fmt: skip
