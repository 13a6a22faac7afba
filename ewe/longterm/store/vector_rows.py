"""Vectors in a file by the numbers of their memories, each with a checksum beside it."""

import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ewe.errors import DatastoreError
from ewe.retrieval.store.sqlite_file import file_errors

_CHECK = np.dtype("<u4")


class VectorRows:
    """float32 [numbers of memories, dimension], with holes where a memory has no vector. Raises DatastoreError.

    A vector is compared with its checksum when it is first read.
    """

    def __init__(self, folder: Path, number: int, dimension: int) -> None:
        self._path, self._checks_path = _paths(folder, number)
        self._dimension = dimension
        self.number = number  # another encoder gets other files, so that no reader mistakes one for the other
        self._mapped, self._checks = np.zeros((0, dimension), dtype=np.float32), np.zeros(0, dtype=_CHECK)
        self._intact = np.zeros(0, dtype=bool)

    def write(self, numbers: Sequence[int], vectors: np.ndarray) -> None:
        """Puts vectors (float32 [numbers, dimension]) in their places, on the disk before it returns."""
        rows = [vector.tobytes() for vector in np.ascontiguousarray(vectors, dtype="<f4")]
        checks = [zlib.crc32(row).to_bytes(_CHECK.itemsize, "little") for row in rows]
        _put(self._path, 4 * self._dimension, zip(numbers, rows, strict=True))
        _put(self._checks_path, _CHECK.itemsize, zip(numbers, checks, strict=True))
        self._intact[[number for number in numbers if number < len(self._intact)]] = False

    def wipe(self, numbers: Iterable[int]) -> None:
        """Overwrites the vectors of these memories with zeros, as far as the file goes."""
        if self._path.exists():
            within = [number for number in numbers if number < self._length()]
            self.write(within, np.zeros((len(within), self._dimension), dtype=np.float32))

    def read(self, numbers: np.ndarray) -> np.ndarray:
        """The vectors of memories (int64 [n]) that have one, float32 [n, dimension]."""
        damaged = self.damaged(numbers)
        if damaged and damaged[-1] >= len(self._intact):
            raise DatastoreError(
                f"{self._path} is damaged: it was cut short; make it again with 'ewe memory embed --replace'"
            )
        if damaged:
            raise DatastoreError(
                f"{self._path} is damaged at the vector of memory number {damaged[0]}: "
                f"'ewe memory check --repair {self._path.parent}', then 'ewe memory embed', make it again"
            )
        return np.asarray(self._mapped[numbers])

    def damaged(self, numbers: np.ndarray) -> list[int]:
        """Those of the numbers (int64 [n]) whose vectors are not what was written, or were cut off."""
        if len(numbers) and len(self._intact) <= numbers.max():
            self._map()
        cut = numbers >= len(self._intact)
        unread = numbers[~cut]
        unread = unread[~self._intact[unread]]
        # Once more those that differ: another process may just have written them.
        bad = self._differing(self._differing(unread))
        self._intact[np.setdiff1d(unread, bad)] = True
        return sorted([*bad.tolist(), *numbers[cut].tolist()])

    def remove_others(self) -> None:
        """Removes the files of earlier encoders."""
        for pattern, kept in (("vectors-*.f32", self._path), ("checks-*.u32", self._checks_path)):
            for path in self._path.parent.glob(pattern):
                if path != kept:
                    path.unlink(missing_ok=True)

    def _differing(self, numbers: np.ndarray) -> np.ndarray:
        differ = [zlib.crc32(self._mapped[number].tobytes()) != self._checks[number] for number in numbers]
        return np.asarray(numbers[np.array(differ, dtype=bool)])

    def _map(self) -> None:
        with file_errors(self._path):
            whole = min(
                self._path.stat().st_size // (4 * self._dimension), self._checks_path.stat().st_size // _CHECK.itemsize
            )
            if whole:
                # As plain arrays: slicing a memmap costs more than a short read.
                shape = (whole, self._dimension)
                self._mapped = np.asarray(np.memmap(self._path, dtype="<f4", mode="r", shape=shape))
                self._checks = np.asarray(np.memmap(self._checks_path, dtype=_CHECK, mode="r", shape=(whole,)))
        self._intact = np.pad(self._intact, (0, max(0, whole - len(self._intact))))

    def _length(self) -> int:
        """How many places the file has, a started one included."""
        return -(-self._path.stat().st_size // (4 * self._dimension))


def add_checks(folder: Path, number: int, dimension: int) -> None:
    """Makes the checksums of vectors that have none, as they are now."""
    path, checks_path = _paths(folder, number)
    with file_errors(path):
        data, size = path.read_bytes() if path.exists() else b"", 4 * dimension
    rows = (data[start : start + size] for start in range(0, len(data), size))
    checks = ((place, zlib.crc32(row).to_bytes(_CHECK.itemsize, "little")) for place, row in enumerate(rows))
    _put(checks_path, _CHECK.itemsize, checks)


def _paths(folder: Path, number: int) -> tuple[Path, Path]:
    return folder / f"vectors-{number}.f32", folder / f"checks-{number}.u32"


def _put(path: Path, size: int, rows: Iterable[tuple[int, bytes]]) -> None:
    """Writes rows of `size` bytes in their places, on the disk before it returns."""
    with file_errors(path):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            for number, row in rows:
                os.pwrite(file, row, size * number)
            os.fsync(file)
        finally:
            os.close(file)
