"""/v1/tokenize and /v1/detokenize: tokens of texts in Cohere's form."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import Field

from ewe.server import operation
from ewe.server.http.error_forms import COHERE_DETOKENIZE, COHERE_TOKENIZE
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.schemas.cohere_schemas import ERRORS
from ewe.server.schemas.common import AnswerModel, FullText, RequestModel, Text
from ewe.server.schemas.operation_schemas import DetokenizeRequest, TokenizeRequest

router = APIRouter(tags=["Cohere"], route_class=RequestRoute, responses=ERRORS)


class CohereTokenizeRequest(RequestModel):
    """A text, whose tokens are told without those that the tokenizer adds."""

    model: Text | None = None
    text: FullText


class CohereTokens(AnswerModel):
    """Token ids, and the tokenizer's names for them."""

    tokens: list[int]
    token_strings: list[str]


class CohereDetokenizeRequest(RequestModel):
    """Token ids."""

    model: Text | None = None
    tokens: Annotated[list[int], Field(min_length=1)]


class CohereDetokenized(AnswerModel):
    """Their text."""

    text: str


@router.post(COHERE_TOKENIZE)
async def tokenize_for_cohere(body: CohereTokenizeRequest, request: Request) -> CohereTokens:
    """The tokens of a text."""
    asked = TokenizeRequest(model=body.model, prompt=body.text, add_special_tokens=False, return_token_strs=True)
    told = await operation.tokenize(asked, request)
    return CohereTokens(tokens=told.tokens, token_strings=told.token_strs or [])


@router.post(COHERE_DETOKENIZE)
async def detokenize_for_cohere(body: CohereDetokenizeRequest, request: Request) -> CohereDetokenized:
    """The text of tokens."""
    told = await operation.detokenize(DetokenizeRequest(model=body.model, tokens=body.tokens), request)
    return CohereDetokenized(text=told.prompt)
