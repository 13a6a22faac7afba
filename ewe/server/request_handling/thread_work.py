"""Work of requests in threads: it ends where nobody waits for it any more."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from fastapi import Request

from ewe.server.engine_service import service_of
from ewe.server.http.error_responses import RefusedError
from ewe.server.traffic.fair_queue import FairQueue, holder_of, tenant_of

_T = TypeVar("_T")


async def unless_gone(request: Request, work: asyncio.Future[_T], timeout_s: float | None = None) -> _T:
    """What the work gives; it is cancelled, with RefusedError, if the client hangs up or the time is over before."""
    gone = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        either: set[asyncio.Future[Any]] = {work, gone}
        await asyncio.wait(either, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        if gone.done():
            raise RefusedError(499, "the client has gone")
        raise RefusedError(503, f"this took longer than {timeout_s:g} s", code="deadline", may_retry=False)
    finally:
        work.cancel()
        gone.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class Cancellation:
    """Whether whoever waits for some work has gone; work that takes long asks now and then."""

    def __init__(self) -> None:
        self._gone = threading.Event()

    def cancel(self) -> None:
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


async def run_in_thread(request: Request, queue: FairQueue, work: Callable[[Cancellation], _T]) -> _T:
    """What the work gives; raises RefusedError where there is no room, no time left, or nobody waits any more."""
    service, cancellation = service_of(request), Cancellation()
    with service.admission.work(holder_of(request.scope)):
        running = queue.submit(tenant_of(request.scope), partial(work, cancellation))
        try:
            return await unless_gone(request, running, service.settings.deadline)
        finally:
            cancellation.cancel()
