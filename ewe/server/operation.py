"""Routes for those who run the server: is it alive and ready, what does it do; tokens of texts."""

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from ewe.server import VERSION
from ewe.server.engine_client.served_engine import ServedEngine
from ewe.server.engine_service import key_of, service_of
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.request_handling.thread_work import run_in_thread
from ewe.server.schemas import operation_schemas as schemas
from ewe.server.schemas.chat_schemas import thinking_of
from ewe.server.schemas.common import ERROR_RESPONSES
from ewe.server.traffic.admission import check_prompt_texts
from ewe.server.traffic.orders import tool_texts
from ewe.text.conversation import texts_of
from ewe.text.tool_calls.tools import ToolRequest
from ewe.text.tool_calls.use import ToolUse

router = APIRouter(tags=["Operation"], responses=ERROR_RESPONSES)
tokens_router = APIRouter(tags=["vLLM"], route_class=RequestRoute, responses=ERROR_RESPONSES)


@router.get("/health")
async def health(request: Request) -> schemas.Health:
    """Whether the process is worth keeping: it is, unless the engine has stopped for good. Needs no key.

    Says what is on in the engine too; of a server with keys only to who has one.
    """
    service = service_of(request)
    service.check_alive()
    may_know = bool(key_of(request)) or not service.has_keys
    return schemas.Health(status="alive", engine=service.summary if may_know else None)


@router.get("/ready")
async def ready(request: Request) -> schemas.Ready:
    """Whether requests can be served now: the model is loaded, the engine's loop turns, the server is not stopping."""
    service = service_of(request)
    service.check_ready()
    return schemas.Ready(status="ready", capacity=service.admission.capacity)


@router.get("/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
async def metrics(request: Request) -> Response:
    """Counters and measurements in Prometheus' text format."""
    return Response(service_of(request).metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST})


@router.get("/ping")
@router.post("/ping")
async def ping(request: Request) -> schemas.Ready:
    """The same as /ready, where load balancers and SageMaker ask."""
    return await ready(request)


@router.get("/version")
async def version() -> schemas.Version:
    """The version of the engine."""
    return schemas.Version(version=VERSION)


@tokens_router.post("/tokenize")
async def tokenize(body: schemas.TokenizeRequest, request: Request) -> schemas.TokenizeResponse:
    """The tokens of a text or of a conversation."""
    service = service_of(request)
    service.check_model(body.model)
    engine = service.engine
    if body.messages is None:
        field, texts = "prompt", [body.prompt or ""]
    else:
        field, texts = "messages", texts_of([message.for_template for message in body.messages])
    check_prompt_texts(texts, service.settings.max_prompt_bytes, service.max_model_len, field)
    offered = ToolRequest.from_openai([tool.model_dump() for tool in body.tools or ()])
    tools = engine.prompts.chat_template.tool_use(offered, service.settings.tool_parser)
    check_prompt_texts(tool_texts(tools), service.settings.max_prompt_bytes, service.max_model_len, "tools")
    ids = await run_in_thread(request, service.queues.tokens, lambda _: _token_ids(engine, body, tools))
    return schemas.TokenizeResponse(
        count=len(ids),
        max_model_len=service.max_model_len,
        tokens=ids,
        token_strs=engine.prompts.tokenizer.convert_ids_to_tokens(ids) if body.return_token_strs else None,
    )


@tokens_router.post("/detokenize")
async def detokenize(body: schemas.DetokenizeRequest, request: Request) -> schemas.DetokenizeResponse:
    """The text of tokens."""
    service = service_of(request)
    service.check_model(body.model)
    engine = service.engine
    text = await run_in_thread(request, service.queues.tokens, lambda _: _text(engine, body.tokens))
    return schemas.DetokenizeResponse(prompt=text)


def _token_ids(engine: ServedEngine, body: schemas.TokenizeRequest, tools: ToolUse | None) -> list[int]:
    if body.messages is not None:
        return engine.tokenizing.encode(
            engine.prompts.apply_chat_template(
                [message.for_template for message in body.messages],
                tools,
                thinking=thinking_of(body.chat_template_kwargs),
                continue_final_message=bool(body.continue_final_message),
            ),
            body.add_special_tokens is True,
        )
    return engine.tokenizing.encode(body.prompt or "", body.add_special_tokens is not False)


def _text(engine: ServedEngine, tokens: list[int]) -> str:
    engine.tokenizing.check_ids("tokens", tokens)
    return str(engine.prompts.tokenizer.decode(tokens))
