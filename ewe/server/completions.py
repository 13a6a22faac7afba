"""/v1/completions.

Owns: the route, and which chunks a streamed text consists of. Knows the service and the wire's shapes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from ewe.server.answers import check_finished, ewe_result, finish_reason, usage
from ewe.server.chat import live_event
from ewe.server.logprobs import completion_logprobs
from ewe.server.run import Run, RunEvent
from ewe.server.service import LIVE_EVENTS, TEXT_EVENTS, Order, Service, service_of
from ewe.server.streaming import RunStream, answers_unless_gone, record
from ewe.server.version import FINGERPRINT
from ewe.server.wire import ERROR_RESPONSES, EVENT_STREAM
from ewe.server.wire_completions import (
    DEFAULT_MAX_TOKENS,
    CompletionChoice,
    CompletionLogprobs,
    CompletionRequest,
    CompletionResponse,
)
from ewe.types import Generation

router = APIRouter(tags=["OpenAI"])


@router.post("/v1/completions", response_model=CompletionResponse, responses={200: EVENT_STREAM, **ERROR_RESPONSES})
async def create_completion(body: CompletionRequest, request: Request) -> Response:
    """Goes on with one text or several; citations and verdicts are in `ewe`."""
    service = service_of(request)
    order = Order(
        wanted=body,
        prompts=lambda llm: body.prompts,
        count=len(body.prompts),
        max_tokens=body.max_tokens or min(DEFAULT_MAX_TOKENS, service.settings.max_tokens),
        logprobs=body.logprobs,
    )
    events = (TEXT_EVENTS | (LIVE_EVENTS if body.ewe.events else frozenset())) if body.stream else frozenset()
    run = await service.begin(request, order, events)
    answer = _CompletionAnswer(service, run, body)
    if body.stream:
        return RunStream(run, answer.chunks(), service.settings.ping)
    generations = await answers_unless_gone(request, run)
    for generation in generations:
        check_finished(generation)
    return JSONResponse((await answer.whole(generations)).model_dump())


class _CompletionAnswer:
    """The answer to one request: as a whole or as chunks."""

    def __init__(self, service: Service, run: Run, body: CompletionRequest) -> None:
        self._service = service
        self._run = run
        self._body = body
        self._head = {"id": f"cmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": service.model_name}

    async def whole(self, generations: Sequence[Generation]) -> CompletionResponse:
        """All choices at once."""
        choices = [
            CompletionChoice(
                index=index,
                text=generation.text,
                logprobs=await self._logprobs(index, generation),
                finish_reason=finish_reason(generation),
            )
            for index, generation in enumerate(generations)
        ]
        return CompletionResponse(
            **self._head,
            choices=choices,
            usage=usage(generations),
            system_fingerprint=FINGERPRINT,
            ewe=ewe_result(generations),
        )

    async def chunks(self) -> AsyncIterator[str]:
        """The records of the stream, but for the last that says that it is done."""
        async for item in self._run.events():
            if item.event.kind == "text":
                yield self._chunk([_choice(item.choice, item.event.data["text"])])
            elif item.event.kind == "finish":
                yield await self._last_chunk(item)
            else:
                yield self._chunk([], ewe=live_event(item))
        if self._body.wants_usage:
            yield self._chunk([], usage=usage(self._run.generations).model_dump())

    async def _last_chunk(self, item: RunEvent) -> str:
        generation: Generation = item.event.generation
        check_finished(generation)
        choice = _choice(item.choice, "", finish_reason(generation))
        logprobs = await self._logprobs(item.choice, generation)
        choice["logprobs"] = None if logprobs is None else logprobs.model_dump()
        more = {"ewe": ewe_result(self._run.generations).model_dump()} if self._run.is_finished else {}
        return self._chunk([choice], **more)

    async def _logprobs(self, choice: int, generation: Generation) -> CompletionLogprobs | None:
        wanted = self._body.logprobs
        if wanted is None:
            return None
        prompt_ids = self._run.sequences[choice // (self._body.n or 1)].prompt_ids
        tokenizer = self._service.llm.tokenizer
        return await self._service.in_thread(
            lambda: completion_logprobs(tokenizer, prompt_ids, generation, with_top=wanted > 0)
        )

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> str:
        empty = {"usage": None} if self._body.wants_usage else {}
        fixed = {"object": "text_completion", "system_fingerprint": FINGERPRINT}
        return record({**self._head, **fixed, "choices": choices, **empty, **more})


def _choice(index: int, text: str, reason: str | None = None) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": reason}
