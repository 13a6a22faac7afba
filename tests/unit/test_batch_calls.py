"""A request of a batch reaches the app as one of HTTP does, whatever JSON its line holds."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from ewe.server.batch.batch_calls import call
from ewe.server.traffic.fair_queue import LARGE


def asked(body: JsonValue) -> Any:
    """The body that an app reads."""
    found = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        found.append(await request.json())
        assert request.state.key == "ann"
        await JSONResponse({"path": request.url.path}, 418, {"X-Request-Id": "r"})(scope, receive, send)

    reply = asyncio.run(call(app, "/v1/completions", body, {"key": "ann"}))
    assert (reply.status, reply.body, reply.headers["x-request-id"]) == (418, {"path": "/v1/completions"}, "r")
    return found[0]


@pytest.mark.parametrize(("size", "is_beside"), [(LARGE, True), (1, False)])
def test_large_json_is_made_and_read_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, size: int, is_beside: bool
) -> None:
    """A small answer is read at once; how large a request is shows when it is written."""
    used: list[threading.Thread] = []

    def noted(work: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: (used.append(threading.current_thread()), work(*args, **kwargs))[1]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse("a" * size)(scope, receive, send)

    fake = SimpleNamespace(dumps=noted(json.dumps), loads=noted(json.loads))
    monkeypatch.setattr("ewe.server.batch.batch_calls.json", fake)
    reply = asyncio.run(call(app, "/v1/completions", {}, {}))
    assert (reply.body, reply.size) == ("a" * size, size + 2)
    assert [thread is not threading.main_thread() for thread in used] == [True, is_beside]


@pytest.mark.parametrize("number", [math.inf, -math.inf, 10**30, 0.1])
def test_any_number_is_the_endpoint_s_to_refuse(number: float) -> None:
    """A line may say 1e400; what says so gets an error of its own, and the batch goes on."""
    assert asked({"temperature": number, "prompt": "\u2028 é"}) == {"temperature": number, "prompt": "\u2028 é"}
