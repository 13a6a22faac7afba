"""Units in host memory: the tier between files and a GPU."""

import threading
from collections import OrderedDict

from torch import Tensor


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
