"""The app: routes, middleware and errors around one service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from ewe.config.addons import longterm
from ewe.errors import ConfigError
from ewe.llm import LLM
from ewe.server import VERSION, operation, verify_text
from ewe.server.anthropic_cohere import anthropic_messages, cohere_chat, cohere_embed, cohere_tokens
from ewe.server.batch import batches
from ewe.server.batch.batch_runner import BatchRunner
from ewe.server.batch.batch_store import BatchStore
from ewe.server.engine_client.served_engine import LocalEngine
from ewe.server.engine_service import Service
from ewe.server.http.error_responses import add_handlers
from ewe.server.openai import chat, completions, embed_rerank, model_routes, responses, stored_responses
from ewe.server.page import api_docs
from ewe.server.page import routes as page
from ewe.server.request_handling.ignored import HEADER as IGNORED_HEADER
from ewe.server.request_handling.ignored import IgnoredFields
from ewe.server.request_handling.middleware import AccessMiddleware, RequestLogMiddleware
from ewe.server.settings import ServerSettings
from ewe.server.traffic.pacing import Pacing

if TYPE_CHECKING:
    from ewe.server.observability.tracing import Tracing

_ROUTERS = (
    *(
        module.router
        for module in (
            operation,
            model_routes,
            chat,
            completions,
            responses,
            stored_responses,
            anthropic_messages,
            cohere_chat,
            embed_rerank,
            cohere_embed,
            cohere_tokens,
        )
    ),
    operation.tokens_router,
    verify_text.router,
    *longterm("routes").ROUTERS,
    *(module.router for module in (batches, page, api_docs)),
)
_DESCRIPTION = "Text that is checked while it is written. The OpenAI routes take and give what OpenAI's do."


def create_app(
    llm: LLM | None = None, settings: ServerSettings | None = None, tracing: Tracing | None = None
) -> FastAPI:
    """The app that serves an LLM; without one it answers 503 until `app.state.service.open` is called with an engine.

    tracing: what makes spans of requests (None: nothing does). The engine stays its owner's: closing it is not the
    app's business. Raises ConfigError for keys that cannot be read, and for an LLM that should be elsewhere.
    """
    settings = settings or ServerSettings()
    if llm is not None and settings.engine_process:
        raise ConfigError("server.engine_process: this engine runs in the process that made it; only `ewe serve` can")
    service = Service(None if llm is None else LocalEngine(llm), settings, tracing)
    app = FastAPI(
        title="EWE engine",
        version=VERSION,
        description=_DESCRIPTION,
        lifespan=_lifespan,
        docs_url=None,  # the pages that FastAPI brings load scripts from other hosts; `api_docs` has one that does not
        redoc_url=None,
    )
    app.state.service = service
    app.state.ignored = IgnoredFields(settings.strict)
    app.state.batches = None
    if settings.batch_folder is not None:
        store = BatchStore(settings.batch_folder)
        app.state.batches = BatchRunner(app, service, store, settings.batch_concurrency)
    for router in _ROUTERS:
        app.include_router(router)
    add_handlers(app)
    _add_middleware(app, settings)
    if tracing is not None:
        app.add_middleware(tracing.around)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Runs batches while the app is served, and closes the service after that."""
    runner: BatchRunner | None = app.state.batches
    if runner is not None:
        runner.start()
    yield
    if runner is not None:
        await runner.close()
    app.state.service.close()


def _add_middleware(app: FastAPI, settings: ServerSettings) -> None:
    """Access control, what browsers need, and the log, each around those before it."""
    max_file_bytes = 0 if app.state.batches is None else batches.MAX_FILE_BYTES
    pacing = Pacing(settings.max_queued_per_key)
    app.add_middleware(AccessMiddleware, settings.keys(), settings.max_body_bytes, max_file_bytes, pacing)
    if settings.cors_origins:
        # Around access control, because a browser asks for permission without a key and must be able to read refusals.
        allowed: dict[str, Any] = {"allow_methods": ["GET", "POST", "PATCH", "DELETE"], "allow_headers": ["*"]}
        exposed = ["x-request-id", "retry-after", IGNORED_HEADER]
        app.add_middleware(CORSMiddleware, allow_origins=list(settings.cors_origins), expose_headers=exposed, **allowed)
    app.add_middleware(RequestLogMiddleware)
