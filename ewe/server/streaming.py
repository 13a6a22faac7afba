"""Streams of server-sent events, and work off the event loop: neither goes on for longer than somebody waits."""

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ewe.server.answers import check_finished, ewe_result
from ewe.server.bridge import Run, RunEvent
from ewe.server.engine_service import Service, service_of
from ewe.server.error_responses import RefusedError, refusal_of
from ewe.server.fair_queue import LARGE, FairQueue, holder_of, tenant_of
from ewe.server.logprobs import Piece, token_pieces
from ewe.server.schemas.common import AnswerModel
from ewe.server.schemas.ewe_result import EweResult
from ewe.server.schemas.sampling_schemas import SamplingRequest
from ewe.server.sse import DEATH, DONE, PING, comment
from ewe.server.stream_parts import Part, StreamParts
from ewe.text.jsonable import jsonable
from ewe.types import Generation

_T = TypeVar("_T")

_log = logging.getLogger("ewe.server")


class StreamedAnswer(ABC):
    """What is said of a run: all at once, or record by record; each call gives records, or nothing.

    closing: what follows the last record.
    """

    closing = DONE

    def __init__(self, service: Service, run: Run, body: SamplingRequest) -> None:
        self._service = service
        self._run = run
        self._parts = StreamParts(body.ewe)

    @abstractmethod
    async def whole(self, generations: Sequence[Generation]) -> AnswerModel:
        """All choices at once."""

    @abstractmethod
    def begin(self) -> str:
        """Before anything has happened."""

    async def tell(self, item: RunEvent) -> str:
        """Of one event; raises RefusedError where the answer came to nothing."""
        if item.event.kind == "finish":
            check_finished(item.event.generation, self._run.own_deadline)
            return await self._finish(item.choice, item.event.generation)
        return "".join([self._part(item.choice, part) for part in self._parts.of(item)])

    def end(self) -> str:
        """After the last event."""
        return ""

    @abstractmethod
    def fail(self, error: RefusedError) -> str:
        """Of what broke the stream off."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Lets go of what was needed to tell it."""

    def _part(self, choice: int, part: Part) -> str:
        if part.comment:
            return comment(part.comment)
        if part.reasoning:
            return self._reasoning(choice, part.reasoning)
        return self._event(choice, part.event, jsonable(part.data)) if part.event else self._text(choice, part.delta)

    @abstractmethod
    def _text(self, choice: int, text: str) -> str:
        """Of text that goes on where the text ends."""

    def _reasoning(self, choice: int, text: str) -> str:
        """Of what the model reasons before it answers; a comment where the form has no place for it."""
        return comment("reasoning")

    @abstractmethod
    def _event(self, choice: int, kind: str, data: Any) -> str:
        """Of something that happened to the text or the memory."""

    @abstractmethod
    async def _finish(self, choice: int, generation: Generation) -> str:
        """Of the end of one choice."""

    async def _result(self, generations: Sequence[Generation], offsets: Sequence[int] = ()) -> EweResult:
        """What the engine knows of all answers; long sources are looked through off the event loop."""
        tell = partial(ewe_result, generations, offsets)
        if sum(len(source.text) for each in generations for source in each.sources.values()) < LARGE:
            return tell()
        return await self._service.queues.ends.submit(self._run.tenant, tell)

    async def _with_pieces(
        self, tell: Callable[[list[Piece]], _T], generation: Generation, prompt: int = 0, with_prompt: bool = False
    ) -> _T:
        """What `tell` makes of an answer's tokens with their texts, off the event loop: there may be very many.

        prompt: which one it answers; with_prompt: whether the tokens of the prompt come before its own.
        """
        tokenizer, prompt_ids = self._service.engine.prompts.tokenizer, self._run.opened[prompt].request.prompt_ids
        return await self._service.queues.ends.submit(
            self._run.tenant, lambda: tell(token_pieces(tokenizer, prompt_ids, generation, with_prompt))
        )


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
        self._run, self._answer = run, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._run.close()
            self._answer.close()


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
    try:
        whole = await answer.whole(generations)
        return Response(whole.model_dump_json(), media_type="application/json")  # in a tenth of the time of `json`
    finally:
        answer.close()


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
    chunk = answer.begin() or PING  # at once: nobody has to wait for the first text to see that it goes on
    try:
        yield chunk
        chunk = ""
        async for batch in run.events(ping_s):
            chunk = "" if batch else PING
            for item in batch:
                chunk += await answer.tell(item)
            if chunk:
                yield chunk
                chunk = ""  # what is sent is not sent again with an error
        chunk = answer.end()
    except Exception as error:  # the status has been sent: all that is left is to say it in the stream
        if not isinstance(error, RefusedError):
            _log.exception("a stream failed")
        refused = refusal_of(error)
        chunk += (DEATH if refused.code == "engine_dead" else "") + answer.fail(refused)
    yield chunk + answer.closing


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
