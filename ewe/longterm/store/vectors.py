"""The file of vectors beside the database: a memory's vector lies at the place that its number names."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ewe.errors import DatastoreError
from ewe.retrieval.store.database import file_errors


class VectorFile:
    """float32 [numbers of memories, dimension], with holes where a memory has no vector.

    Written through the file, read through a mapping of it, which all processes share. Raises DatastoreError for a full
    disk and files that cannot be read or written.
    """

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
