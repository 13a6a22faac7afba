"""Where encoded units lie: in a local directory, or under a prefix of object storage that fsspec reaches."""

import fcntl
import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ewe.config.addresses import without_secrets
from ewe.errors import ConfigError, PrecomputedError

_log = logging.getLogger(__name__)
_PARTIAL = ".partial"
_PAUSE_S = 30.0

Range = tuple[str, int, int | None]  # a file's name, first byte, byte after the last (None: to the end)


class StoreError(OSError):
    """A store does not answer, or refuses to; the log has said so."""


class LocalFolder:
    """Files of a directory, mapped into memory; readers: threads that it pays to read with."""

    readers = 2

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mapped: dict[str, Tensor] = {}

    def __str__(self) -> str:
        return str(self.path)

    def sizes(self) -> dict[str, int]:
        """Bytes of every whole file, by name in order."""
        paths = sorted(self.path.iterdir()) if self.path.exists() else []
        return {path.name: path.stat().st_size for path in paths if path.suffix != _PARTIAL}

    def read_ranges(self, ranges: Sequence[Range]) -> list[bytes]:
        """Parts of files; shorter where a file ends before."""
        contents = []
        for name, begin, end in ranges:
            with (self.path / name).open("rb") as file:
                file.seek(begin)
                contents.append(file.read(None if end is None else end - begin))
        return contents

    def read(self, name: str, begin: int, end: int) -> Tensor:
        """Bytes of a file, uint8 [end - begin], read from the disk where they are touched."""
        if name not in self._mapped:
            self._mapped[name] = map_file(self.path / name)
        return self._mapped[name][begin:end]

    def create(self, name: str, data: bytes) -> bool:
        """Writes a new file, whole or not at all, and waits until it is on the disk; returns whether it was new."""
        self.path.mkdir(parents=True, exist_ok=True)
        path = self.path / name
        if path.exists():
            return False
        partial = path.with_name(name + _PARTIAL)
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
        _sync(self.path)
        return True

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Only this process writes meanwhile, `name` being a file that is there; raises PrecomputedError if not."""
        with (self.path / name).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise PrecomputedError(
                    f"another process writes to {self.path}: wait for it, or choose another --out"
                ) from error
            for partial in self.path.glob(f"*{_PARTIAL}"):
                partial.unlink()
            yield


class RemoteFolder:
    """Objects under a URL. What a store raises, each its own kind, is an OSError here."""

    readers = 16  # they wait for the network

    def __init__(self, url: str, filesystem: Any, root: str) -> None:
        self._url, self._filesystem, self._root = url, filesystem, root
        self._ask_again = 0.0

    def __str__(self) -> str:
        return self._url

    def sizes(self) -> dict[str, int]:
        """As LocalFolder's."""
        with self._os_errors():
            self._filesystem.invalidate_cache()
            details = self._filesystem.find(self._root, maxdepth=1, detail=True)
        return {path.rpartition("/")[2]: details[path]["size"] for path in sorted(details)}

    def read_ranges(self, ranges: Sequence[Range]) -> list[bytes]:
        """As LocalFolder's; many at a time where the store can."""
        if not ranges:
            return []
        names, begins, ends = map(list, zip(*ranges, strict=True))
        paths = [self._path(name) for name in names]
        with self._os_errors():
            contents: list[bytes] = self._filesystem.cat_ranges(paths, begins, ends)
            for item in contents:
                if isinstance(item, Exception):
                    raise item
        return contents

    def read(self, name: str, begin: int, end: int) -> Tensor:
        """As LocalFolder's. After a failure, which is logged, nobody waits for the store for half a minute."""
        if time.monotonic() < self._ask_again:
            raise StoreError(f"{self._url} did not answer a moment ago")
        try:
            [data] = self.read_ranges([(name, begin, end)])
        except FileNotFoundError:
            raise
        except OSError as error:
            if time.monotonic() >= self._ask_again:  # the first of several readers
                self._ask_again = time.monotonic() + _PAUSE_S
                _log.warning("units are encoded instead of read for %d s: %s", _PAUSE_S, error)
            raise StoreError(str(error)) from error
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)

    def create(self, name: str, data: bytes) -> bool:
        """As LocalFolder's, for several writers at a time where the store can write on a condition."""
        try:
            with self._os_errors():
                self._filesystem.pipe_file(self._path(name), data, mode="create")
        except FileExistsError:
            return False
        return True

    def locked(self, name: str) -> AbstractContextManager[None]:
        """Nothing: each writer creates files of its own."""
        return nullcontext()

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _os_errors(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, FileExistsError):
            raise
        except Exception as error:
            raise OSError(f"{self._url} cannot be reached: {type(error).__name__}: {error}") from error


UnitFolder = LocalFolder | RemoteFolder


def open_folder(location: str | Path) -> UnitFolder:
    """The folder of a path or URL, which need not be there; raises ConfigError for a URL of no known kind."""
    if "://" not in without_secrets(str(location)):
        return LocalFolder(Path(location).expanduser())
    from fsspec.core import url_to_fs
    from fsspec.implementations.local import LocalFileSystem

    try:
        filesystem, root = url_to_fs(str(location))
    except (ImportError, ValueError) as error:
        raise ConfigError(f"{location}: {error}; for s3:// and gs:// `pip install 'ewe-engine[remote]'`") from error
    if isinstance(filesystem, LocalFileSystem):
        return LocalFolder(Path(root))
    return RemoteFolder(str(location), filesystem, root.rstrip("/"))


def map_file(path: Path) -> Tensor:
    """A file's bytes, uint8, read from the disk where they are touched; it outlives the file's name."""
    return torch.from_file(str(path), size=path.stat().st_size, dtype=torch.uint8)


def _sync(path: Path) -> None:
    """Waits until the names in a directory have reached the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
