"""The vectors of an SQLite store: a file beside the database, searched whole or by cells."""

from collections.abc import Iterable, Sequence

import numpy as np

from ewe.longterm.store.ivf import InvertedLists, arrange
from ewe.longterm.store.memory_session import Entry
from ewe.longterm.store.vector_rows import VectorRows
from ewe.retrieval.store.session import Connection, FileSession


class FileVectors:
    """The vectors in their file, and which of them a query is compared with."""

    def __init__(self, session: FileSession) -> None:
        self._session = session
        self._cells = InvertedLists(session)
        self._opened: VectorRows | None = None

    def start(self, connection: Connection, dimension: int) -> None:
        """Drops what belongs to an earlier encoder's vectors; `arrange` removes their file after the commit."""
        connection.execute("DELETE FROM cells")
        connection.execute("DELETE FROM unwiped")
        connection.execute("UPDATE scopes SET vectors_changed = vectors_changed + 1")

    def write(self, connection: Connection, entries: Sequence[Entry], vectors: np.ndarray) -> None:
        """Puts vectors (float32 [entries, dimension]) on the disk, then in the rows that say so."""
        numbers, scopes = [number for number, *_ in entries], [scope for _, scope, _ in entries]
        self._file().write(numbers, vectors)
        cells = self._cells.assign(vectors, scopes)
        connection.executemany("UPDATE memories SET cell = ? WHERE number = ?", list(zip(cells, numbers, strict=True)))
        connection.executemany("DELETE FROM unwiped WHERE memory = ?", [(number,) for number in numbers])
        _note_change(connection, set(scopes))

    def search(self, query: np.ndarray, scopes: Sequence[int], top_k: int) -> list[tuple[int, float]]:
        """The best of whole scopes up to 20,000 vectors, and of their nearest cells beyond, which can miss some."""
        numbers = self._cells.candidates(query, scopes)
        products = self._file().read(numbers) @ np.asarray(query, dtype=np.float32)
        if len(numbers) > top_k:
            best = np.argpartition(-products, top_k - 1)
            best_rows = np.flatnonzero(products >= products[best[top_k - 1]])
            numbers, products = numbers[best_rows], products[best_rows]
        order = np.lexsort((-numbers, -products))[:top_k]
        return [(int(numbers[place]), float(products[place])) for place in order]

    def forget(self, connection: Connection, scopes: Iterable[int], memories: Sequence[int]) -> None:
        """Gives up the vectors of memories in the scopes; `wipe` takes them from the file after the commit."""
        numbers = [(number,) for number in memories]
        connection.executemany("UPDATE memories SET cell = NULL WHERE number = ?", numbers)
        connection.executemany("INSERT INTO unwiped VALUES (?) ON CONFLICT DO NOTHING", numbers)
        _note_change(connection, scopes)

    def wipe(self) -> bool:
        """Overwrites the vectors that were given up, unless they were made again; whether there were any."""
        if not self._session.query("SELECT 1 FROM unwiped LIMIT 1"):
            return False
        with self._session.transaction() as connection:
            numbers = [number for (number,) in connection.execute("SELECT memory FROM unwiped")]
            if self._session.query("SELECT 1 FROM encoder"):
                self._file().wipe(numbers)
                self._file().remove_others()
            connection.execute("DELETE FROM unwiped")
            connection.execute("DELETE FROM cells WHERE scope NOT IN (SELECT number FROM scopes)")
        return True

    def damaged(self, numbers: Sequence[int]) -> list[int]:
        """Those of memories with vectors whose vector is not what was written."""
        return self._file().damaged(np.asarray(numbers, dtype=np.int64))

    def arrange(self, scopes: Iterable[int]) -> None:
        """Removes the files of earlier encoders, and divides the scopes that have grown large into cells."""
        self._file().remove_others()
        arrange(self._session, self._file().read, scopes)

    def _file(self) -> VectorRows:
        """The file of the encoder that the store has."""
        [(number, size)] = self._session.query("SELECT file, length(probe) FROM encoder")
        if self._opened is None or self._opened.number != number:
            self._opened = VectorRows(self._session.folder, number, size // 4)
        return self._opened


def _note_change(connection: Connection, scopes: Iterable[int]) -> None:
    connection.executemany(
        "UPDATE scopes SET vectors_changed = vectors_changed + 1 WHERE number = ?", [(scope,) for scope in scopes]
    )
