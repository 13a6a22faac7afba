"""Streams of server-sent events, and work off the event loop: neither goes on for longer than somebody waits."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from ewe.server.answers import check_finished
from ewe.server.engine_service import key_of, service_of
from ewe.server.errors import RefusedError, refusal_of
from ewe.server.run import Run, RunEvent
from ewe.server.schemas.common import AnswerModel
from ewe.types import Generation

DONE = "data: [DONE]\n\n"

_T = TypeVar("_T")

_log = logging.getLogger("ewe.server")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_HOLE = "\0hole\0"  # in no text that an endpoint itself puts into a record


def comment(text: str) -> str:
    """A line of a stream that its readers pass over; text: one line."""
    return f": {text}\n\n"


PING = comment("ping")


def record(data: Any) -> str:
    """One record of a stream."""
    return f"data: {_encode(data)}\n\n"


class RecordForm:
    """Records that are equal but for one value: `data` with HOLE in its place is encoded once."""

    HOLE = _HOLE

    def __init__(self, data: Any) -> None:
        self._before, self._after = record(data).split(_encode(_HOLE))

    def fill(self, value: Any) -> str:
        """The record with this value."""
        return f"{self._before}{_encode(value)}{self._after}"


class StreamedAnswer(Protocol):
    """What is said of a run: all at once, or record by record; each call gives records, or nothing."""

    async def whole(self, generations: Sequence[Generation]) -> AnswerModel:
        """All choices at once."""

    def begin(self) -> str:
        """Before anything has happened."""

    async def tell(self, item: RunEvent) -> str:
        """Of one event; raises RefusedError where the answer came to nothing."""

    def end(self) -> str:
        """After the last event."""

    def fail(self, error: RefusedError) -> str:
        """Of what broke the stream off."""


class RunStream(StreamingResponse):
    """A run as a stream of records; the run ends when the last is sent or the reader has gone.

    What comes together is sent together. After ping_s seconds of silence a comment is sent, so that nobody takes the
    connection for dead.
    """

    def __init__(self, run: Run, answer: StreamedAnswer, ping_s: float) -> None:
        super().__init__(
            _records(run, answer, ping_s),
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


async def respond(request: Request, run: Run, answer: StreamedAnswer, streams: bool | None) -> Response:
    """The answer as a stream, or as a whole when all of it is there; in the end the run is closed.

    Raises RefusedError if the client hung up before the whole, or for an answer that came to nothing.
    """
    if streams:
        return RunStream(run, answer, service_of(request).settings.ping)
    try:
        generations = await unless_gone(request, asyncio.ensure_future(run.answers()))
    finally:
        run.close()
    for generation in generations:
        check_finished(generation, run.own_deadline)
    return JSONResponse((await answer.whole(generations)).model_dump())


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


async def _records(run: Run, answer: StreamedAnswer, ping_s: float) -> AsyncIterator[str]:
    """The records of a run; an error after the first is told in the stream, which then ends."""
    told = answer.begin() or PING  # at once: nobody has to wait for the first text to see that it goes on
    try:
        yield told
        told = ""
        async for batch in run.events(ping_s):
            told = "" if batch else PING
            for item in batch:
                told += await answer.tell(item)
            if told:
                yield told
                told = ""  # what is sent is not sent again with an error
        told = answer.end()
    except Exception as error:  # the status has been sent: all that is left is to say it in the stream
        if not isinstance(error, RefusedError):
            _log.exception("a stream failed")
        told += answer.fail(refusal_of(error))
    yield told + DONE


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


async def run_in_thread(request: Request, work: Callable[[Cancellation], _T]) -> _T:
    """What the work gives; raises RefusedError where there is no room, no time left, or nobody waits any more."""
    service, key, cancellation = service_of(request), key_of(request), Cancellation()
    service.admission.enter(key)
    running = asyncio.ensure_future(asyncio.to_thread(work, cancellation))
    try:
        return await unless_gone(request, running, service.settings.deadline)
    finally:
        cancellation.cancel()
        service.admission.leave(key)
