"""Requests of a batch go where those of HTTP go: through the app, with its keys' limits, errors and log."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from pydantic import JsonValue
from starlette.types import ASGIApp, Receive, Scope, Send

from ewe.server.batch.requests import BatchRequest
from ewe.server.batch.result_log import Reply
from ewe.server.engine_service import Service
from ewe.server.http.error_responses import RETRY_AFTER_S
from ewe.server.traffic.fair_queue import LARGE

_LOOK_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True)
class BatchCaller:
    """Asks the app in the name of a key.

    may_wait: whether a request may wait in the engine's queue; else it is asked when it is written at once, so that
    other callers' requests come first. goes_on: whether there is still something to ask.
    """

    app: ASGIApp
    service: Service
    key: str = ""
    may_wait: bool = False
    goes_on: Callable[[], bool] = field(default=lambda: True)

    async def answer(self, request: BatchRequest) -> Reply | None:
        """What the endpoint says; what it takes up later is asked again. Raises RefusedError if the engine is dead."""
        while self.goes_on():
            if not self.may_wait and not self.service.admission.has_free_place:
                await asyncio.sleep(_LOOK_AGAIN_S)
                continue
            state = {"key": self.key, "in_batch": not self.may_wait}
            reply = await call(self.app, request.url, request.body, state)
            self.service.check_alive()  # what a dead engine says is no answer
            if "retry-after" not in reply.headers:
                return reply
            await asyncio.sleep(RETRY_AFTER_S)
        return None


async def call(app: ASGIApp, path: str, body: JsonValue, state: dict[str, Any]) -> Reply:
    """What the app answers to a POST with a JSON body; state: what its middleware finds in the request's."""

    async def app_in_state(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "state": state}, receive, send)

    transport = httpx.ASGITransport(app_in_state)
    # In a thread, since it may be large. Not by httpx, which takes no infinity: the endpoint refuses that request
    # alone.
    content = await asyncio.to_thread(json.dumps, body)
    request = httpx.Request(
        "POST", f"http://batch{path}", content=content, headers={"content-type": "application/json"}
    )
    response = await transport.handle_async_request(request)
    raw = await response.aread()
    answered = json.loads(raw) if len(raw) < LARGE else await asyncio.to_thread(json.loads, raw)
    return Reply(response.status_code, answered, response.headers, len(raw))
