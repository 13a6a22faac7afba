"""Writing a folder of encoded units, shard by shard, so that a process that is killed loses the last shard at most."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

from safetensors.torch import save
from torch import Tensor

from ewe.engine.units.unit_files import (
    FORMAT,
    MANIFEST,
    UnitIdentity,
    check_manifest,
    open_shards,
    unit_digest,
    unit_key,
)
from ewe.engine.units.unit_folder import open_folder
from ewe.errors import PrecomputedError

_SHARD_BYTES = 256 << 20


class UnitWriter:
    """Adds units to a folder, new or begun before; `keys` holds the `unit_key` of those that are there.

    Raises PrecomputedError if the folder holds something else, was made for another `identity`, is damaged, or, on a
    local disk, another process writes to it. Used as a context, it writes what is left when it is left, whatever the
    reason.
    """

    def __init__(self, location: str | Path, identity: UnitIdentity, shard_bytes: int = _SHARD_BYTES) -> None:
        self._folder = open_folder(location)
        self._identity = identity
        self._shard_bytes = shard_bytes
        self._begin()
        self._lock = ExitStack()
        self._lock.enter_context(self._folder.locked(MANIFEST))
        units = open_shards(self._folder, identity)
        self.keys = set(units)
        numbers = (int(Path(unit.shard).stem.rpartition("-")[2]) for unit in units.values())
        self._number = 1 + max(numbers, default=-1)
        self._units: list[tuple[list[int], Tensor]] = []
        self._bytes = 0

    def add(self, token_ids: Sequence[int], kv: Tensor) -> None:
        """One unit more; kv: what `KVPool.read_slots` gave for it, on the host."""
        self._units.append((list(token_ids), kv))
        self.keys.add(unit_key(token_ids))
        self._bytes += kv.nbytes
        if self._bytes >= self._shard_bytes:
            self.flush()

    def flush(self) -> None:
        """Writes the units that are not stored yet as one more shard."""
        if not self._units:
            return
        tensors = {str(number): kv for number, (_, kv) in enumerate(self._units)}
        metadata = {
            "identity": self._identity.digest,
            "tokens": json.dumps([tokens for tokens, _ in self._units]),
            "digests": json.dumps([unit_digest(unit_key(tokens), kv) for tokens, kv in self._units]),
        }
        data = save(tensors, metadata)
        while not self._create(f"shard-{self._number:05}.safetensors", data):
            self._number += 1
        self._units, self._bytes = [], 0

    def __enter__(self) -> UnitWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self.flush()

    def _begin(self) -> None:
        """Makes the folder, or checks that it is one of ours."""
        try:
            is_new = not self._folder.sizes()
        except OSError as error:
            raise PrecomputedError(f"cannot write to {self._folder}: {error.strerror or error}") from error
        manifest = {"format": FORMAT, "identity": asdict(self._identity)}
        if not is_new or not self._create(MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode()):
            check_manifest(self._folder, self._identity)

    def _create(self, name: str, data: bytes) -> bool:
        try:
            return self._folder.create(name, data)
        except OSError as error:
            raise PrecomputedError(f"cannot write {self._folder}/{name}: {error.strerror or error}") from error
