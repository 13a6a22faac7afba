"""A bounded cache of files on the local disk, for what is far away."""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import Tensor

from ewe.engine.units.unit_folder import map_file

_log = logging.getLogger(__name__)
_LOCK = "lock"
_PARTIAL = "partial"


class DiskCache:
    """Bytes by name in one directory, at most `capacity` of them (0: none), for all processes that share it.

    The least recently used make room. Whoever reads must check the bytes: a crash of the machine may tear them.
    """

    def __init__(self, folder: Path, capacity: int) -> None:
        self._folder, self._capacity = folder, capacity
        self._has_warned = False

    def get(self, name: str) -> Tensor | None:
        """What was put under a name, uint8; None if it is not here. It stays valid when it makes room for another."""
        path = self._folder / name
        try:
            os.utime(path, ns=(time.time_ns(), time.time_ns()))  # the system's own stamps are some ms apart
            return map_file(path)
        except (OSError, RuntimeError):
            return None

    def put(self, name: str, data: Tensor) -> None:
        """Keeps bytes (uint8) unless they are larger than the whole cache; a disk that refuses is logged once."""
        if data.nbytes > self._capacity:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it tells what its owner's passages say
            with self._locked():
                self._make_room(name, data.nbytes)
                partial = self._folder / _PARTIAL
                data.numpy().tofile(partial)
                os.utime(partial, ns=(time.time_ns(), time.time_ns()))
                partial.rename(self._folder / name)
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                _log.warning("units are not kept on this disk: %s", error)

    def _make_room(self, name: str, num_bytes: int) -> None:
        """Deletes the file of this name, what a killed process left, and the oldest until `num_bytes` fit."""
        kept = []
        for path in self._folder.iterdir():
            if path.name in (name, _PARTIAL):
                path.unlink()
            elif path.name != _LOCK:
                status = path.stat()
                kept.append((status.st_mtime_ns, status.st_size, path))
        left = self._capacity - num_bytes - sum(size for _, size, _ in kept)
        for _, size, path in sorted(kept):
            if left >= 0:
                return
            path.unlink()
            left += size

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """No other thread or process writes meanwhile."""
        with (self._folder / _LOCK).open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
