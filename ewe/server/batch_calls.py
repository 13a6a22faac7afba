"""Requests of a batch go where those of HTTP go: through the app, with its keys' limits, errors and log."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message

from ewe.batch.requests import BatchRequest
from ewe.batch.result_log import Reply
from ewe.server.engine_service import Service
from ewe.server.errors import RETRY_AFTER_S

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
            reply = await call(self.app, request.url, json.dumps(request.body).encode(), state)
            self.service.check_alive()  # what a dead engine says is no answer
            if "retry-after" not in reply.headers:
                return reply
            await asyncio.sleep(RETRY_AFTER_S)
        return None


async def call(app: ASGIApp, path: str, body: bytes, state: dict[str, Any]) -> Reply:
    """What the app answers to a POST with a JSON body; state: what its middleware finds in the request's."""
    messages: list[Message] = []
    unread = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not unread:
            await asyncio.Event().wait()  # nobody hangs up
        return unread.pop()

    async def send(message: Message) -> None:
        messages.append(message)

    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"},
        **{"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "headers": headers},
        **{"client": None, "server": None, "state": state},
    }
    await app(scope, receive, send)
    told = {name.decode().lower(): value.decode("latin-1") for name, value in messages[0]["headers"]}
    content = b"".join(message.get("body", b"") for message in messages[1:])
    return Reply(messages[0]["status"], json.loads(content), told)
