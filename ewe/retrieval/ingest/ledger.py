"""What was read so far: files, how far in each, which passages came from it, what could not be read."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

from ewe.retrieval.ingest.documents import Problem, SourceFile
from ewe.retrieval.store import PassageStore

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS ingest_settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS ingest_files (
        file INTEGER PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        label TEXT NOT NULL UNIQUE,
        state TEXT NOT NULL,
        blocks INTEGER NOT NULL DEFAULT 0,
        finished INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0,
        passages INTEGER NOT NULL DEFAULT 0,
        duplicates INTEGER NOT NULL DEFAULT 0,
        empty INTEGER NOT NULL DEFAULT 0,
        problems INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE TABLE IF NOT EXISTS ingest_problems (file INTEGER NOT NULL, place TEXT NOT NULL, message TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS ingest_problems_file ON ingest_problems (file)",
    "CREATE TABLE IF NOT EXISTS ingest_origins (passage INTEGER PRIMARY KEY, file INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS ingest_origins_file ON ingest_origins (file)",
)
_KEPT_PROBLEMS = 100  # messages per file; all are counted
_COUNTS = "passages, duplicates, empty, problems"


@dataclass(slots=True)
class FileRecord:
    """One file in the ledger; blocks: how many of its blocks were committed; bytes: about how much that was."""

    number: int
    file: SourceFile
    blocks: int
    finished: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class Counts:
    """What came of files: passages kept, duplicates left out, documents without text, problems."""

    files: int = 0
    passages: int = 0
    duplicates: int = 0
    empty: int = 0
    problems: int = 0


class Ledger:
    """The tables of one store. Whatever changes them joins the transaction that is open, if there is one."""

    def __init__(self, store: PassageStore) -> None:
        self._store = store
        if not self._exists():
            with store.transaction() as connection:
                for statement in _SCHEMA:
                    connection.execute(statement)

    @classmethod
    def of(cls, store: PassageStore) -> Self | None:
        """The ledger of a store that may be open for reading only, or None if nothing was ever read into it."""
        ledger = cls.__new__(cls)
        ledger._store = store
        return ledger if ledger._exists() else None

    def _exists(self) -> bool:
        return bool(self._store.query("SELECT 1 FROM sqlite_master WHERE name = 'ingest_origins'"))

    def settings(self) -> dict[str, Any]:
        """All settings by name."""
        return {name: json.loads(value) for name, value in self._store.query("SELECT * FROM ingest_settings")}

    def set(self, **values: Any) -> None:
        """Keeps settings (JSON values)."""
        with self._store.transaction() as connection:
            rows = [(name, json.dumps(value, sort_keys=True)) for name, value in values.items()]
            connection.executemany("INSERT OR REPLACE INTO ingest_settings VALUES (?, ?)", rows)

    def begin(self, file: SourceFile, state: str) -> FileRecord:
        """The record of a file; `state` says what it and the way to read it were.

        If the state has changed since, what came from the file is removed and it begins anew.
        """
        with self._store.transaction() as connection:
            path = (str(file.path),)
            known = connection.execute("SELECT file, state FROM ingest_files WHERE path = ?", path).fetchone()
            if known is None:
                new = (*path, self._free_label(file), state)
                connection.execute("INSERT INTO ingest_files (path, label, state) VALUES (?, ?, ?)", new)
            elif known[1] != state:
                self._empty(known[0])
                connection.execute("UPDATE ingest_files SET state = ? WHERE file = ?", (state, known[0]))
            number, label, blocks, finished, size = connection.execute(
                "SELECT file, label, blocks, finished, bytes FROM ingest_files WHERE path = ?", path
            ).fetchone()
        return FileRecord(number, SourceFile(file.path, label, file.kind), blocks, bool(finished), size)

    def advance(
        self,
        record: FileRecord,
        size: int,
        rows: Sequence[int],
        duplicates: int,
        empty: int,
        problems: Sequence[Problem],
    ) -> None:
        """One more block of a file is in the store: its rows, and how much came to nothing."""
        with self._store.transaction() as connection:
            connection.execute(
                "UPDATE ingest_files SET blocks = blocks + 1, bytes = bytes + ?, passages = passages + ?,"
                " duplicates = duplicates + ?, empty = empty + ? WHERE file = ?",
                (size, len(rows), duplicates, empty, record.number),
            )
            connection.executemany("INSERT INTO ingest_origins VALUES (?, ?)", ((row, record.number) for row in rows))
            self.report(record, problems)

    def taken(self, ids: Sequence[str], record: FileRecord) -> frozenset[str]:
        """Those of the ids that stand for passages which are not of this file."""
        rows = self._store.lookup(
            "SELECT id FROM passages LEFT JOIN ingest_origins ON passage = passages.rowid "
            "WHERE file IS NOT ? AND id IN",
            list(ids),
            (record.number,),
        )
        return frozenset(name for (name,) in rows)

    def report(self, record: FileRecord, problems: Sequence[Problem]) -> None:
        """Keeps the first 100 problems of a file and counts all."""
        if not problems:
            return
        with self._store.transaction() as connection:
            (known,) = connection.execute(
                "UPDATE ingest_files SET problems = problems + ? WHERE file = ? RETURNING problems",
                (len(problems), record.number),
            ).fetchone()
            kept = problems[: max(0, _KEPT_PROBLEMS - (known - len(problems)))]
            rows = [(record.number, problem.where, problem.message) for problem in kept]
            connection.executemany("INSERT INTO ingest_problems VALUES (?, ?, ?)", rows)

    def finish(self, record: FileRecord) -> None:
        """The file was read to its end."""
        with self._store.transaction() as connection:
            connection.execute("UPDATE ingest_files SET finished = 1 WHERE file = ?", (record.number,))

    def counts(self, numbers: Iterable[int] | None = None) -> Counts:
        """What came of these files, or of all."""
        chosen = set(numbers) if numbers is not None else None
        rows = self._store.query(f"SELECT file, 1, {_COUNTS} FROM ingest_files")  # noqa: S608
        kept = [row[1:] for row in rows if chosen is None or row[0] in chosen]
        return Counts(*map(sum, zip(*kept, strict=True))) if kept else Counts()

    def problems(self, limit: int, numbers: Iterable[int] | None = None) -> list[Problem]:
        """The first problems of these files, or of all, in the order of files."""
        chosen = set(numbers) if numbers is not None else None
        rows = self._store.query(
            "SELECT file, place, message FROM ingest_problems ORDER BY file, ingest_problems.rowid"
        )
        kept = (Problem(place, message) for file, place, message in rows if chosen is None or file in chosen)
        return list(islice(kept, limit))

    def unfinished(self) -> list[str]:
        """Labels of the files that were begun and not read to their end."""
        return [
            label for (label,) in self._store.query("SELECT label FROM ingest_files WHERE finished = 0 ORDER BY file")
        ]

    def forget(self, label_or_path: str) -> int | None:
        """Removes a file and all that came from it; the number of passages, or None if no such file was read."""
        with self._store.transaction() as connection:
            rows = connection.execute(
                "SELECT file FROM ingest_files WHERE label = ? OR path = ?", (label_or_path, label_or_path)
            ).fetchone()
            if rows is None:
                return None
            removed = self._empty(rows[0])
            connection.execute("DELETE FROM ingest_files WHERE file = ?", rows)
            return removed

    def gone(self, places: Iterable[Path]) -> list[str]:
        """Labels of the files at or below these places that are no longer there."""
        within = list(places)
        rows = [(label, Path(path)) for label, path in self._store.query("SELECT label, path FROM ingest_files")]
        return [label for label, path in rows if any(map(path.is_relative_to, within)) and not path.exists()]

    def prune(self, labels: Sequence[str]) -> int:
        """Removes files and all that came from them; the number of passages.

        Files whose passages were left out as duplicates, perhaps of these, are read again when they are next added,
        but for those that passages were removed from by name.
        """
        if not labels:
            return 0
        with self._store.transaction() as connection:
            removed = sum(self.forget(label) or 0 for label in labels)
            connection.execute(
                "UPDATE ingest_files SET state = '' WHERE duplicates > 0 AND passages = (SELECT count(*) FROM "
                "ingest_origins JOIN passages ON passage = passages.rowid WHERE file = ingest_files.file)"
            )
        return removed

    def read_again(self, rows: Sequence[int]) -> list[str]:
        """Has the files that rows came from read again when they are next added; their labels."""
        with self._store.transaction() as connection:
            read_rows = self._store.lookup(
                "SELECT DISTINCT files.file, label FROM ingest_files AS files JOIN ingest_origins AS origins "
                "ON origins.file = files.file WHERE passage IN",
                rows,
            )
            connection.executemany(
                "UPDATE ingest_files SET state = '' WHERE file = ?", [(one,) for one, _ in read_rows]
            )
        return sorted({label for _, label in read_rows})

    def _empty(self, number: int) -> int:
        with self._store.transaction() as connection:
            ids = connection.execute(
                "SELECT id FROM passages JOIN ingest_origins ON passage = passages.rowid WHERE file = ?", (number,)
            ).fetchall()
            removed = self._store.remove(passage_id for (passage_id,) in ids)
            connection.execute("DELETE FROM ingest_origins WHERE file = ?", (number,))
            connection.execute("DELETE FROM ingest_problems WHERE file = ?", (number,))
            connection.execute(
                "UPDATE ingest_files SET blocks = 0, finished = 0, bytes = 0, passages = 0, duplicates = 0, empty = 0,"
                " problems = 0 WHERE file = ?",
                (number,),
            )
        return removed

    def _free_label(self, file: SourceFile) -> str:
        """The label as the user wrote it, unless another file has it already."""
        taken = self._store.query("SELECT 1 FROM ingest_files WHERE label = ?", (file.label,))
        return str(file.path) if taken else file.label
