"""Streams of server-sent events, and work off the event loop: neither goes on for longer than somebody waits."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ewe.server.answering.answers import check_finished, ewe_result
from ewe.server.answering.logprobs import Piece, token_pieces
from ewe.server.engine_client.bridge import Run, RunEvent
from ewe.server.engine_client.stream_parts import Part, StreamParts
from ewe.server.engine_service import Service, service_of
from ewe.server.http.error_responses import RefusedError, refusal_of
from ewe.server.http.sse import DEATH, DONE, PING, comment
from ewe.server.request_handling.thread_work import unless_gone
from ewe.server.schemas.common import AnswerModel
from ewe.server.schemas.ewe_result import EweResult
from ewe.server.schemas.sampling_schemas import SamplingRequest
from ewe.server.traffic.fair_queue import LARGE
from ewe.text.jsonable import jsonable
from ewe.text.tool_calls.use import Piece as TextPiece
from ewe.text.tool_calls.use import ToolUse, with_id
from ewe.types import Generation, ToolCall

_T = TypeVar("_T")

_log = logging.getLogger("ewe.server")


class StreamedAnswer(ABC):
    """What is said of a run: all at once, or record by record; each call gives records, or nothing.

    closing: what follows the last record. tools: what the answers may call; their calls are no text.
    """

    closing = DONE

    def __init__(self, service: Service, run: Run, body: SamplingRequest, tools: ToolUse | None = None) -> None:
        self._service = service
        self._run = run
        self._parts = StreamParts(body.ewe)
        self._tools = tools
        self._readers = [tools.reader() for _ in range(run.num_choices)] if tools is not None else []
        self._calls: list[list[ToolCall]] = [[] for _ in range(run.num_choices)]  # those that the stream has told

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
            rest = self._readers[item.choice].finish() if self._readers else ()
            return await self._pieces(item.choice, rest) + await self._finish(item.choice, item.event.generation)
        return "".join([await self._part(item.choice, part) for part in self._parts.of(item)])

    def end(self) -> str:
        """After the last event."""
        return ""

    @abstractmethod
    def fail(self, error: RefusedError) -> str:
        """Of what broke the stream off."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Lets go of what was needed to tell it."""

    async def _part(self, choice: int, part: Part) -> str:
        if part.comment:
            return comment(part.comment)
        if part.reasoning:
            return self._reasoning(choice, part.reasoning)
        if part.event:
            return self._event(choice, part.event, jsonable(part.data))
        # With tools text may be content, calls, both or, for now, nothing.
        return await self._pieces(choice, self._readers[choice].feed(part.delta) if self._readers else (part.delta,))

    async def _pieces(self, choice: int, pieces: Sequence[TextPiece]) -> str:
        """Of pieces of content and of whole calls."""
        records = ""
        for piece in pieces:
            if isinstance(piece, str):
                records += self._text(choice, piece)
            else:
                self._calls[choice].append(with_id(piece))
                records += self._call(choice, len(self._calls[choice]) - 1, self._calls[choice][-1])
        return records

    def _answer(self, choice: int, generation: Generation) -> Generation:
        """The answer with its calls taken out of its text; those that the stream has told are the same."""
        if self._tools is None:
            return generation
        read = self._tools.read(generation)
        return replace(read, tool_calls=tuple(self._calls[choice]) or read.tool_calls)

    @abstractmethod
    def _text(self, choice: int, text: str) -> str:
        """Of text that goes on where the text ends."""

    def _reasoning(self, choice: int, text: str) -> str:
        """Of what the model reasons before it answers."""
        raise NotImplementedError  # only what knows no conversations has no place for it, and asks for none

    def _call(self, choice: int, place: int, call: ToolCall) -> str:
        """Of a call, the `place`-th of the choice."""
        raise NotImplementedError  # only who takes tools gets calls

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
