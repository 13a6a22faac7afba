"""/v1/responses."""

import time
import uuid
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from ewe.conversation import question_of
from ewe.engine.request import Prompt
from ewe.llm import LLM
from ewe.server.answers import check_finished, citations, ewe_result, usage
from ewe.server.engine_service import Order, Service, service_of
from ewe.server.errors import RefusedError
from ewe.server.ignored import RequestRoute
from ewe.server.logprobs import chat_logprobs
from ewe.server.responses_events import ResponseEvents
from ewe.server.run import Run, RunEvent
from ewe.server.schemas import response_schemas as schemas
from ewe.server.schemas.common import ERROR_RESPONSES, EVENT_STREAM
from ewe.server.schemas.response_format import text_answer
from ewe.server.stream_parts import Part, StreamParts
from ewe.server.streaming import comment, respond
from ewe.types import Generation

router = APIRouter(tags=["OpenAI"], route_class=RequestRoute)


@router.post("/v1/responses", response_model=schemas.ResponseBody, responses={200: EVENT_STREAM, **ERROR_RESPONSES})
async def create_response(body: schemas.ResponsesRequest, request: Request) -> Response:
    """Answers an input; with `stream` as OpenAI's events, one delta for every sentence that is final, or drafts."""
    service = service_of(request)
    run = await service.begin(request, _order(body))
    return await respond(request, run, _Answer(service, run, body), body.stream)


def _order(body: schemas.ResponsesRequest) -> Order:
    messages = body.messages

    def prompts(llm: LLM) -> Sequence[Prompt]:
        return [llm.chat_prompt(messages)]

    return Order(
        wanted=body,
        prompts=prompts,
        max_tokens=body.max_output_tokens,
        length_field="max_output_tokens",
        logprobs=body.wants_logprobs,
        special_tokens=False,
        question=question_of(messages),
    )


class _Answer:
    def __init__(self, service: Service, run: Run, body: schemas.ResponsesRequest) -> None:
        self._service = service
        self._run = run
        self._body = body
        self._parts = StreamParts(body.ewe)
        self._item_id = f"msg_{uuid.uuid4().hex}"
        self._opening = self._open()
        self._events = ResponseEvents(self._opening, self._item_id)

    async def whole(self, generations: Sequence[Generation]) -> schemas.ResponseBody:
        """The response with its answer."""
        [generation] = generations
        stopped = generation.finish_reason == "stop"
        reason = "max_output_tokens" if generation.finish_reason == "length" else None
        text = schemas.OutputText(
            text=generation.text,
            annotations=[schemas.UrlCitation(**item.url_citation.model_dump()) for item in citations(generation)],
            logprobs=await self._logprobs(generation),
        )
        status = "completed" if stopped else "incomplete"
        return self._opening.model_copy(
            update={
                "status": status,
                "completed_at": int(time.time()) if stopped else None,
                "incomplete_details": None if stopped else schemas.IncompleteDetails(reason=reason),
                "output": [schemas.OutputMessage(id=self._item_id, status=status, content=[text])],
                "usage": _usage(generation),
                "ewe": ewe_result([generation]),
            }
        )

    def begin(self) -> str:
        """The records that open the response."""
        return self._events.begin()

    async def tell(self, item: RunEvent) -> str:
        """The records of an event; raises RefusedError for the end of an answer that came to nothing."""
        if item.event.kind == "finish":
            check_finished(item.event.generation, self._run.own_deadline)
            return self._events.finish(await self.whole([item.event.generation]))
        return "".join([self._record_of(part) for part in self._parts.of(item)])

    def _record_of(self, part: Part) -> str:
        if part.comment:
            return comment(part.comment)
        if part.event:
            return self._events.happening(part.event, dict(part.data or {}))
        return self._events.text(part.delta)

    def end(self) -> str:
        """Nothing: the finished response was the last record."""
        return ""

    def fail(self, error: RefusedError) -> str:
        """The record of a response that broke off."""
        failure = schemas.ResponseError(message=str(error))
        return self._events.fail(self._opening.model_copy(update={"status": "failed", "error": failure}))

    def _open(self) -> schemas.ResponseBody:
        """The response before its first word: what was asked, with the defaults of what was not."""
        body, params = self._body, self._run.sequences[0].request.params
        return schemas.ResponseBody(
            id=f"resp_{uuid.uuid4().hex}",
            created_at=int(time.time()),
            status="in_progress",
            instructions=body.instructions,
            max_output_tokens=body.max_output_tokens,
            metadata=body.metadata or {},
            model=self._service.check_model(body.model),
            output=[],
            parallel_tool_calls=body.parallel_tool_calls is not False,
            temperature=params.temperature,
            text=text_answer(body.text),
            tool_choice=body.tool_choice or "auto",
            tools=[],
            top_p=params.top_p,
        )

    async def _logprobs(self, generation: Generation) -> list[schemas.TokenLogprob]:
        if self._body.wants_logprobs is None:
            return []
        tokenizer, prompt_ids = self._service.llm.tokenizer, self._run.sequences[0].request.prompt_ids
        found = await self._service.in_thread(lambda: chat_logprobs(tokenizer, prompt_ids, generation))
        return [
            schemas.TokenLogprob(
                **_token(item), top_logprobs=[schemas.TopLogprob(**_token(top)) for top in item.top_logprobs]
            )
            for item in found.content
        ]


def _token(item: Any) -> dict[str, Any]:
    """A token as this endpoint tells it: a part of a character has no bytes, where chat has null."""
    return {"token": item.token, "logprob": item.logprob, "bytes": item.bytes or []}


def _usage(generation: Generation) -> schemas.ResponseUsage:
    counted = usage([generation])
    rejected = counted.completion_tokens_details.rejected_prediction_tokens
    return schemas.ResponseUsage(
        input_tokens=counted.prompt_tokens,
        output_tokens=counted.completion_tokens,
        output_tokens_details=schemas.OutputTokensDetails(rejected_prediction_tokens=rejected),
        total_tokens=counted.total_tokens,
    )
