"""Units that were encoded beforehand, brought from files into the KV pool."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from pathlib import Path

import torch
from torch import Tensor

from ewe.engine.kvcache.pool import KVPool
from ewe.engine.units.disk_cache import DiskCache
from ewe.engine.units.unit_cache import EncodedUnit
from ewe.engine.units.unit_files import StoredUnit, UnitIdentity, open_units, unit_key
from ewe.engine.units.unit_folder import StoreError, open_folder
from ewe.errors import PrecomputedError

_log = logging.getLogger(__name__)


class Load(Enum):
    """What `PrecomputedUnits.load` could do: the KV is in the pool, it is on its way, or it has to be computed."""

    DONE = "done"
    READING = "reading"
    ABSENT = "absent"


class HostUnits:
    """KV by key, at most `capacity` bytes of it (0: none). Safe to call from several threads."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._units: OrderedDict[bytes, Tensor] = OrderedDict()  # least recently used first
        self._lock = threading.Lock()
        self.num_bytes = 0

    def __len__(self) -> int:
        return len(self._units)

    def get(self, key: bytes) -> Tensor | None:
        """A unit's KV, None if it is not here."""
        with self._lock:
            if key not in self._units:
                return None
            self._units.move_to_end(key)
            return self._units[key]

    def put(self, key: bytes, kv: Tensor) -> None:
        """Keeps a unit, and gives up others for it; one that is larger than the whole budget is not kept."""
        with self._lock:
            if kv.nbytes > self._capacity or key in self._units:
                return
            self._units[key] = kv
            self.num_bytes += kv.nbytes
            while self.num_bytes > self._capacity:
                _, oldest = self._units.popitem(last=False)
                self.num_bytes -= oldest.nbytes


class PrecomputedUnits:
    """The units of one folder, for one pool. Units that follow another prefix than the folder's, or have an
    adapter, are absent from it.

    host_bytes: host memory that may hold units once they have been read, pinned beside a GPU. changed: called from
    another thread when a unit has been read. cache: keeps what comes from far away. Raises PrecomputedError as
    `open_units` does.
    """

    def __init__(
        self,
        folder: str | Path,
        identity: UnitIdentity,
        pool: KVPool,
        host_bytes: int,
        changed: Callable[[], None],
        cache: DiskCache | None = None,
    ) -> None:
        self._units = open_units(folder, identity)
        self._folder, self._prefix_ids = folder, identity.prefix
        self._cache = cache
        self._has_warned = False
        self._pool = pool
        self._changed = changed
        self._is_copied = pool.device.type == "cuda" or host_bytes > 0
        self.host = HostUnits(host_bytes)
        self._readers = ThreadPoolExecutor(open_folder(folder).readers, thread_name_prefix="ewe-units")

    def __len__(self) -> int:
        return len(self._units)

    def load(self, unit: EncodedUnit) -> Load:
        """Brings a unit that is not ready into its blocks, or begins to read it; from the engine's thread.

        While it is being read, `changed` is what says when to call again. A unit whose file turns out to be damaged is
        reported once and is absent from then on; one whose store does not answer is absent this time.
        """
        key = unit_key(unit.token_ids)
        stored = self._units.get(key)
        if unit.adapter:
            return Load.ABSENT
        if unit.prefix_ids != self._prefix_ids:
            self._tell_of_another_prefix(unit)
            return Load.ABSENT
        if stored is None:
            return Load.ABSENT
        kv = self.host.get(key)
        if kv is None:
            if unit.reading is None:
                unit.reading = self._readers.submit(self._read, key, stored)
                unit.reading.add_done_callback(lambda _: self._changed())
            if not unit.reading.done():
                return Load.READING
            kv = self._result(key, unit.reading)
            if kv is None:
                return Load.ABSENT
        self._pool.write_slots(unit.table.slots(), kv)
        unit.reading, unit.was_loaded, unit.ready = None, True, True
        return Load.DONE

    def close(self) -> None:
        """Ends the threads that read."""
        self._readers.shutdown(cancel_futures=True)

    def _tell_of_another_prefix(self, unit: EncodedUnit) -> None:
        """One line for the first unit inside a prompt; what follows nothing may be a prefix itself."""
        if unit.prefix_ids and not self._has_warned:
            self._has_warned = True
            _log.warning("%s is of no use to prompts that begin otherwise than what it was made for", self._folder)

    def _read(self, key: bytes, stored: StoredUnit) -> Tensor:
        """A unit's KV in host memory, all of it read and checked; from a reader's thread.

        For a GPU in pinned memory, from where it moves without anything waiting for it.
        """
        kv = stored.read(self._cache)
        if self._is_copied:
            kv = torch.empty(kv.shape, dtype=kv.dtype, pin_memory=self._pool.device.type == "cuda").copy_(kv)
            self.host.put(key, kv)
        return kv

    def _result(self, key: bytes, reading: Future[Tensor]) -> Tensor | None:
        try:
            return reading.result()
        except StoreError:
            return None  # and other units later
        except (PrecomputedError, OSError, RuntimeError) as error:
            _log.warning("a precomputed unit is encoded instead: %s", error)
            self._units.pop(key, None)
            return None
