"""/tokenize and /detokenize."""

from __future__ import annotations

from fastapi import APIRouter, Request

from ewe.llm import LLM
from ewe.server.ignored import RequestRoute
from ewe.server.schemas.common import ERROR_RESPONSES
from ewe.server.schemas.operation_schemas import (
    DetokenizeRequest,
    DetokenizeResponse,
    TokenizeRequest,
    TokenizeResponse,
)
from ewe.server.service import service_of

router = APIRouter(tags=["vLLM"], route_class=RequestRoute, responses=ERROR_RESPONSES)


@router.post("/tokenize")
async def tokenize(body: TokenizeRequest, request: Request) -> TokenizeResponse:
    """The tokens of a text or of a conversation."""
    service = service_of(request)
    service.check_model(body.model)
    llm = service.llm
    ids = await service.in_thread(lambda: _token_ids(llm, body))
    return TokenizeResponse(
        count=len(ids),
        max_model_len=service.max_model_len,
        tokens=ids,
        token_strs=llm.tokenizer.convert_ids_to_tokens(ids) if body.return_token_strs else None,
    )


@router.post("/detokenize")
async def detokenize(body: DetokenizeRequest, request: Request) -> DetokenizeResponse:
    """The text of tokens."""
    service = service_of(request)
    service.check_model(body.model)
    llm = service.llm
    return DetokenizeResponse(prompt=await service.in_thread(lambda: _text(llm, body.tokens)))


def _token_ids(llm: LLM, body: TokenizeRequest) -> list[int]:
    input_processor = llm.client.engine.input_processor
    if body.messages is not None:
        return input_processor.encode(
            llm.apply_chat_template([message.for_template for message in body.messages]),
            body.add_special_tokens is True,
        )
    return input_processor.encode(body.prompt or "", body.add_special_tokens is not False)


def _text(llm: LLM, tokens: list[int]) -> str:
    llm.client.engine.input_processor.check_ids("tokens", tokens)
    return str(llm.tokenizer.decode(tokens))
