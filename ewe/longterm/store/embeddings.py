"""Finding memories by their meaning: by vectors of their contents."""

import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ewe.errors import ConfigError, DatastoreError
from ewe.longterm.store.ivf import InvertedLists, arrange
from ewe.retrieval.encoders import Encoder
from ewe.retrieval.source import Progress
from ewe.retrieval.store.database import file_errors
from ewe.retrieval.store.session import Session

_BATCH = 256
_PROBE = "She moved to Lyon in March 2019 and has not eaten meat since."
_SAME = 1e-2  # other machines and batch sizes move a vector by less, another model by more (as a share of its length)


class VectorFile:
    """float32 [numbers of memories, dimension], with holes where a memory has no vector. Raises DatastoreError."""

    def __init__(self, folder: Path, number: int, dimension: int) -> None:
        self._path, self._dimension = folder / f"vectors-{number}.f32", dimension
        self.number = number  # another encoder gets another file, so that no reader mistakes one for the other
        self._mapped: np.ndarray | None = None

    def write(self, numbers: Sequence[int], vectors: np.ndarray) -> None:
        """Puts vectors (float32 [numbers, dimension]) in their places, on the disk before it returns."""
        with file_errors(self._path):
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                for number, vector in zip(numbers, np.ascontiguousarray(vectors, dtype="<f4"), strict=True):
                    os.pwrite(file, vector.tobytes(), 4 * self._dimension * number)
                os.fsync(file)
            finally:
                os.close(file)

    def wipe(self, numbers: Iterable[int]) -> None:
        """Overwrites the vectors of these memories with zeros, as far as the file goes."""
        if self._path.exists():
            within = [number for number in numbers if number < self._length()]
            self.write(within, np.zeros((len(within), self._dimension), dtype=np.float32))

    def read(self, numbers: np.ndarray) -> np.ndarray:
        """The vectors of memories (int64 [n]) that have one, float32 [n, dimension]."""
        if not len(numbers):
            return np.zeros((0, self._dimension), dtype=np.float32)
        if self._mapped is None or len(self._mapped) <= numbers.max():
            self._mapped = self._map()
        if len(self._mapped) <= numbers.max():
            raise DatastoreError(
                f"{self._path} is damaged: it was cut short; make it again with 'ewe memory embed --replace'"
            )
        return np.asarray(self._mapped[numbers])

    def remove_others(self) -> None:
        """Removes the files of earlier encoders."""
        for path in self._path.parent.glob("vectors-*.f32"):
            if path != self._path:
                path.unlink(missing_ok=True)

    def _map(self) -> np.ndarray:
        with file_errors(self._path):
            whole = self._path.stat().st_size // (4 * self._dimension)
            if not whole:
                return np.zeros((0, self._dimension), dtype=np.float32)
            # As a plain array: slicing a memmap costs more than a short read.
            return np.asarray(np.memmap(self._path, dtype="<f4", mode="r", shape=(whole, self._dimension)))

    def _length(self) -> int:
        """How many places the file has, a started one included."""
        return -(-self._path.stat().st_size // (4 * self._dimension))


class Embeddings:
    """The vectors of all memories. `forget` belongs inside the transaction that changes the memories."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cells = InvertedLists(session)
        self._file: VectorFile | None = None
        self._checked: tuple[Encoder, int] | None = None  # whose vectors are known to be those of which file

    def embed(self, encoder: Encoder, replace: bool = False, progress: Progress | None = None) -> int:
        """Gives every memory that has none a vector, 256 at a time, each lot committed; how many were given.

        Memories may be read and changed meanwhile. replace: all vectors there are, whoever made them, are made again.
        `progress` hears of (memories done, in all). Raises ConfigError if there are vectors of another encoder.
        """
        self._adopt(encoder, replace)
        [(total,)] = self._session.query("SELECT count(*) FROM memories WHERE cell IS NULL")
        done = after = 0
        touched: set[int] = set()
        while rows := self._session.query(
            "SELECT number, content FROM memories WHERE cell IS NULL AND number > ? ORDER BY number LIMIT ?",
            (after, _BATCH),
        ):
            vectors = encoder.encode_passages([content for _, content in rows])
            scopes = self._keep(rows, vectors)
            done += len(scopes)
            touched.update(scopes)
            after = rows[-1][0]
            if progress is not None:
                progress(done, max(total, done))
        arrange(self._session, self._vectors().read, sorted(touched))
        return done

    @property
    def exist(self) -> bool:
        """Whether any encoder has made vectors for this store."""
        return self._known() is not None

    def check(self, encoder: Encoder) -> None:
        """Raises ConfigError if there are vectors, and another encoder made them."""
        known = self._known()
        if known is None:
            return
        name, stored, file = known
        if self._checked is not None and self._checked[0] is encoder and self._checked[1] == file:
            return
        probe = encoder.encode_passages([_PROBE])[0]
        if stored.shape != probe.shape or np.linalg.norm(stored - probe) > _SAME * np.linalg.norm(probe):
            raise ConfigError(
                f"{self._session.folder} has vectors of the encoder {name}, not of {encoder.name}: use that one, or "
                "make them again with 'ewe memory embed --replace'"
            )
        self._checked = (encoder, file)

    def search(self, query: np.ndarray, scopes: Sequence[int], top_k: int) -> list[tuple[int, float]]:
        """(number of a memory, inner product with `query`) of at most `top_k` memories in the scopes, best first.

        query: float32 [dimension]. Equal products: the newest first. A scope is searched whole up to 20,000 vectors,
        and by its nearest cells beyond, which can miss some.
        """
        if self._known() is None:
            return []
        numbers = self._cells.candidates(query, scopes)
        products = self._vectors().read(numbers) @ np.asarray(query, dtype=np.float32)
        if len(numbers) > top_k:
            best = np.argpartition(-products, top_k - 1)
            found = np.flatnonzero(products >= products[best[top_k - 1]])
            numbers, products = numbers[found], products[found]
        order = np.lexsort((-numbers, -products))[:top_k]
        return [(int(numbers[place]), float(products[place])) for place in order]

    def forget(self, connection: sqlite3.Connection, scopes: Iterable[int], memories: Sequence[int]) -> None:
        """Gives up the vectors of memories in the scopes; `wipe` takes them from the file after the commit."""
        numbers = [(number,) for number in memories]
        connection.executemany("UPDATE memories SET cell = NULL WHERE number = ?", numbers)
        connection.executemany("INSERT OR IGNORE INTO unwiped VALUES (?)", numbers)
        _note_change(connection, scopes)

    def wipe(self) -> bool:
        """Overwrites the vectors that were given up, unless they were made again; whether there were any."""
        if not self._session.query("SELECT 1 FROM unwiped LIMIT 1"):
            return False
        with self._session.transaction() as connection:
            numbers = [number for (number,) in connection.execute("SELECT memory FROM unwiped")]
            if self._known() is not None:
                self._vectors().wipe(numbers)
                self._vectors().remove_others()
            connection.execute("DELETE FROM unwiped")
        return True

    def _adopt(self, encoder: Encoder, replace: bool) -> None:
        """Makes the store this encoder's, if it has none or its vectors are to be made again."""
        known = self._known()
        if known is not None and not replace:
            self.check(encoder)
            return
        probe = encoder.encode_passages([_PROBE])[0].astype("<f4")
        with self._session.transaction() as connection:
            connection.execute("UPDATE memories SET cell = NULL")
            connection.execute("DELETE FROM cells")
            connection.execute("DELETE FROM unwiped")
            connection.execute("UPDATE scopes SET vectors_changed = vectors_changed + 1")
            connection.execute(
                "INSERT OR REPLACE INTO encoder VALUES (1, ?, ?, ?)",
                (encoder.name, probe.tobytes(), known[2] + 1 if known else 1),
            )
        self._vectors().remove_others()

    def _keep(self, rows: Sequence[tuple[int, str]], vectors: np.ndarray) -> list[int]:
        """Writes the vectors of those memories that still have the content that was encoded; the scope of each."""
        with self._session.transaction() as connection:
            contents = {
                number: (content, scope)
                for number, content, scope in self._session.lookup(
                    "SELECT number, content, scope FROM memories WHERE number IN", [number for number, _ in rows]
                )
            }
            places = [
                place for place, (number, content) in enumerate(rows) if contents.get(number, ("",))[0] == content
            ]
            numbers = [rows[place][0] for place in places]
            scopes = [int(contents[number][1]) for number in numbers]
            # The lock is held and the vectors are on the disk before the rows that say so.
            self._vectors().write(numbers, vectors[places])
            cells = self._cells.assign(vectors[places], scopes)
            connection.executemany(
                "UPDATE memories SET cell = ? WHERE number = ?", list(zip(cells, numbers, strict=True))
            )
            connection.executemany("DELETE FROM unwiped WHERE memory = ?", [(number,) for number in numbers])
            _note_change(connection, set(scopes))
        return scopes

    def _known(self) -> tuple[str, np.ndarray, int] | None:
        """The encoder's name, its probe (float32 [dimension]) and the number of the file, if there are vectors."""
        rows = self._session.query("SELECT name, probe, file FROM encoder")
        return (str(rows[0][0]), np.frombuffer(rows[0][1], dtype="<f4"), int(rows[0][2])) if rows else None

    def _vectors(self) -> VectorFile:
        known = self._known()
        assert known is not None  # every caller made sure
        _, probe, number = known
        if self._file is None or self._file.number != number:
            self._file = VectorFile(self._session.folder, number, len(probe))
        return self._file


def _note_change(connection: sqlite3.Connection, scopes: Iterable[int]) -> None:
    connection.executemany(
        "UPDATE scopes SET vectors_changed = vectors_changed + 1 WHERE number = ?", [(scope,) for scope in scopes]
    )
