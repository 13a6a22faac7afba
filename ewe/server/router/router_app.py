"""The router as an app: its own few routes, and everything else passed on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
from anyio.from_thread import start_blocking_portal
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ewe.server.batch.batches import MAX_FILE_BYTES
from ewe.server.http.error_responses import RefusedError, add_handlers
from ewe.server.request_handling.middleware import AccessMiddleware, RequestLogMiddleware
from ewe.server.router.forwarding import open_client
from ewe.server.router.proxy import Proxy
from ewe.server.router.replica_metrics import all_metrics
from ewe.server.router.replicas import ReplicaSet
from ewe.server.traffic.affinity import FindPassage

if TYPE_CHECKING:
    from ewe.server.observability.tracing import Tracing


def create_router(
    replicas: ReplicaSet,
    max_body_bytes: int,
    find_passage: FindPassage | None = None,
    tracing: Tracing | None = None,
) -> Starlette:
    """The app in front of the replicas. Keys are the replicas' to check: they go through as they come.

    tracing: what makes spans of requests, of which the replicas' are parts (None: theirs are parts of the caller's).
    """
    client = open_client()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # In a thread of its own: a router that has much to do is late for its replicas' answers, and they are not.
        with start_blocking_portal() as watcher:
            watch = watcher.start_task_soon(look_after)
            yield
            watch.cancel()
        await client.aclose()

    async def look_after() -> None:
        async with open_client() as own:
            await replicas.watch(own)

    app = Starlette(routes=_own_routes(replicas, client), lifespan=lifespan)
    app.router.redirect_slashes = False  # to where a client's Host header says
    app.router.default = Proxy(replicas, client, find_passage)
    add_handlers(app)
    app.add_middleware(AccessMiddleware, (), max_body_bytes, MAX_FILE_BYTES, keys_are_checked_behind=True)
    app.add_middleware(RequestLogMiddleware)
    if tracing is not None:
        app.add_middleware(tracing.around)
    return app


def _own_routes(replicas: ReplicaSet, client: httpx.AsyncClient) -> list[Route]:
    """What the router answers itself: of all replicas together."""

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "alive", "replicas": {each.name: each.state for each in replicas.replicas}})

    async def ready(request: Request) -> Response:
        if not replicas.is_ready:
            raise RefusedError(503, "no server is ready", code="no_replica")
        return JSONResponse({"status": "ready"})

    async def metrics(request: Request) -> Response:
        try:
            keys = {name: request.headers[name] for name in ("authorization", "x-api-key") if name in request.headers}
            text = await all_metrics(replicas.replicas, client, keys)
        except httpx.HTTPStatusError as error:
            answer = error.response
            return Response(answer.content, answer.status_code, media_type=answer.headers.get("content-type"))
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    routes = [Route("/health", health), Route("/metrics", metrics), Route("/ready", ready)]
    return [*routes, Route("/ping", ready, methods=["GET", "POST"])]
