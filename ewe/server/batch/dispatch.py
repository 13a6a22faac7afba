"""Brings the requests of a batch to whoever answers them, so many at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

from ewe.server.batch.places import Places
from ewe.server.batch.requests import BatchRequest
from ewe.server.batch.result_log import Reply, ResultLog

Answer = Callable[[BatchRequest], Awaitable[Reply | None]]
"""What the endpoint says to a request; None where the batch ends before it was asked."""


async def answer_requests(
    requests: Iterable[BatchRequest],
    answer: Answer,
    log: ResultLog,
    places: Places,
    on_result: Callable[[], None],
) -> None:
    """Returns when every request is in the log or was left; those that are in it are not asked again.

    requests: read in a thread, each when it has a place, so that whoever shares the event loop does not wait for a
    long line. on_result: called after each that is in the log. Raises what the requests, `answer` and the log raise;
    requests that are then under way are broken off.
    """

    async def run(request: BatchRequest) -> None:
        reply = await answer(request)
        if reply is not None:
            await log.add(request.custom_id, reply)
            on_result()

    left = (request for request in requests if request.custom_id not in log.answered)
    try:
        async with asyncio.TaskGroup() as group:
            while (request := await _next(left, places)) is not None:
                # Not at the end of `run`: a task that is cancelled before it begins never gets there.
                group.create_task(run(request)).add_done_callback(lambda _: places.release())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def _next(requests: Iterator[BatchRequest], places: Places) -> BatchRequest | None:
    """The next request, with a place taken for it; None after the last."""
    await places.acquire()
    request = None
    try:
        request = await asyncio.to_thread(next, requests, None)
    finally:
        if request is None:
            places.release()
    return request
