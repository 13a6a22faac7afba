"""Writing a folder of encoded units, shard by shard, so that a process that is killed loses the last shard at most."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

import torch
from safetensors.torch import save_file
from torch import Tensor

from ewe.errors import PrecomputedError
from ewe.kvcache.digest import digest
from ewe.memory.unit_files import (
    FORMAT,
    MANIFEST,
    SHARDS,
    UnitIdentity,
    check_manifest,
    kv_name,
    open_shard,
    tokens_name,
    unit_key,
)

_SHARD_BYTES = 256 << 20
_PARTIAL = ".partial"


class UnitWriter:
    """Adds units to a folder, new or begun before; `keys` holds the `unit_key` of those that are there.

    Raises PrecomputedError if the folder holds something else, was made for another `identity`, is damaged, or another
    process writes to it. Used as a context, it writes what is left when it is left, whatever the reason.
    """

    def __init__(self, folder: Path, identity: UnitIdentity, shard_bytes: int = _SHARD_BYTES) -> None:
        self.folder = folder
        self._identity = identity
        self._shard_bytes = shard_bytes
        self._begin()
        self._lock = _lock(folder)
        for partial in folder.glob(f"*{_PARTIAL}"):
            partial.unlink()
        shards = sorted(folder.glob(SHARDS))
        self.keys = {key for shard in shards for key in open_shard(shard, identity)}
        self._number = 1 + max((int(shard.stem.rpartition("-")[2]) for shard in shards), default=-1)
        self._units: list[tuple[Tensor, Tensor]] = []
        self._bytes = 0

    def add(self, token_ids: Sequence[int], kv: Tensor) -> None:
        """One unit more; kv: what `KVPool.read_slots` gave for it, on the host."""
        self._units.append((torch.tensor(list(token_ids), dtype=torch.int32), kv))
        self.keys.add(unit_key(token_ids))
        self._bytes += kv.nbytes
        if self._bytes >= self._shard_bytes:
            self.flush()

    def flush(self) -> None:
        """Writes the units that are not on disk yet as one more shard."""
        if not self._units:
            return
        tensors: dict[str, Tensor] = {}
        for number, (tokens, kv) in enumerate(self._units):
            tensors |= {tokens_name(number): tokens, kv_name(number): kv}
        digests = [digest(unit) for unit in self._units]
        metadata = {"identity": self._identity.digest, "digests": json.dumps(digests)}
        path = self.folder / f"shard-{self._number:05}.safetensors"
        partial = path.with_name(path.name + _PARTIAL)
        try:
            save_file(tensors, partial, metadata)
            partial.chmod((self.folder / MANIFEST).stat().st_mode)  # safetensors keeps others from reading
            _sync(partial)
            partial.rename(path)
            _sync(self.folder)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise PrecomputedError(f"cannot write {path}: {error.strerror or error}") from error
        self._number += 1
        self._units, self._bytes = [], 0

    def __enter__(self) -> UnitWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.flush()
        finally:
            os.close(self._lock)

    def _begin(self) -> None:
        """Makes the folder, or checks that it is one of ours."""
        path = self.folder / MANIFEST
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            is_new = not any(item for item in self.folder.iterdir() if item.suffix != _PARTIAL)
            if is_new:
                manifest = {"format": FORMAT, "identity": asdict(self._identity)}
                partial = path.with_name(path.name + _PARTIAL)
                partial.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
                _sync(partial)
                partial.rename(path)
        except OSError as error:
            raise PrecomputedError(f"cannot write to {self.folder}: {error.strerror or error}") from error
        if not is_new:
            check_manifest(self.folder, self._identity)


def _lock(folder: Path) -> int:
    """An open file that only this process holds; raises PrecomputedError if another one does."""
    handle = os.open(folder / MANIFEST, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise PrecomputedError(f"another process writes to {folder}: wait for it, or choose another --out") from error
    return handle


def _sync(path: Path) -> None:
    """Waits until a file or folder has reached the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
