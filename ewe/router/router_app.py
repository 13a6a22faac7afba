"""The router as an app: its own few routes, and everything else passed on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ewe.router.proxy import Proxy, open_client
from ewe.router.replica_metrics import all_metrics
from ewe.router.replicas import ReplicaSet
from ewe.router.routing_key import FindPassage
from ewe.server.batches import MAX_FILE_BYTES
from ewe.server.error_responses import RefusedError, add_handlers
from ewe.server.middleware import AccessMiddleware, RequestLogMiddleware


def create_router(replicas: ReplicaSet, max_body_bytes: int, find_passage: FindPassage | None = None) -> Starlette:
    """The app in front of the replicas. Keys are the replicas' to check: they go through as they come."""
    client = open_client()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        watch = asyncio.ensure_future(replicas.watch(client))
        yield
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        await client.aclose()

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "alive", "replicas": {each.name: each.state for each in replicas.replicas}})

    async def ready(request: Request) -> Response:
        if not replicas.is_ready:
            raise RefusedError(503, "no server is ready", code="no_replica")
        return JSONResponse({"status": "ready"})

    async def metrics(request: Request) -> Response:
        try:
            text = await all_metrics(replicas.replicas, client, request.headers.get("authorization", ""))
        except httpx.HTTPStatusError as error:
            answer = error.response
            return Response(answer.content, answer.status_code, media_type=answer.headers.get("content-type"))
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    routes = [Route("/health", health), Route("/metrics", metrics), Route("/ready", ready)]
    app = Starlette(routes=[*routes, Route("/ping", ready, methods=["GET", "POST"])], lifespan=lifespan)
    app.router.default = Proxy(replicas, client, find_passage)
    add_handlers(app)
    app.add_middleware(AccessMiddleware, (), max_body_bytes, MAX_FILE_BYTES)
    app.add_middleware(RequestLogMiddleware)
    return app
