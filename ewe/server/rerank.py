"""/v1/rerank: the reranker of the datastore's retrieval, for documents of the request."""

from __future__ import annotations

import uuid

from fastapi import APIRouter, Request

from ewe.server.ignored import RequestRoute
from ewe.server.offload import Caller, run_in_thread
from ewe.server.schemas.common import ERROR_RESPONSES
from ewe.server.schemas.embedding_schemas import ReadUsage
from ewe.server.schemas.rerank_schemas import RankedDocument, RankedText, RerankRequest, RerankResponse
from ewe.server.sentence_models import SentenceModels, counted, name_of
from ewe.server.service import service_of

router = APIRouter(tags=["vLLM"], route_class=RequestRoute, responses=ERROR_RESPONSES)

_BATCH = 32  # pairs per call of the reranker: one that has begun cannot be broken off


@router.post("/rerank")
@router.post("/v1/rerank")
@router.post("/v2/rerank")
async def rerank(body: RerankRequest, request: Request) -> RerankResponse:
    """Documents by how well they answer a query."""
    service = service_of(request)
    models, served = service.sentence_models, service.model_names
    name = name_of(await run_in_thread(request, lambda _: models.reranker()), body.model, served)
    scores, tokens = await run_in_thread(request, lambda caller: _score(models, body, caller))
    order = sorted(range(len(scores)), key=lambda index: -scores[index])[: body.top_n or None]
    return RerankResponse(
        id=f"rerank-{uuid.uuid4().hex}",
        model=name,
        results=[_result(index, scores[index], body) for index in order],
        usage=ReadUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def _score(models: SentenceModels, body: RerankRequest, caller: Caller) -> tuple[list[float], int]:
    """A score per document, and the tokens that were read."""
    reranker, pairs = models.reranker(), [(body.query, text) for text in body.texts]
    tokens = counted(reranker, "documents", reranker.count_tokens(pairs), body.truncate_prompt_tokens == -1)
    return [float(score) for batch in caller.batches(pairs, _BATCH) for score in reranker.score(batch)], tokens


def _result(index: int, score: float, body: RerankRequest) -> RankedDocument:
    document = None if body.return_documents is False else RankedText(text=body.texts[index])
    return RankedDocument(index=index, relevance_score=score, document=document)
