"""Bodies of JSON are bounded in structure, with the limit in the message."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from starlette.exceptions import HTTPException

from ewe.server.http.json_sizes import MOST_NUMBERS
from ewe.server.request_handling import json_bodies
from ewe.server.request_handling.json_bodies import MOST_LEVELS, MOST_MEMBERS, MOST_VALUES, BoundedRequest, parse
from ewe.server.traffic.fair_queue import LARGE, WorkQueues


@pytest.mark.parametrize(
    "value",
    [
        *({}, 1, None, "text", {"prompt": [1] * (MOST_NUMBERS - 2)}, ["x"] * MOST_MEMBERS),
        *({"tokens": [1] * 5000}, {"prompt": [[1] * 5000, [2]]}),
        {"messages": [{"role": "user", "content": "a, [b], {c}"}] * 2048},
    ],
)
def test_what_is_within_the_bounds_is_parsed(value: Any) -> None:
    assert parse(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        ({"prompt": [1] * (MOST_NUMBERS + 1)}, MOST_NUMBERS),
        *(({name: [1] * (MOST_MEMBERS + 1)}, MOST_MEMBERS) for name in ("documents", "messages", "stop")),
        ({"prompt": [1] * MOST_MEMBERS + ["x"]}, MOST_MEMBERS),
        *((value, MOST_MEMBERS) for value in (["x"] * (MOST_MEMBERS + 1), {"a": [[]] * (MOST_MEMBERS + 1)})),
        ({str(number): 1 for number in range(MOST_MEMBERS + 1)}, MOST_MEMBERS),
        ([[{"type": "text", "text": "x"}] * 2000] * 4, MOST_VALUES),
        ([1.5] * (MOST_MEMBERS + 1), MOST_MEMBERS),
    ],
)
def test_what_is_not_is_refused(value: Any, limit: int) -> None:
    with pytest.raises(HTTPException, match=str(limit)) as caught:
        parse(json.dumps(value).encode())
    assert caught.value.status_code == 413


@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"a":[', b"]}")])
def test_a_body_is_nested_no_deeper_than_it_can_be_worked_on(begin: bytes, end: bytes) -> None:
    levels = MOST_LEVELS // begin.count(b"[") // (1 + begin.count(b"{"))
    assert parse(begin * levels + end * levels)
    with pytest.raises(HTTPException, match="more than 800 levels") as caught:
        parse(begin * (levels + 1) + end * (levels + 1))
    assert caught.value.status_code == 400


@pytest.mark.parametrize("size", [1, LARGE])
def test_a_body_is_parsed_once_however_often_it_is_asked_for(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    monkeypatch.setattr(json_bodies, "parse", lambda body: parsed.append(body) or json.loads(body))
    service = SimpleNamespace(most_body_bytes=lambda path: 1 << 20, queues=WorkQueues(8))
    app = SimpleNamespace(state=SimpleNamespace(service=service))
    body = json.dumps({"a": "x" * size}).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def ask() -> list[Any]:
        request = BoundedRequest({"type": "http", "path": "/", "headers": [], "app": app}, receive)
        return [await request.json() for _ in range(3)]

    assert asyncio.run(ask()) == [{"a": "x" * size}] * 3
    assert len(parsed) == 1
    service.queues.close()
