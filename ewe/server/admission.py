"""Who is let in: a bounded number of answers under way, fewer per key, none while the server drains.

Lives on the event loop; knows no engine and no HTTP.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from ewe.server.errors import RefusedError


class AdmissionControl:
    """Counts answers under way; capacity: the most at once, per_key: the most of one key (None: no limit)."""

    def __init__(self, capacity: int, per_key: int | None = None) -> None:
        self._capacity = capacity
        self._per_key = per_key
        self._inside: Counter[str] = Counter()
        self._empty = asyncio.Event()
        self._empty.set()
        self.is_draining = False

    @property
    def num_inside(self) -> int:
        """Answers under way."""
        return self._inside.total()

    def enter(self, key: str, count: int = 1) -> None:
        """Takes in `count` answers of a key; raises RefusedError where there is no room for all of them."""
        if self.is_draining:
            raise RefusedError(503, "the server is shutting down", code="shutting_down")
        if count > self._capacity:
            raise RefusedError(400, f"{count} answers in one request; this server takes {self._capacity} at once")
        if self._per_key is not None and self._inside[key] + count > self._per_key:
            raise RefusedError(
                429,
                f"this key may have {self._per_key} answers under way; try again when one has ended",
                code="too_many",
            )
        if self.num_inside + count > self._capacity:
            raise RefusedError(503, "the queue is full; try again in a moment", code="queue_full")
        self._inside[key] += count
        self._empty.clear()

    def leave(self, key: str, count: int = 1) -> None:
        """Lets `count` answers of a key go."""
        self._inside[key] -= count
        if not self._inside[key]:
            del self._inside[key]
        if not self._inside:
            self._empty.set()

    async def wait_until_empty(self, timeout_s: float) -> bool:
        """Whether nothing was under way any more before the time was over."""
        if self._empty.is_set():  # with no time at all, too
            return True
        try:
            await asyncio.wait_for(self._empty.wait(), timeout_s)
        except TimeoutError:
            return False
        return True
