"""/v1/models: what is served, in OpenAI's form, or in Anthropic's or Cohere's for their clients."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request

from ewe.server.engine_service import Service, service_of
from ewe.server.schemas.common import ERROR_RESPONSES
from ewe.server.schemas.model_answers import CohereModel, CohereModelList, Model, ModelInfo, ModelInfoPage, ModelList

router = APIRouter(prefix="/v1/models", tags=["OpenAI"], responses=ERROR_RESPONSES)
_ANTHROPIC_VERSION = "anthropic-version"  # a header of all their clients
_CLIENT = "x-fern-sdk-name"  # a header of Cohere's, in whatever language, which has their name in it
_ENDPOINTS = {"generate": ["chat"], "embed": ["embed"], "rerank": ["rerank"]}


@router.get("")
async def list_models(request: Request, endpoint: str | None = None) -> ModelList | ModelInfoPage | CohereModelList:
    """The one model that is served, under each of its names and with each of its adapters; then those of retrieval.

    In Anthropic's form without those of retrieval, and always as one page. endpoint: Cohere's clients are told of those
    alone that it can be asked with.
    """
    service = service_of(request)
    names = service.served.names
    written = [*names.listed, *names.adapters]
    if _ANTHROPIC_VERSION in request.headers:
        infos = [_info(service, name) for name in written]
        return ModelInfoPage(data=infos, first_id=infos[0].id, last_id=infos[-1].id)
    beside = [name for name in service.engine.sentence_models.listed if name not in written]
    models = [*(_model(service, name) for name in written), *(_sentence_model(service, name) for name in beside)]
    if _is_cohere(request):
        return CohereModelList(models=[one for one in map(_as_cohere, models) if endpoint in (None, *one.endpoints)])
    return ModelList(data=models)


@router.get("/{model:path}")
async def retrieve_model(model: str, request: Request) -> Model | ModelInfo | CohereModel:
    """The model of this name."""
    service = service_of(request)
    if _ANTHROPIC_VERSION in request.headers:
        return _info(service, service.check_model(model))
    is_beside = model in service.engine.sentence_models.listed and model not in service.served.names
    found = _sentence_model(service, model) if is_beside else _model(service, service.check_model(model))
    return _as_cohere(found) if _is_cohere(request) else found


def _is_cohere(request: Request) -> bool:
    return "cohere" in request.headers.get(_CLIENT, "")


def _as_cohere(model: Model) -> CohereModel:
    ends, tuned = _ENDPOINTS[model.task], model.parent is not None
    return CohereModel(name=model.id, endpoints=ends, finetuned=tuned, context_length=model.max_model_len)


def _sentence_model(service: Service, name: str) -> Model:
    task = service.engine.sentence_models.listed[name]
    return Model(id=name, created=service.created, max_model_len=None, task=task)


def _model(service: Service, name: str) -> Model:
    names = service.served.names
    parent = names.listed[0] if names.adapter(name) else None
    return Model(id=name, created=service.created, max_model_len=service.max_model_len, parent=parent)


def _info(service: Service, name: str) -> ModelInfo:
    created, most = datetime.fromtimestamp(service.created, UTC), service.max_model_len
    longest = min(service.settings.max_tokens or most, most)
    return ModelInfo(id=name, display_name=name, created_at=created, max_input_tokens=most, max_tokens=longest)
