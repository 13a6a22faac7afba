"""/v1/embeddings and /v1/rerank: the encoder and the reranker of the datastore's retrieval, for texts of requests."""

import base64
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np
from fastapi import APIRouter, Request, Response

from ewe.server.engine_client.served_models import ReadingModel, SentenceModels, counted, name_of
from ewe.server.engine_service import service_of
from ewe.server.http.error_responses import RefusedError
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.request_handling.thread_work import Cancellation, run_in_thread
from ewe.server.schemas import embed_rerank_schemas as schemas
from ewe.server.schemas.common import ERROR_RESPONSES, AnswerModel
from ewe.server.traffic.admission import check_texts
from ewe.server.traffic.pacing import Turn, turn_of

_Batch = TypeVar("_Batch")
_Read = TypeVar("_Read")

router = APIRouter(route_class=RequestRoute, responses=ERROR_RESPONSES)

_BATCH = 32  # texts per call of a model: one that has begun cannot be broken off
_COUNTED = 8  # texts whose tokens are counted at once: a token takes half a kilobyte meanwhile
_LEAST_BYTES, _BYTES_PER_TOKEN = 1 << 16, 16  # that a text may have: all of it is tokenised, also what is cut then
_MOST_PAIRED_BYTES = 4 << 20  # of all pairs: the query is read once for each document


@router.post("/v1/embeddings", tags=["OpenAI"], response_model=schemas.EmbeddingResponse)
async def create_embeddings(body: schemas.EmbeddingRequest, request: Request) -> Response:
    """Vectors of texts, as the datastore's encoder makes them."""
    return await embed(request, body, partial(_told, body))


async def embed(
    request: Request, body: schemas.EmbeddingRequest, tell: Callable[[np.ndarray, str, int], AnswerModel]
) -> Response:
    """What `tell` makes of the texts' vectors, float32 [texts, dimension], the encoder's name and the tokens read.

    Raises RefusedError.
    """
    service = service_of(request)
    served, queue = service.served, service.queues.sentence_models
    models = served.engine.sentence_models
    encoder = await run_in_thread(request, queue, lambda _: models.encoder())
    name = name_of(encoder, body.model, served.names)
    if body.dimensions not in (None, encoder.dimension):
        message = f"dimensions: {name} makes vectors of {encoder.dimension} numbers and no others"
        raise RefusedError(400, message, param="dimensions")

    def answer(cancellation: Cancellation) -> str:
        vectors, tokens = _encode(models, body, turn_of(request.scope), cancellation)
        return tell(vectors, name, tokens).model_dump_json()  # which for thousands of vectors takes long to write

    return Response(await run_in_thread(request, queue, answer), media_type="application/json")


def _told(body: schemas.EmbeddingRequest, vectors: np.ndarray, name: str, tokens: int) -> schemas.EmbeddingResponse:
    encoded = [written(vector, body.encoding_format or "float") for vector in vectors]
    return schemas.EmbeddingResponse(
        data=[schemas.Embedding(index=index, embedding=embedding) for index, embedding in enumerate(encoded)],
        model=name,
        usage=schemas.ReadUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def _encode(
    models: SentenceModels, body: schemas.EmbeddingRequest, turn: Turn, cancellation: Cancellation
) -> tuple[np.ndarray, int]:
    """float32 [texts, dimension], and the tokens that were read."""
    encoder = models.encoder()
    _check_each(encoder, body.field, [(text,) for text in body.texts])
    counts = _in_parts(turn, cancellation.batches(body.texts, _COUNTED), encoder.count_tokens)
    tokens = counted(encoder, body.field, list(chain.from_iterable(counts)), body.truncate_prompt_tokens == -1)
    encode = encoder.encode_queries if body.input_type == "query" else encoder.encode_passages
    return np.concatenate(_in_parts(turn, cancellation.batches(body.texts, _BATCH), encode)), tokens


def _in_parts(turn: Turn, batches: Iterator[_Batch], read: Callable[[_Batch], _Read]) -> list[_Read]:
    """What a model reads in each batch, which is a part of the request's work."""
    results = []
    for batch in turn.in_parts(batches):  # in a comprehension a failure would hold its part as long as itself
        results.append(read(batch))
    return results


def written(vector: np.ndarray, encoding: schemas.Encoding) -> list[float] | str:
    """A vector as JSON holds it."""
    if encoding == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(value) for value in vector]


@router.post("/rerank", tags=["vLLM"])
@router.post("/v1/rerank", tags=["vLLM"])
@router.post("/v2/rerank", tags=["vLLM"])
async def rerank(body: schemas.RerankRequest, request: Request) -> schemas.RerankResponse:
    """Documents by how well they answer a query."""
    service = service_of(request)
    served, queue = service.served, service.queues.sentence_models
    models = served.engine.sentence_models
    name = name_of(await run_in_thread(request, queue, lambda _: models.reranker()), body.model, served.names)
    scores, tokens = await run_in_thread(request, queue, partial(_score, models, body, turn_of(request.scope)))
    order = sorted(range(len(scores)), key=lambda index: -scores[index])[: body.top_n or None]
    documents = (
        {} if body.return_documents is False else {index: schemas.RankedText(text=body.texts[index]) for index in order}
    )
    return schemas.RerankResponse(
        id=f"rerank-{uuid.uuid4().hex}",
        model=name,
        results=[
            schemas.RankedDocument(index=index, relevance_score=scores[index], document=documents.get(index))
            for index in order
        ],
        usage=schemas.ReadUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def _score(
    models: SentenceModels, body: schemas.RerankRequest, turn: Turn, cancellation: Cancellation
) -> tuple[list[float], int]:
    """A score per document, and the tokens that were read."""
    reranker, pairs = models.reranker(), [(body.query, text) for text in body.texts]
    _check_each(reranker, "documents", pairs)
    check_texts((text for pair in pairs for text in pair), _MOST_PAIRED_BYTES, "query")
    counts = _in_parts(turn, cancellation.batches(pairs, _COUNTED), reranker.count_tokens)
    tokens = counted(reranker, "documents", list(chain.from_iterable(counts)), body.truncate_prompt_tokens == -1)
    scores = _in_parts(turn, cancellation.batches(pairs, _BATCH), reranker.score)
    return [float(score) for score in chain.from_iterable(scores)], tokens


def _check_each(model: ReadingModel, field: str, texts: Sequence[Sequence[str]]) -> None:
    """Raises RefusedError for a text, or a pair of them, of far more bytes than the model reads tokens."""
    most = max(_LEAST_BYTES, _BYTES_PER_TOKEN * (model.max_tokens or 0))
    for place, parts in enumerate(texts):
        check_texts(parts, most, f"{field}.{place}")
