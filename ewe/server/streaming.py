"""Streams of server-sent events: their records, comments in silence, and what happens when the reader goes.

Owns: the form of a stream and the end of its run. Knows runs; nothing of what the records say.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ewe.server.answers import check_finished
from ewe.server.errors import RefusedError, refusal_of
from ewe.server.run import Run
from ewe.types import Generation

DONE = "data: [DONE]\n\n"
PING = ": ping\n\n"

_T = TypeVar("_T")

_log = logging.getLogger("ewe.server")


def record(data: Any) -> str:
    """One record of a stream."""
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"


class RunStream(StreamingResponse):
    """A run as a stream of records; the run ends when the last is sent or the reader has gone.

    An error after the first record becomes a record with `error`, then the stream ends.
    """

    def __init__(self, run: Run, records: AsyncIterator[str], ping_s: float) -> None:
        super().__init__(
            _with_pings(_with_errors(records), ping_s),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._run.close()


async def answers_unless_gone(request: Request, run: Run) -> list[Generation]:
    """The finished answers, and the run is closed; raises RefusedError if the client hung up before them, or for an
    answer that came to nothing.
    """
    try:
        generations = await unless_gone(request, asyncio.ensure_future(run.answers()))
    finally:
        run.close()
    for generation in generations:
        check_finished(generation)
    return generations


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


async def _with_errors(records: AsyncIterator[str]) -> AsyncIterator[str]:
    try:
        async for item in records:
            yield item
    except Exception as error:  # the status has been sent: all that is left is to say it in the stream
        if not isinstance(error, RefusedError):
            _log.exception("a stream failed")
        yield record(refusal_of(error).body)
    yield DONE


async def _with_pings(records: AsyncIterator[str], ping_s: float) -> AsyncIterator[str]:
    """The records, and a comment whenever there was none for a while, so that nobody takes the connection for dead."""
    following: asyncio.Future[str] | None = None
    try:
        while True:
            following = asyncio.ensure_future(anext(records))
            while not (await asyncio.wait({following}, timeout=ping_s))[0]:
                yield PING
            try:
                yield following.result()
            except StopAsyncIteration:
                return
    finally:
        if following is not None:
            following.cancel()
