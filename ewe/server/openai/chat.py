"""/v1/chat/completions."""

from dataclasses import replace
from typing import Any, Literal

from fastapi import APIRouter, Request, Response

from ewe.server.answering.answers import citations, finish_reason
from ewe.server.answering.streaming import respond
from ewe.server.engine_client.bridge import Run
from ewe.server.engine_service import Service, service_of
from ewe.server.openai.chunks import ChunkedAnswer
from ewe.server.openai.conversations import conversation_order
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.schemas import chat_answers as answers
from ewe.server.schemas import chat_schemas as schemas
from ewe.server.schemas.common import ERROR_RESPONSES, EVENT_STREAM
from ewe.server.traffic.orders import Order
from ewe.text.tool_calls.use import ToolUse
from ewe.types import Generation, ToolCall

router = APIRouter(tags=["OpenAI"], route_class=RequestRoute)


@router.post(
    "/v1/chat/completions", response_model=answers.ChatResponse, responses={200: EVENT_STREAM, **ERROR_RESPONSES}
)
async def create_chat_completion(body: schemas.ChatRequest, request: Request) -> Response:
    """Goes on with a conversation; with `stream` text is sent as it becomes final, or as drafts with revisions."""
    service = service_of(request)
    order = chat_order(service, body)
    run = await service.begin(request, order)
    return await respond(request, run, _ChatAnswer(service, run, body, order.tools), body.stream)


def chat_order(service: Service, body: schemas.ChatRequest) -> Order:
    """What a conversation asks of the engine; raises RefusedError, InvalidRequestError."""
    return conversation_order(
        service,
        body,
        "messages",
        [message.for_template for message in body.messages],
        body.tool_request,
        body.thinks,
        bool(body.continue_final_message),
        max_tokens=body.max_completion_tokens or body.max_tokens,
        length_field="max_completion_tokens" if body.max_completion_tokens else "max_tokens",
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
    )


class _ChatAnswer(ChunkedAnswer):
    form, id_prefix, chunk_object = answers.ChatResponse, "chatcmpl", "chat.completion.chunk"

    def __init__(self, service: Service, run: Run, body: schemas.ChatRequest, tools: ToolUse | None) -> None:
        super().__init__(service, run, body, tools)
        self._wants_logprobs = body.logprobs

    def begin(self) -> str:
        """A chunk for every choice that says who speaks."""
        delta = {"role": "assistant", "content": "", "refusal": None}
        return "".join(self._chunk([_choice(index, delta)]) for index in range(self._run.num_choices))

    async def _whole_choice(self, index: int, generation: Generation) -> answers.ChatChoice:
        logprobs = await self._logprobs(generation)
        answer = self._answer(index, generation)
        calls = [answer_call(call) for call in answer.tool_calls]
        return answers.ChatChoice(
            index=index,
            message=answers.AnswerMessage(
                content=answer.text if answer.text or not calls else None,
                reasoning_content=answer.reasoning or None,
                annotations=citations(generation),
                tool_calls=calls or None,
            ),
            logprobs=logprobs,
            finish_reason=_reason(generation, len(calls)),
        )

    def _text(self, choice: int, text: str) -> str:
        return self._chunk([_choice(choice, {"content": text})])

    def _reasoning(self, choice: int, text: str) -> str:
        return self._chunk([_choice(choice, {"reasoning_content": text})])

    def _call(self, choice: int, place: int, call: ToolCall) -> str:
        """Two chunks: its name, then its arguments."""
        parts = ({**part, "index": place} for part in call_parts(call))
        return "".join(self._chunk([_choice(choice, {"tool_calls": [part]})]) for part in parts)

    async def _last_choice(self, index: int, generation: Generation) -> dict[str, Any]:
        cited = citations(generation)
        delta = {"annotations": cited} if cited else {}
        return _choice(index, delta, _reason(generation, len(self._calls[index])), await self._logprobs(generation))

    async def _logprobs(self, generation: Generation) -> answers.ChatLogprobs | None:
        if not self._wants_logprobs:
            return None
        return await self._with_pieces(
            lambda pieces: answers.ChatLogprobs.model_validate({"content": pieces}), generation
        )


def _reason(generation: Generation, num_calls: int) -> Literal["stop", "length", "tool_calls"]:
    reason = finish_reason(generation)
    return "tool_calls" if num_calls and reason == "stop" else reason


def answer_call(call: ToolCall) -> answers.AnswerToolCall:
    """A call as answers have it."""
    return answers.AnswerToolCall(id=call.id, function=answers.AnswerFunction(name=call.name, arguments=call.arguments))


def call_parts(call: ToolCall) -> tuple[dict[str, Any], dict[str, Any]]:
    """A call as streams have it: its name, then its arguments."""
    begun = answer_call(replace(call, arguments="")).model_dump()
    return begun, {"function": {"arguments": call.arguments}}


def _choice(
    index: int, delta: dict[str, Any], reason: str | None = None, logprobs: answers.ChatLogprobs | None = None
) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
