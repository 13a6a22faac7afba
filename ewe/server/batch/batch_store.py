"""The folder of files and batches: records of whose they are, and the contents of files."""

import asyncio
import fcntl
import json
import os
import re
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from ewe.errors import ConfigError
from ewe.server.batch.batch_schemas import Batch, Page, StoredFile

_Item = TypeVar("_Item", StoredFile, Batch)

_OWN_NAME = re.compile(r"((?:file-|batch_)[0-9a-f]+)(?:\.json|\.log)?(?:\.partial)?")
_LEAST_BYTES = 4096  # that a record counts for: whoever keeps many small files fills a disk too
_MOST_ENDED = 1000  # batches of one key; nothing else deletes them


def new_id(prefix: str) -> str:
    """A name that nobody can guess; later ones are greater, so that a list in their order is a list by time."""
    return f"{prefix}{time.time_ns():016x}{secrets.token_hex(12)}"


class Records(Generic[_Item]):
    """Records of one kind by id, with the key that each belongs to. Held in memory, each a JSON file on the disk.

    disk: the one thread that writes. used: bytes that a key's records count for.
    """

    def __init__(self, folder: Path, kind: type[_Item], disk: ThreadPoolExecutor) -> None:
        self._folder = folder
        self._disk = disk
        self._items: dict[str, tuple[str, _Item]] = {}
        self._of_key: dict[str, dict[str, _Item]] = {}
        self.used: Counter[str] = Counter()
        for path in folder.glob("*.json"):
            try:
                stored = json.loads(path.read_bytes())
                self.note(str(stored["key"]), kind.model_validate(stored["record"]))
            except (OSError, ValueError, LookupError, TypeError) as error:
                raise ConfigError(f"server.batch_folder: {path} is damaged; move it away: {error}") from error

    def note(self, key: str, item: _Item) -> None:
        """Keeps a record in memory, in place of the one with its id; the disk learns of it with the next `put`."""
        self._forget(item.id)
        self._items[item.id] = key, item
        self._of_key.setdefault(key, {})[item.id] = item
        self.used[key] += _counted(item)

    def put(self, key: str, item: _Item) -> Future[None]:
        """Keeps a record, in place of the one with its id; what is given is done when it is on the disk."""
        self.note(key, item)
        return self._disk.submit(self._write, item.id)

    async def keep(self, key: str, item: _Item) -> None:
        """Returns when a record is on the disk; a new one that cannot be written is not kept. Raises OSError."""
        is_new = item.id not in self
        try:
            await asyncio.shield(asyncio.wrap_future(self.put(key, item)))
        except OSError:
            if is_new:
                self.remove(item)
            raise

    def find(self, key: str, item_id: str) -> _Item | None:
        """A key's record; None if there is none, or if it is another key's."""
        owner, item = self._items.get(item_id, ("", None))
        return item if owner == key else None

    def remove(self, item: _Item) -> None:
        """Forgets a record."""
        self._forget(item.id)
        (self._folder / f"{item.id}.json").unlink(missing_ok=True)

    def all(self) -> list[tuple[str, _Item]]:
        """Every record with its key, the oldest first."""
        return [self._items[item_id] for item_id in sorted(self._items)]

    def of_key(self, key: str) -> list[_Item]:
        """A key's records, the oldest first."""
        return [item for _, item in sorted(self._of_key.get(key, {}).items())]

    def count(self, key: str) -> int:
        """How many records a key has."""
        return len(self._of_key.get(key, {}))

    def _write(self, item_id: str) -> None:
        """Brings a record to the disk as it is now, unless it has been removed by then."""
        stored = self._items.get(item_id)
        if stored is None:
            return
        path = self._folder / f"{item_id}.json"
        write_whole(path, [json.dumps({"key": stored[0], "record": stored[1].model_dump()}).encode()])
        if item_id not in self:
            path.unlink(missing_ok=True)

    def _forget(self, item_id: str) -> None:
        if item_id not in self._items:
            return
        key, item = self._items.pop(item_id)
        self.used[key] -= _counted(item)
        del self._of_key[key][item_id]

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._items


def _counted(item: StoredFile | Batch) -> int:
    return max(item.bytes if isinstance(item, StoredFile) else 0, _LEAST_BYTES)


def page(items: Iterable[_Item], after: str | None, limit: int, *, newest_first: bool = True) -> Page[_Item]:
    """The next records of a list in the order of their ids; after: the id that the page before ended with."""
    ordered = sorted(items, key=lambda item: item.id, reverse=newest_first)
    left = [item for item in ordered if after is None or (item.id < after if newest_first else item.id > after)]
    data = left[:limit]
    ends = (data[0].id, data[-1].id) if data else (None, None)
    return Page[_Item](data=data, first_id=ends[0], last_id=ends[1], has_more=len(left) > limit)


class BatchStore:
    """What is kept for all keys, by one server at a time. Only contents of records are opened, never a name that came.

    Raises ConfigError for a folder that cannot be used, or that another server uses.
    """

    def __init__(self, folder: Path) -> None:
        try:
            for needed in (folder, folder / "files", folder / "batches"):
                needed.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("ab")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(f"server.batch_folder: another server uses {folder}; give each its own") from error
        except OSError as error:
            raise ConfigError(f"server.batch_folder: cannot use {folder}: {error.strerror or error}") from error
        self._folder = folder
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="ewe-batch-records")
        self._unfinished: Counter[str] = Counter()
        self.files = Records(folder / "files", StoredFile, self._disk)
        self.batches = Records(folder / "batches", Batch, self._disk)
        for key in {key for key, _ in self.batches.all()}:
            self.forget_old_batches(key)
        self._sweep()

    def content(self, file_id: str) -> Path:
        """Where the content of a file lies; file_id: of a record."""
        return self._folder / "files" / file_id

    def log(self, batch: Batch) -> Path:
        """Where the results of a batch lie until it ends."""
        return self._folder / "batches" / f"{batch.id}.log"

    def used(self, key: str) -> int:
        """Bytes that count for a key: files, batches, results of batches that have not ended, files on their way."""
        return self.files.used[key] + self.batches.used[key] + self._unfinished[key]

    def count_unfinished(self, key: str, size: int) -> None:
        """Counts bytes that a key's batches and uploads have got so far, or have no more."""
        self._unfinished[key] += size

    def forget_old_batches(self, key: str) -> None:
        """Of a key's batches that have ended the newest are kept; their files stay."""
        ended = [batch for batch in self.batches.of_key(key) if batch.has_ended]
        for batch in ended[:-_MOST_ENDED]:
            self.batches.remove(batch)

    def remove_file(self, file: StoredFile) -> None:
        """Deletes a file and its record."""
        self.files.remove(file)
        self.content(file.id).unlink(missing_ok=True)

    def close(self) -> None:
        """Lets the next server in, when all is written."""
        self._disk.shutdown()
        self._lock.close()

    def _sweep(self) -> None:
        """Removes what a killed server left: contents without a record, halves of files, logs of ended batches."""
        ended = {batch.id for _, batch in self.batches.all() if batch.has_ended}
        for records, folder in ((self.files, "files"), (self.batches, "batches")):
            for path in (self._folder / folder).iterdir():
                own = _OWN_NAME.fullmatch(path.name)
                is_left = own and (own[1] not in records or path.suffix == ".partial" or own[1] in ended)
                if is_left and path.suffix != ".json":
                    path.unlink()


def write_whole(path: Path, pieces: Iterable[bytes]) -> int:
    """Writes a file, whole or not at all; gives its size in bytes."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)  # else a full disk stays full
        raise
    return size


def blocks(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file, a mebibyte at a time."""
    while block := file.read(1 << 20):
        yield block
