"""/v1/chat/completions."""

from collections.abc import Sequence
from typing import Any, Literal

from fastapi import APIRouter, Request, Response

from ewe.engine.request import has_grammar
from ewe.server.answers import citations, finish_reason
from ewe.server.bridge import Run
from ewe.server.chunks import ChunkedAnswer
from ewe.server.engine_service import Service, service_of
from ewe.server.error_responses import RefusedError
from ewe.server.ignored import RequestRoute
from ewe.server.orders import Order
from ewe.server.schemas import chat_schemas as schemas
from ewe.server.schemas.common import ERROR_RESPONSES, EVENT_STREAM
from ewe.server.streaming import respond
from ewe.text.conversation import question_of, texts_of, topic_of
from ewe.text.json_schema import check_schema
from ewe.text.tool_calls.use import Piece, ToolUse, with_id
from ewe.types import Generation, ToolCall

router = APIRouter(tags=["OpenAI"], route_class=RequestRoute)


@router.post(
    "/v1/chat/completions", response_model=schemas.ChatResponse, responses={200: EVENT_STREAM, **ERROR_RESPONSES}
)
async def create_chat_completion(body: schemas.ChatRequest, request: Request) -> Response:
    """Goes on with a conversation; with `stream` text is sent as it becomes final, or as drafts with revisions."""
    service = service_of(request)
    tools = _tool_use(service, body)
    run = await service.begin(request, chat_order(body, tools))
    return await respond(request, run, _ChatAnswer(service, run, body, tools), body.stream)


def _tool_use(service: Service, body: schemas.ChatRequest) -> ToolUse | None:
    template = service.engine.prompts.chat_template
    tools = template.tool_use(body.tool_request, service.settings.tool_parser, body.json_schema)
    if tools is not None and body.json_schema is not None:
        check_schema(body.json_schema, f"{body.format_field}: ")  # the engine gets one grammar of both, and names tools
    if tools is not None and body.ewe.stream == "draft":
        # What looks like the beginning of a call may still become content, and the other way round.
        raise RefusedError(400, 'ewe.stream: "draft" beside tools is not supported yet', param="ewe.stream")
    return tools


def chat_order(body: schemas.ChatRequest, tools: ToolUse | None = None) -> Order:
    """What a conversation asks of the engine."""
    messages = [message.for_template for message in body.messages]
    thinking = False if has_grammar(body.json_schema, tools) else schemas.thinking_of(body.chat_template_kwargs)
    return Order(
        body=body,
        prompts=lambda chats: [chats.chat_prompt(messages, tools, thinking)],
        texts=("messages", texts_of(messages)),
        max_tokens=body.max_completion_tokens or body.max_tokens,
        length_field="max_completion_tokens" if body.max_completion_tokens else "max_tokens",
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        special_tokens=False,
        question=question_of(messages),
        topic=topic_of(messages),
        tools=tools,
    )


class _ChatAnswer(ChunkedAnswer):
    form, id_prefix, chunk_object = schemas.ChatResponse, "chatcmpl", "chat.completion.chunk"

    def __init__(self, service: Service, run: Run, body: schemas.ChatRequest, tools: ToolUse | None) -> None:
        super().__init__(service, run, body)
        self._wants_logprobs = body.logprobs
        self._tools = tools
        self._readers = [tools.reader() for _ in range(run.num_choices)] if tools is not None else []

    def begin(self) -> str:
        """A chunk for every choice that says who speaks."""
        delta = {"role": "assistant", "content": ""}
        return "".join(self._chunk([_choice(index, delta)]) for index in range(self._run.num_choices))

    async def _whole_choice(self, index: int, generation: Generation) -> schemas.ChatChoice:
        logprobs = await self._logprobs(generation)
        answer = generation if self._tools is None else self._tools.read(generation)
        calls = [_answer_call(call) for call in answer.tool_calls]
        return schemas.ChatChoice(
            index=index,
            message=schemas.AnswerMessage(
                content=answer.text if answer.text or not calls else None,
                reasoning_content=answer.reasoning or None,
                annotations=citations(generation),
                tool_calls=calls or None,
            ),
            logprobs=logprobs,
            finish_reason=_reason(generation, len(calls)),
        )

    def _text(self, choice: int, text: str) -> str:
        """The chunks of text: with tools it may be content, calls, both or, for now, nothing."""
        if not self._readers:
            return self._chunks(choice, [text])
        num_calls = self._readers[choice].num_calls
        return self._chunks(choice, self._readers[choice].feed(text), num_calls)

    def _reasoning(self, choice: int, text: str) -> str:
        return self._chunk([_choice(choice, {"reasoning_content": text})])

    async def _finish(self, choice: int, generation: Generation) -> str:
        rest = ""
        if self._readers:
            num_calls = self._readers[choice].num_calls
            rest = self._chunks(choice, self._readers[choice].finish(), num_calls)
        return rest + await super()._finish(choice, generation)

    def _chunks(self, choice: int, pieces: Sequence[Piece], num_calls: int = 0) -> str:
        """The chunks of content and calls; num_calls: how many calls were sent before."""
        deltas: list[dict[str, Any]] = []
        for piece in pieces:
            if isinstance(piece, str):
                deltas.append({"content": piece})
                continue
            call = _answer_call(with_id(piece)).model_dump()
            first = {**call, "index": num_calls, "function": {"name": piece.name, "arguments": ""}}
            rest = {"index": num_calls, "function": {"arguments": piece.arguments}}
            deltas += [{"tool_calls": [first]}, {"tool_calls": [rest]}]
            num_calls += 1
        return "".join(self._chunk([_choice(choice, delta)]) for delta in deltas)

    async def _last_choice(self, index: int, generation: Generation) -> dict[str, Any]:
        cited = citations(generation)
        num_calls = self._readers[index].num_calls if self._readers else 0
        delta = {"annotations": cited} if cited else {}
        return _choice(index, delta, _reason(generation, num_calls), await self._logprobs(generation))

    async def _logprobs(self, generation: Generation) -> schemas.ChatLogprobs | None:
        if not self._wants_logprobs:
            return None
        return await self._with_pieces(
            lambda pieces: schemas.ChatLogprobs.model_validate({"content": pieces}), generation
        )


def _reason(generation: Generation, num_calls: int) -> Literal["stop", "length", "tool_calls"]:
    reason = finish_reason(generation)
    return "tool_calls" if num_calls and reason == "stop" else reason


def _answer_call(call: ToolCall) -> schemas.AnswerToolCall:
    return schemas.AnswerToolCall(id=call.id, function=schemas.AnswerFunction(name=call.name, arguments=call.arguments))


def _choice(
    index: int, delta: dict[str, Any], reason: str | None = None, logprobs: schemas.ChatLogprobs | None = None
) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
