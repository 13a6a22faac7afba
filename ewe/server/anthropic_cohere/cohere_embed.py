"""/v2/embed: embeddings in the form of Cohere's Embed API."""

import uuid
from functools import partial

import numpy as np
from fastapi import APIRouter, Request, Response

from ewe.server.http.error_forms import COHERE_EMBED
from ewe.server.openai.embed_rerank import embed, written
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.schemas import cohere_embed_schemas as schemas
from ewe.server.schemas.cohere_schemas import ERRORS

router = APIRouter(tags=["Cohere"], route_class=RequestRoute)


@router.post(COHERE_EMBED, response_model=schemas.EmbedResponse, responses=ERRORS)
async def create_cohere_embeddings(body: schemas.EmbedRequest, request: Request) -> Response:
    """Vectors of texts, as the datastore's encoder makes them."""
    return await embed(request, body.in_openai_form, partial(_told, body))


def _told(body: schemas.EmbedRequest, vectors: np.ndarray, name: str, tokens: int) -> schemas.EmbedResponse:
    embeddings = {kind: [written(vector, kind) for vector in vectors] for kind in body.embedding_types or ["float"]}
    counts = schemas.ReadTokens(input_tokens=tokens)
    return schemas.EmbedResponse(
        id=str(uuid.uuid4()),
        embeddings=embeddings,
        texts=body.all_texts,
        meta=schemas.EmbedMeta(billed_units=counts, tokens=counts),
    )
