"""/v1/chat/completions.

Owns: the route, and the form of a conversation's answer and chunks. Knows the service and the wire's shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from ewe.conversation import question_of
from ewe.llm import LLM
from ewe.server.answers import citations, ewe_result, finish_reason, usage
from ewe.server.chunks import ChunkedAnswer
from ewe.server.ignored import RequestRoute
from ewe.server.logprobs import chat_logprobs
from ewe.server.run import Run
from ewe.server.service import Order, Service, service_of
from ewe.server.streaming import RunStream, answers_unless_gone
from ewe.server.version import FINGERPRINT
from ewe.server.wire import ERROR_RESPONSES, EVENT_STREAM
from ewe.server.wire_chat import AnswerMessage, ChatChoice, ChatLogprobs, ChatRequest, ChatResponse, Message
from ewe.types import Generation

if TYPE_CHECKING:
    from ewe.engine.intake import Prompt

router = APIRouter(tags=["OpenAI"], route_class=RequestRoute)


@router.post("/v1/chat/completions", response_model=ChatResponse, responses={200: EVENT_STREAM, **ERROR_RESPONSES})
async def create_chat_completion(body: ChatRequest, request: Request) -> Response:
    """Goes on with a conversation; with `stream` text is sent as it becomes final, or as drafts with revisions."""
    service = service_of(request)
    run = await service.begin(request, _order(body))
    answer = _ChatAnswer(service, run, body)
    if body.stream:
        return RunStream(run, answer, service.settings.ping)
    generations = await answers_unless_gone(request, run)
    return JSONResponse((await answer.whole(generations)).model_dump())


def conversation(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages as chat templates take them."""
    # OpenAI treats the developer's messages as it treated the system's; chat templates know the latter only.
    return [
        {"role": "system" if message.role == "developer" else message.role, "content": message.text}
        for message in messages
    ]


def _order(body: ChatRequest) -> Order:
    messages = conversation(body.messages)

    def prompts(llm: LLM) -> Sequence[Prompt]:
        return [llm.apply_chat_template(messages)]

    return Order(
        wanted=body,
        prompts=prompts,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        length_field="max_completion_tokens" if body.max_completion_tokens else "max_tokens",
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        special_tokens=False,
        question=question_of(messages),
    )


class _ChatAnswer(ChunkedAnswer):
    """The answer to one request: as a whole or as chunks."""

    def __init__(self, service: Service, run: Run, body: ChatRequest) -> None:
        super().__init__(service, run, body, "chatcmpl", "chat.completion.chunk")
        self._wants_logprobs = body.logprobs

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

    def begin(self) -> str:
        """A chunk for every choice that says who speaks."""
        delta = {"role": "assistant", "content": ""}
        return "".join(self._chunk([_choice(index, delta)]) for index in range(self._run.num_choices))

    def _text_choice(self, index: int, text: str) -> dict[str, Any]:
        return _choice(index, {"content": text})

    async def _last_choice(self, index: int, generation: Generation) -> dict[str, Any]:
        """The end of a choice, with its citations."""
        cited = [annotation.model_dump() for annotation in citations(generation)]
        logprobs = await self._logprobs(generation)
        choice = _choice(index, {"annotations": cited} if cited else {}, finish_reason(generation))
        choice["logprobs"] = None if logprobs is None else logprobs.model_dump()
        return choice

    async def _logprobs(self, generation: Generation) -> ChatLogprobs | None:
        if not self._wants_logprobs:
            return None
        tokenizer, prompt_ids = self._service.llm.tokenizer, self._run.sequences[0].prompt_ids
        return await self._service.in_thread(lambda: chat_logprobs(tokenizer, prompt_ids, generation))


def _choice(index: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
