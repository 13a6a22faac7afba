"""/v1/chat/completions.

Owns: the route, and which chunks a streamed conversation consists of. Knows the service and the wire's shapes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from ewe.engine.intake import Prompt
from ewe.llm import LLM, question_of
from ewe.report.jsonable import jsonable
from ewe.server.answers import check_finished, citations, ewe_result, finish_reason, usage
from ewe.server.logprobs import chat_logprobs
from ewe.server.run import Run, RunEvent
from ewe.server.service import LIVE_EVENTS, TEXT_EVENTS, Order, Service, service_of
from ewe.server.streaming import RunStream, answers_unless_gone, record
from ewe.server.version import FINGERPRINT
from ewe.server.wire import ERROR_RESPONSES, EVENT_STREAM
from ewe.server.wire_chat import AnswerMessage, ChatChoice, ChatLogprobs, ChatRequest, ChatResponse
from ewe.types import Generation

router = APIRouter(tags=["OpenAI"])


@router.post("/v1/chat/completions", response_model=ChatResponse, responses={200: EVENT_STREAM, **ERROR_RESPONSES})
async def create_chat_completion(body: ChatRequest, request: Request) -> Response:
    """Goes on with a conversation; with `stream` the text is sent sentence by sentence as it becomes final."""
    service = service_of(request)
    events = (TEXT_EVENTS | (LIVE_EVENTS if body.ewe.events else frozenset())) if body.stream else frozenset()
    run = await service.begin(request, _order(body), events)
    answer = _ChatAnswer(service, run, body)
    if body.stream:
        return RunStream(run, answer.chunks(), service.settings.ping)
    generations = await answers_unless_gone(request, run)
    for generation in generations:
        check_finished(generation)
    return JSONResponse((await answer.whole(generations)).model_dump())


def _order(body: ChatRequest) -> Order:
    # OpenAI treats the developer's messages as it treated the system's; chat templates know the latter only.
    messages = [
        {"role": "system" if message.role == "developer" else message.role, "content": message.text}
        for message in body.messages
    ]

    def prompts(llm: LLM) -> Sequence[Prompt]:
        return [llm.apply_chat_template(messages)]

    return Order(
        wanted=body,
        prompts=prompts,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        special_tokens=False,
        question=question_of(messages),
    )


class _ChatAnswer:
    """The answer to one request: as a whole or as chunks."""

    def __init__(self, service: Service, run: Run, body: ChatRequest) -> None:
        self._service = service
        self._run = run
        self._body = body
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": service.model_name}

    async def whole(self, generations: Sequence[Generation]) -> ChatResponse:
        """All choices at once."""
        choices = [
            ChatChoice(
                index=index,
                message=AnswerMessage(content=generation.text, annotations=citations(generation)),
                logprobs=await self._logprobs(generation),
                finish_reason=finish_reason(generation),
            )
            for index, generation in enumerate(generations)
        ]
        return ChatResponse(
            **self._head,
            choices=choices,
            usage=usage(generations),
            system_fingerprint=FINGERPRINT,
            ewe=ewe_result(generations),
        )

    async def chunks(self) -> AsyncIterator[str]:
        """The records of the stream, but for the last that says that it is done."""
        for index in range(self._run.num_choices):
            yield self._chunk([_choice(index, {"role": "assistant", "content": ""})])
        async for item in self._run.events():
            if item.event.kind == "text":
                yield self._chunk([_choice(item.choice, {"content": item.event.data["text"]})])
            elif item.event.kind == "finish":
                yield await self._last_chunk(item)
            else:
                yield self._chunk([], ewe=live_event(item))
        if self._body.wants_usage:
            yield self._chunk([], usage=usage(self._run.generations).model_dump())

    async def _last_chunk(self, item: RunEvent) -> str:
        """A choice's end with its citations; that of the last choice also tells what the engine knows."""
        generation: Generation = item.event.generation
        check_finished(generation)
        cited = [annotation.model_dump() for annotation in citations(generation)]
        logprobs = await self._logprobs(generation)
        choice = _choice(item.choice, {"annotations": cited} if cited else {}, finish_reason(generation))
        choice["logprobs"] = None if logprobs is None else logprobs.model_dump()
        more = {"ewe": ewe_result(self._run.generations).model_dump()} if self._run.is_finished else {}
        return self._chunk([choice], **more)

    async def _logprobs(self, generation: Generation) -> ChatLogprobs | None:
        if not self._body.logprobs:
            return None
        tokenizer, prompt_ids = self._service.llm.tokenizer, self._run.sequences[0].prompt_ids
        return await self._service.in_thread(lambda: chat_logprobs(tokenizer, prompt_ids, generation))

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> str:
        empty = {"usage": None} if self._body.wants_usage else {}
        fixed = {"object": "chat.completion.chunk", "system_fingerprint": FINGERPRINT}
        return record({**self._head, **fixed, "choices": choices, **empty, **more})


def live_event(item: RunEvent) -> dict[str, Any]:
    """What a reader who asked for events is told of one."""
    return {"event": item.event.kind, "choice": item.choice, "data": jsonable(item.event.data)}


def _choice(index: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
