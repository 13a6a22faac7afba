"""/v1/embeddings: vectors of the encoder that the datastore is searched with."""

from __future__ import annotations

import base64

import numpy as np
from fastapi import APIRouter, Request

from ewe.server.errors import RefusedError
from ewe.server.ignored import RequestRoute
from ewe.server.offload import Caller, run_in_thread
from ewe.server.schemas.common import ERROR_RESPONSES
from ewe.server.schemas.embedding_schemas import Embedding, EmbeddingRequest, EmbeddingResponse, ReadUsage
from ewe.server.sentence_models import SentenceModels, counted, name_of
from ewe.server.service import service_of

router = APIRouter(tags=["OpenAI"], route_class=RequestRoute)

_BATCH = 32  # texts per call of the encoder: one that has begun cannot be broken off


@router.post("/v1/embeddings", responses=ERROR_RESPONSES)
async def create_embeddings(body: EmbeddingRequest, request: Request) -> EmbeddingResponse:
    """Vectors of texts, as the datastore's encoder makes them."""
    service = service_of(request)
    models, served = service.sentence_models, service.model_names
    encoder = await run_in_thread(request, lambda _: models.encoder())
    name = name_of(encoder, body.model, served)
    if body.dimensions not in (None, encoder.dimension):
        message = f"dimensions: {name} makes vectors of {encoder.dimension} numbers and no others"
        raise RefusedError(400, message, param="dimensions")
    vectors, tokens = await run_in_thread(request, lambda caller: _encode(models, body, caller))
    return EmbeddingResponse(
        data=[Embedding(index=index, embedding=_written(vector, body)) for index, vector in enumerate(vectors)],
        model=name,
        usage=ReadUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def _encode(models: SentenceModels, body: EmbeddingRequest, caller: Caller) -> tuple[np.ndarray, int]:
    """float32 [texts, dimension], and the tokens that were read."""
    encoder = models.encoder()
    tokens = counted(encoder, "input", encoder.count_tokens(body.texts), body.truncate_prompt_tokens == -1)
    encode = encoder.encode_queries if body.input_type == "query" else encoder.encode_passages
    return np.concatenate([encode(batch) for batch in caller.batches(body.texts, _BATCH)]), tokens


def _written(vector: np.ndarray, body: EmbeddingRequest) -> list[float] | str:
    if body.encoding_format == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(value) for value in vector]
