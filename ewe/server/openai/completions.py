"""/v1/completions."""

from typing import Any

from fastapi import APIRouter, Request, Response

from ewe.server.answering.answers import finish_reason
from ewe.server.answering.logprobs import completion_logprobs
from ewe.server.answering.streaming import respond
from ewe.server.engine_client.bridge import Run
from ewe.server.engine_service import Service, service_of
from ewe.server.openai.chunks import ChunkedAnswer
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.schemas import completion_schemas as schemas
from ewe.server.schemas.common import ERROR_RESPONSES, EVENT_STREAM
from ewe.server.traffic.orders import Order
from ewe.types import Generation

router = APIRouter(tags=["OpenAI"], route_class=RequestRoute)


@router.post(
    "/v1/completions", response_model=schemas.CompletionResponse, responses={200: EVENT_STREAM, **ERROR_RESPONSES}
)
async def create_completion(body: schemas.CompletionRequest, request: Request) -> Response:
    """Goes on with one text or several; citations and verdicts are in `ewe`."""
    service = service_of(request)
    order = Order(
        body=body,
        prompts=lambda _: body.prompts,
        texts=("prompt", [prompt for prompt in body.prompts if isinstance(prompt, str)]),
        count=len(body.prompts),
        max_tokens=1 if body.only_prompts else body.max_tokens,
        default_max_tokens=schemas.DEFAULT_MAX_TOKENS,
        logprobs=body.logprobs,
        prompt_logprobs=body.logprobs if body.echo else None,
        special_tokens=body.add_special_tokens is not False,
        reasons=False,
        only_prompts=body.only_prompts,
    )
    run = await service.begin(request, order)
    return await respond(request, run, _CompletionAnswer(service, run, body), body.stream)


class _CompletionAnswer(ChunkedAnswer):
    form, id_prefix, chunk_object = schemas.CompletionResponse, "cmpl", "text_completion"

    def __init__(self, service: Service, run: Run, body: schemas.CompletionRequest) -> None:
        super().__init__(service, run, body)
        self._top_logprobs = body.logprobs
        self._per_prompt = body.n or 1
        prompts = [opened.request.prompt if body.echo else "" for opened in run.opened]
        self._echoes = [prompt for prompt in prompts for _ in range(self._per_prompt)]
        self._offsets = [len(echo) for echo in self._echoes]

    async def _whole_choice(self, index: int, generation: Generation) -> schemas.CompletionChoice:
        return schemas.CompletionChoice(
            index=index,
            text=self._echoes[index] + generation.text,
            logprobs=await self._logprobs(index, generation),
            finish_reason=finish_reason(generation),
        )

    def begin(self) -> str:
        """A chunk for every prompt that is to be repeated."""
        return "".join(self._text(index, echo) for index, echo in enumerate(self._echoes) if echo)

    def _text(self, choice: int, text: str) -> str:
        return self._chunk([_choice(choice, text)])

    async def _last_choice(self, index: int, generation: Generation) -> dict[str, Any]:
        return _choice(index, "", finish_reason(generation), await self._logprobs(index, generation))

    async def _logprobs(self, choice: int, generation: Generation) -> schemas.CompletionLogprobs | None:
        count, with_prompt = self._top_logprobs, bool(self._echoes[choice])
        if count is None:
            return None
        return await self._with_pieces(
            lambda pieces: completion_logprobs(pieces, count > 0, with_prompt),
            generation,
            choice // self._per_prompt,
            with_prompt,
        )


def _choice(
    index: int, text: str, reason: str | None = None, logprobs: schemas.CompletionLogprobs | None = None
) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}
