"""Which vectors a query is compared with: all of a small scope, those of the nearest cells of a large one."""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from ewe.retrieval.store.session import Connection, Session

WHOLE_LIMIT = 20_000  # vectors that are compared one by one; 384 numbers each: 31 MB, read in about 10 ms
_PER_CELL = 500
_LOOKED_AT = 16  # of 2,000 cells in a million
_SAMPLES_PER_CELL = 48
_ROUNDS = 6
_CHUNK = 8192

Read = Callable[[np.ndarray], np.ndarray]  # numbers of memories (int64 [n]) to their vectors, float32 [n, dimension]


class InvertedLists:
    """The cells of every scope that is divided, read when they have changed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._whole: dict[int, tuple[int, np.ndarray]] = {}  # per scope its change and the numbers of its memories
        self._centres: dict[int, tuple[int, np.ndarray]] = {}  # per scope its first cell and the cells' centres
        self._cells: dict[int, tuple[int, dict[int, np.ndarray]]] = {}  # per scope its change, and cells read since

    def candidates(self, query: np.ndarray, scopes: Sequence[int]) -> np.ndarray:
        """The memories (int64 [n]) with a vector whose inner product with `query` may be among the largest."""
        numbers = [np.zeros(0, dtype=np.int64)]
        for scope in scopes:
            first, centres = self._divided(scope)
            if len(centres):
                near = np.argsort(-(centres @ query), kind="stable")[:_LOOKED_AT]
                numbers += self._in_cells(scope, (first + near).tolist())
            else:
                numbers.append(self._all(scope))
        return np.concatenate(numbers)

    def assign(self, vectors: np.ndarray, scopes: Sequence[int]) -> list[int]:
        """Per vector (float32 [n, dimension]) the cell of its scope that it belongs to; 0 in an undivided scope."""
        cells = []
        for vector, scope in zip(vectors, scopes, strict=True):
            first, centres = self._divided(scope)
            cells.append(first + int(_nearest(vector[None], centres)[0]) if len(centres) else 0)
        return cells

    def _divided(self, scope: int) -> tuple[int, np.ndarray]:
        """The number of the scope's first cell and the centres of all, float32 [cells, dimension]."""
        [(first,)] = self._session.query("SELECT coalesce(min(cell), 0) FROM cells WHERE scope = ?", (scope,))
        known = self._centres.get(scope)
        if known is None or known[0] != first:
            rows = self._session.query("SELECT centre FROM cells WHERE scope = ? ORDER BY cell", (scope,))
            centres = [np.frombuffer(centre, dtype="<f4") for (centre,) in rows]
            known = self._centres[scope] = (int(first), np.stack(centres) if centres else np.zeros((0, 0)))
        return known

    def _in_cells(self, scope: int, cells: Sequence[int]) -> list[np.ndarray]:
        """The memories of each of these cells, int64 [n]."""
        change = self._change(scope)
        if self._cells.get(scope, (None,))[0] != change:
            self._cells[scope] = (change, {})
        _, known = self._cells[scope]
        if new := [cell for cell in cells if cell not in known]:
            select = "SELECT cell, number FROM memories WHERE scope = ? AND cell IN"
            rows = np.array(self._session.lookup(select, new, [scope]), dtype=np.int64).reshape(-1, 2)
            known.update((cell, rows[rows[:, 0] == cell, 1]) for cell in new)
        return [known[cell] for cell in cells]

    def _change(self, scope: int) -> int:
        """What is another number whenever the vectors of a scope have changed; -1 for one that is gone."""
        rows = self._session.query("SELECT vectors_changed FROM scopes WHERE number = ?", (scope,))
        return int(rows[0][0]) if rows else -1

    def _all(self, scope: int) -> np.ndarray:
        change = self._change(scope)
        known = self._whole.get(scope)
        if known is None or known[0] != change:
            rows = self._session.query("SELECT number FROM memories WHERE scope = ? AND cell >= 0", (scope,))
            known = self._whole[scope] = (change, _numbers(rows))
        return known[1]


def arrange(session: Session, read: Read, scopes: Iterable[int]) -> None:
    """Divides (with faiss) the scopes that have grown large, and anew one that has doubled since its last division."""
    if find_spec("faiss") is None:
        return
    for scope in scopes:
        [(size,)] = session.query("SELECT coalesce(max(memories), 0) FROM scopes WHERE number = ?", (scope,))
        [(cells,)] = session.query("SELECT count(*) FROM cells WHERE scope = ?", (scope,))
        if size > max(WHOLE_LIMIT, 2 * cells * _PER_CELL):
            with session.transaction() as connection:
                _divide(connection, scope, read)


def _divide(connection: Connection, scope: int, read: Read) -> None:
    rows = connection.execute("SELECT number FROM memories WHERE scope = ? AND cell >= 0", (scope,)).fetchall()
    numbers = _numbers(rows)
    numbers.sort()
    count = max(1, len(numbers) // _PER_CELL)
    size = min(len(numbers), count * _SAMPLES_PER_CELL)
    sample = np.random.default_rng(0).choice(numbers, size, replace=False)
    centres = centres_of(read(np.sort(sample)), count)
    # Cells are numbered onwards, so that a reader sees by the first number that they are others.
    (first,) = connection.execute("SELECT coalesce(max(cell), 0) + 1 FROM cells").fetchone()
    connection.execute("DELETE FROM cells WHERE scope = ?", (scope,))
    connection.executemany(
        "INSERT INTO cells VALUES (?, ?, ?)",
        [(scope, first + place, centre.astype("<f4").tobytes()) for place, centre in enumerate(centres)],
    )
    for start in range(0, len(numbers), _CHUNK):
        part = numbers[start : start + _CHUNK]
        cells = first + _nearest(read(part), centres)
        connection.executemany(
            "UPDATE memories SET cell = ? WHERE number = ?", list(zip(cells.tolist(), part.tolist(), strict=True))
        )
    connection.execute("UPDATE scopes SET vectors_changed = vectors_changed + 1 WHERE number = ?", (scope,))


def centres_of(vectors: np.ndarray, count: int) -> np.ndarray:
    """Centres of `count` cells of vectors (float32 [n, dimension], n >= count), float32 [count, dimension]."""
    kmeans = import_module("faiss").Kmeans(
        vectors.shape[1], count, niter=_ROUNDS, seed=0, min_points_per_centroid=1, max_points_per_centroid=len(vectors)
    )
    kmeans.train(np.ascontiguousarray(vectors))
    return np.asarray(kmeans.centroids, dtype=np.float32)


def _nearest(vectors: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Per vector the place of the nearest centre, int64 [n]."""
    halves = 0.5 * np.einsum("cd,cd->c", centres, centres)
    places = [
        np.argmax(vectors[start : start + _CHUNK] @ centres.T - halves, axis=1)
        for start in range(0, len(vectors), _CHUNK)
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *places])


def _numbers(rows: Sequence[tuple[int]]) -> np.ndarray:
    return np.fromiter((number for (number,) in rows), dtype=np.int64, count=len(rows))
