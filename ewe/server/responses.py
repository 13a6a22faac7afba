"""/v1/responses."""

import time
import uuid
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import TypeAdapter

from ewe.engine.request import has_grammar
from ewe.server.answers import citations, usage
from ewe.server.bridge import Run
from ewe.server.engine_service import Service, service_of
from ewe.server.error_responses import RefusedError
from ewe.server.ignored import RequestRoute
from ewe.server.orders import Order
from ewe.server.responses_events import ResponseEvents
from ewe.server.schemas import response_schemas as schemas
from ewe.server.schemas.common import ERROR_RESPONSES, EVENT_STREAM
from ewe.server.schemas.response_format import TextAnswer
from ewe.server.streaming import StreamedAnswer, respond
from ewe.text.conversation import question_of, texts_of, topic_of
from ewe.types import Generation

router = APIRouter(tags=["OpenAI"], route_class=RequestRoute)
_TOKENS = TypeAdapter(list[schemas.TokenLogprob])


@router.post("/v1/responses", response_model=schemas.ResponseBody, responses={200: EVENT_STREAM, **ERROR_RESPONSES})
async def create_response(body: schemas.ResponsesRequest, request: Request) -> Response:
    """Answers an input; with `stream` as OpenAI's events, one delta for every sentence that is final, or drafts."""
    service = service_of(request)
    run = await service.begin(request, _order(body))
    return await respond(request, run, _Answer(service, run, body), body.stream)


def _order(body: schemas.ResponsesRequest) -> Order:
    messages = body.messages
    return Order(
        body=body,
        prompts=lambda chats: [
            chats.chat_prompt(messages, thinking=False if has_grammar(body.json_schema, None) else None)
        ],
        texts=("input", texts_of(messages)),
        max_tokens=body.max_output_tokens,
        length_field="max_output_tokens",
        logprobs=body.wants_logprobs,
        special_tokens=False,
        question=question_of(messages),
        topic=topic_of(messages),
    )


class _Answer(StreamedAnswer):
    def __init__(self, service: Service, run: Run, body: schemas.ResponsesRequest) -> None:
        super().__init__(service, run, body)
        self._body = body
        self._item_id = f"msg_{uuid.uuid4().hex}"
        self._opening = self._open()
        self._events = ResponseEvents(self._opening, self._item_id)

    async def whole(self, generations: Sequence[Generation]) -> schemas.ResponseBody:
        """The response with its answer."""
        [generation] = generations
        stopped = generation.finish_reason == "stop"
        reason = "max_output_tokens" if generation.finish_reason == "length" else None
        logprobs: list[schemas.TokenLogprob] = []
        if self._body.wants_logprobs is not None:
            logprobs = await self._with_pieces(_TOKENS.validate_python, generation)
        cited = [item.url_citation for item in citations(generation)]
        text = schemas.OutputText.model_validate({"text": generation.text, "annotations": cited, "logprobs": logprobs})
        status = "completed" if stopped else "incomplete"
        return self._opening.model_copy(
            update={
                "status": status,
                "completed_at": int(time.time()) if stopped else None,
                "incomplete_details": None if stopped else schemas.IncompleteDetails(reason=reason),
                "output": [schemas.OutputMessage(id=self._item_id, status=status, content=[text])],
                "usage": _usage(generation),
                "ewe": await self._result([generation]),
            }
        )

    def begin(self) -> str:
        """The records that open the response."""
        return self._events.begin()

    def _text(self, choice: int, text: str) -> str:
        return self._events.text(text)

    def _event(self, choice: int, kind: str, data: Any) -> str:
        return self._events.happening(kind, data)

    async def _finish(self, choice: int, generation: Generation) -> str:
        return self._events.finish(await self.whole([generation]))

    def fail(self, error: RefusedError) -> str:
        """The record of a response that broke off."""
        failure = schemas.ResponseError(message=str(error))
        return self._events.fail(self._opening.model_copy(update={"status": "failed", "error": failure}))

    def _open(self) -> schemas.ResponseBody:
        """The response before its first word: what was asked, with the defaults of what was not."""
        body, params = self._body, self._run.opened[0].request.params
        form = body.text.format if body.text else None
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
            text=TextAnswer(format=form.model_dump(exclude_none=True)) if form else TextAnswer(),
            tool_choice=body.tool_choice or "auto",
            tools=[],
            top_p=params.top_p,
        )


def _usage(generation: Generation) -> schemas.ResponseUsage:
    counted = usage([generation])
    rejected = counted.completion_tokens_details.rejected_prediction_tokens
    return schemas.ResponseUsage(
        input_tokens=counted.prompt_tokens,
        input_tokens_details=schemas.InputTokensDetails(cached_tokens=counted.prompt_tokens_details.cached_tokens),
        output_tokens=counted.completion_tokens,
        output_tokens_details=schemas.OutputTokensDetails(
            reasoning_tokens=counted.completion_tokens_details.reasoning_tokens, rejected_prediction_tokens=rejected
        ),
        total_tokens=counted.total_tokens,
    )
