"""Work that writes no text: in its own thread, counted by admission control, not for longer than somebody waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from fastapi import Request

from ewe.server.errors import RefusedError
from ewe.server.service import key_of, service_of
from ewe.server.streaming import unless_gone

_T = TypeVar("_T")


class Caller:
    """Whoever waits for the work; work that takes long asks now and then whether it is still there."""

    def __init__(self) -> None:
        self._gone = threading.Event()

    def leave(self) -> None:
        """Nobody waits any more."""
        self._gone.set()

    def check(self) -> None:
        """Raises RefusedError if nobody waits any more."""
        if self._gone.is_set():
            raise RefusedError(499, "the client has gone")

    def batches(self, items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
        """The items, so many at a time; raises RefusedError between two batches if nobody waits any more."""
        for start in range(0, len(items), size):
            self.check()
            yield items[start : start + size]


async def run_in_thread(request: Request, work: Callable[[Caller], _T]) -> _T:
    """What the work gives; raises RefusedError where there is no room, no time left, or nobody waits any more."""
    service, key, caller = service_of(request), key_of(request), Caller()
    service.admission.enter(key)
    running = asyncio.ensure_future(asyncio.to_thread(work, caller))
    try:
        return await unless_gone(request, running, service.settings.deadline)
    finally:
        caller.leave()
        service.admission.leave(key)
