"""/v1/models: what is served, in OpenAI's form, or in Anthropic's for who sends their version."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request

from ewe.server.engine_service import Service, service_of
from ewe.server.schemas.common import ERROR_RESPONSES
from ewe.server.schemas.model_answers import Model, ModelInfo, ModelInfoPage, ModelList

router = APIRouter(prefix="/v1/models", tags=["OpenAI"], responses=ERROR_RESPONSES)
_ANTHROPIC_VERSION = "anthropic-version"  # a header of all their clients


@router.get("")
async def list_models(request: Request) -> ModelList | ModelInfoPage:
    """The one model that is served, under each of its names and with each of its adapters; then those of retrieval.

    In Anthropic's form without those of retrieval, and always as one page.
    """
    service = service_of(request)
    names = service.served.names
    written = [*names.listed, *names.adapters]
    if _ANTHROPIC_VERSION in request.headers:
        infos = [_info(service, name) for name in written]
        return ModelInfoPage(data=infos, first_id=infos[0].id, last_id=infos[-1].id)
    beside = [name for name in service.engine.sentence_models.listed if name not in written]
    models = [_model(service, name) for name in written]
    return ModelList(data=[*models, *(_sentence_model(service, name) for name in beside)])


@router.get("/{model:path}")
async def retrieve_model(model: str, request: Request) -> Model | ModelInfo:
    """The model of this name."""
    service = service_of(request)
    if _ANTHROPIC_VERSION in request.headers:
        return _info(service, service.check_model(model))
    if model in service.engine.sentence_models.listed and model not in service.served.names:
        return _sentence_model(service, model)
    return _model(service, service.check_model(model))


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
