"""/v1/responses."""

import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import TypeAdapter

from ewe.errors import EWEError
from ewe.server.answering.answers import citations, usage
from ewe.server.answering.streaming import StreamedAnswer, respond
from ewe.server.answering.token_counts import count_tokens
from ewe.server.engine_client.bridge import Run
from ewe.server.engine_service import Service, key_of, service_of
from ewe.server.http.error_responses import RefusedError, refusal_of
from ewe.server.openai.conversations import conversation_order
from ewe.server.openai.responses_events import ResponseEvents
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.response_store import StoredResponse
from ewe.server.schemas import response_answers as answers
from ewe.server.schemas import response_schemas as schemas
from ewe.server.schemas.common import ERROR_RESPONSES, EVENT_STREAM
from ewe.server.schemas.response_format import TextAnswer
from ewe.server.schemas.response_items import InputItem
from ewe.server.traffic.fair_queue import LARGE, tenant_of
from ewe.server.traffic.orders import Order
from ewe.text.tool_calls.use import ToolUse
from ewe.types import Generation, ToolCall

router = APIRouter(tags=["OpenAI"], route_class=RequestRoute)
_TOKENS = TypeAdapter(list[answers.TokenLogprob])


@router.post("/v1/responses", response_model=answers.ResponseBody, responses={200: EVENT_STREAM, **ERROR_RESPONSES})
async def create_response(body: schemas.ResponsesRequest, request: Request) -> Response:
    """Answers an input; with `stream` as OpenAI's events, one delta for every sentence that is final, or drafts."""
    service = service_of(request)
    before = await _before(request, body)
    order = _order(service, body, before)
    try:
        run = await service.begin(request, order)
    except EWEError as error:
        refused = refusal_of(error)
        if body.truncation != "auto" or refused.code != "context_length_exceeded":
            raise
        message = f"truncation: nothing is left out of an input here: {refused}"
        raise RefusedError(refused.status, message, param="truncation", code=refused.code) from error
    # Without being asked, those of batches are not stored: they would push out what somebody goes on with.
    wants_store = not request.scope["state"].get("in_batch") if body.store is None else body.store
    store = partial(service.responses.put, key_of(request)) if wants_store and service.responses.is_on else None
    return await respond(request, run, _Answer(service, run, body, order.tools, before, store), body.stream)


@router.post("/v1/responses/input_tokens", responses=ERROR_RESPONSES)
async def count_input_tokens(body: schemas.ResponsesRequest, request: Request) -> answers.InputTokens:
    """How many tokens an input has; nothing is written."""
    order = _order(service_of(request), body, await _before(request, body))
    return answers.InputTokens(input_tokens=await count_tokens(request, order))


async def _before(request: Request, body: schemas.ResponsesRequest) -> list[InputItem]:
    """The conversation that a request goes on with; raises RefusedError."""
    if body.previous_response_id is None:
        return []
    service, field = service_of(request), "previous_response_id"
    try:
        stored = service.responses.get(key_of(request), body.previous_response_id)
        read = partial(stored.conversation, service.most_body_bytes(request.scope["path"]))
        small = len(stored.said) < LARGE
        return read() if small else await service.queues.prompts.submit(tenant_of(request.scope), read)
    except RefusedError as error:
        codes = {404: "previous_response_not_found"}
        code = codes.get(error.status, error.code)
        raise RefusedError(400, f"{field}: {error}", param=field, code=code) from error


def _order(service: Service, body: schemas.ResponsesRequest, before: Sequence[InputItem]) -> Order:
    """What a request asks of the engine; raises RefusedError, InvalidRequestError."""
    return conversation_order(
        service,
        body,
        "input",
        body.messages(before),
        body.tool_request,
        body.thinks,
        max_tokens=body.max_output_tokens,
        length_field="max_output_tokens",
        logprobs=body.wants_logprobs,
    )


class _Answer(StreamedAnswer):
    """before: what the request goes on with. store: takes the finished response; None for one that is not stored."""

    def __init__(
        self,
        service: Service,
        run: Run,
        body: schemas.ResponsesRequest,
        tools: ToolUse | None,
        before: Sequence[InputItem],
        store: Callable[[StoredResponse], None] | None,
    ) -> None:
        super().__init__(service, run, body, tools)
        self._body, self._before, self._store = body, before, store
        self._message_id, self._reasoning_id = f"msg_{uuid.uuid4().hex}", f"rs_{uuid.uuid4().hex}"
        self._opening = self._open()
        self._events = ResponseEvents(self._opening, self._message_id, self._reasoning_id)

    async def whole(self, generations: Sequence[Generation]) -> answers.ResponseBody:
        """The response with its answer; it is stored if it is to be."""
        [generation] = generations
        stopped = generation.finish_reason == "stop"
        reason = "max_output_tokens" if generation.finish_reason == "length" else None
        body = self._opening.model_copy(
            update={
                "status": "completed" if stopped else "incomplete",
                "completed_at": int(time.time()) if stopped else None,
                "incomplete_details": None if stopped else answers.IncompleteDetails(reason=reason),
                "output": await self._output(generation),
                "usage": _usage(generation),
                "ewe": await self._result([generation]),
            }
        )
        if self._store is not None:
            self._store(StoredResponse.of(body, [*self._before, *self._body.items]))
        return body

    async def _output(self, generation: Generation) -> list[answers.OutputItem]:
        """What was reasoned, what is said, and calls, each if there is any; a message if there is nothing at all."""
        answer, items = self._answer(0, generation), list[answers.OutputItem]()
        status: answers.ItemStatus = "completed" if answer.finish_reason == "stop" else "incomplete"
        if answer.reasoning:
            thought = [answers.ReasoningText(text=answer.reasoning)]
            reasoned: answers.ItemStatus = "completed" if answer.text or answer.tool_calls else status
            items.append(answers.OutputReasoning(id=self._reasoning_id, status=reasoned, content=thought))
        if answer.text or not (items or answer.tool_calls):
            part = await self._text_part(answer.text, generation)
            items.append(answers.OutputMessage(id=self._message_id, status=status, content=[part]))
        for call in answer.tool_calls:
            told = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
            items.append(answers.OutputCall(id=f"fc_{call.id}", status="completed", **told))
        return items

    async def _text_part(self, text: str, generation: Generation) -> answers.OutputText:
        logprobs: list[answers.TokenLogprob] = []
        if self._body.wants_logprobs is not None:
            logprobs = await self._with_pieces(_TOKENS.validate_python, generation)
        cited = [item.url_citation for item in citations(generation)]
        return answers.OutputText.model_validate({"text": text, "annotations": cited, "logprobs": logprobs})

    def begin(self) -> str:
        """The records that open the response."""
        return self._events.begin()

    def _text(self, choice: int, text: str) -> str:
        return self._events.text(text)

    def _reasoning(self, choice: int, text: str) -> str:
        return self._events.reasoning(text)

    def _call(self, choice: int, place: int, call: ToolCall) -> str:
        return ""  # in the end, behind the message

    def _event(self, choice: int, kind: str, data: Any) -> str:
        return self._events.happening(kind, data)

    async def _finish(self, choice: int, generation: Generation) -> str:
        return self._events.finish(await self.whole([generation]))

    def fail(self, error: RefusedError) -> str:
        """The record of a response that broke off."""
        failure = answers.ResponseError(message=str(error))
        return self._events.fail(self._opening.model_copy(update={"status": "failed", "error": failure}))

    def _open(self) -> answers.ResponseBody:
        """The response before its first word: what was asked, with the defaults of what was not."""
        body, params = self._body, self._run.opened[0].request.params
        form, choice = body.text.format if body.text else None, body.tool_choice
        return answers.ResponseBody(
            id=f"resp_{uuid.uuid4().hex}",
            created_at=int(time.time()),
            status="in_progress",
            instructions=body.instructions,
            max_output_tokens=body.max_output_tokens,
            metadata=body.metadata or {},
            model=self._service.check_model(body.model),
            output=[],
            parallel_tool_calls=body.parallel_tool_calls is not False,
            previous_response_id=body.previous_response_id,
            reasoning={"effort": body.reasoning.effort if body.reasoning else None, "summary": None},
            store=self._store is not None,
            temperature=params.temperature,
            text=TextAnswer(format=form.model_dump(exclude_none=True)) if form else TextAnswer(),
            tool_choice=choice.model_dump() if isinstance(choice, schemas.NamedFunction) else choice or "auto",
            tools=[{**tool.model_dump(), "strict": bool(tool.strict)} for tool in body.tools or ()],
            top_p=params.top_p,
            truncation=body.truncation or "disabled",
        )


def _usage(generation: Generation) -> answers.ResponseUsage:
    counted = usage([generation])
    rejected = counted.completion_tokens_details.rejected_prediction_tokens
    return answers.ResponseUsage(
        input_tokens=counted.prompt_tokens,
        input_tokens_details=answers.InputTokensDetails(cached_tokens=counted.prompt_tokens_details.cached_tokens),
        output_tokens=counted.completion_tokens,
        output_tokens_details=answers.OutputTokensDetails(
            reasoning_tokens=counted.completion_tokens_details.reasoning_tokens, rejected_prediction_tokens=rejected
        ),
        total_tokens=counted.total_tokens,
    )
