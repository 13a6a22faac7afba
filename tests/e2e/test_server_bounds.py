"""Requests that would take more than their share: refused with the limit, before they are worked on."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from builtin_rig import CHAT, server
from server_rig import LONG
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from ewe.server.http.error_responses import add_handlers
from ewe.server.request_handling import json_bodies
from ewe.server.request_handling.middleware import AccessMiddleware, RequestLogMiddleware
from ewe.server.settings import ServerSettings
from ewe.server.traffic.body_limits import BodyBudget

TEXT = "word " * 400


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with server(ServerSettings(max_prompt_bytes=1000)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("path", "field", "body"),
    [
        ("/v1/chat/completions", "messages", {"messages": [{"role": "user", "content": TEXT}]}),
        ("/v1/chat/completions", "messages", {"messages": [{"role": "user", "content": TEXT[:600]}] * 2}),
        ("/v1/completions", "prompt", {"prompt": ["short", TEXT]}),
        ("/v1/responses", "input", {"input": TEXT}),
        ("/tokenize", "prompt", {"prompt": TEXT}),
        ("/tokenize", "messages", {"messages": [{"role": "user", "content": TEXT}]}),
    ],
)
def test_a_long_prompt_is_refused_before_it_is_tokenised(client: Any, path: str, field: str, body: Any) -> None:
    client.llm.client.engine.input_processor.encode, kept = None, client.llm.client.engine.input_processor.encode
    try:
        answer = client.post(path, json=body)
    finally:
        client.llm.client.engine.input_processor.encode = kept
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (413, field, "context_length_exceeded")
    assert "takes 1000 (server.max_prompt_bytes)" in error["message"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("documents", [1] * 5000),
        ("metadata", {str(number): 1 for number in range(5000)}),
        ("stop_token_ids", [0.5] * 5000),
    ],
)
def test_wide_json_is_refused_before_it_is_looked_through(client: Any, name: str, value: Any) -> None:
    content = json.dumps({**CHAT, name: value}).encode()
    answer = client.post("/v1/chat/completions", content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 413)
    assert len(answer.content) < 5000


def test_a_request_without_a_body_says_what_to_send(client: Any) -> None:
    answer = client.post("/v1/chat/completions")
    assert answer.status_code == 400
    assert "send the body as JSON" in answer.json()["error"]["message"]


def test_a_chat_with_more_text_than_is_taken_is_refused_by_its_head(client: Any) -> None:
    """Nothing of the body is ever sent."""
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: "
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=LONG) as connection:
        connection.sendall(f"{head}3000000\r\n\r\n".encode())
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413 ")


def test_a_chat_whose_length_is_not_told_is_refused_before_it_is_parsed(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_bodies, "parse", None)
    headers = {"content-type": "application/json"}
    answer = client.post("/v1/chat/completions", content=iter([b"x" * 3_000_000]), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


def test_documents_as_long_as_they_may_be_are_taken_however_they_are_written(client: Any) -> None:
    text = "\u0430" * (1 << 18)  # two bytes, and six where a client writes ASCII only
    content = json.dumps({**CHAT, "documents": [{"text": text}], "max_tokens": 1})
    assert len(content) > 3 << 19
    answer = client.post("/v1/chat/completions", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 200


def test_bodies_under_way_of_one_tenant_are_bounded() -> None:
    budget = BodyBudget(10)
    with budget.share("a") as take, budget.share("a") as more, budget.share("b") as other:
        take(6)
        more(4)
        with pytest.raises(HTTPException, match="10 bytes under way") as caught:
            more(1)
        assert caught.value.status_code == 429
        other(10)
    with budget.share("a") as again:
        again(10)


def test_bodies_under_way_of_all_tenants_are_bounded() -> None:
    budget = BodyBudget(10)
    with ExitStack() as stack:
        takes = [stack.enter_context(budget.share(name)) for name in "abcde"]
        for take in takes[:4]:
            take(10)
        with pytest.raises(HTTPException, match="40 bytes under way") as caught:
            takes[4](1)
        assert caught.value.status_code == 503
    with budget.share("e") as again:
        again(10)


@pytest.mark.parametrize("behind", [True, False])
def test_before_servers_that_check_keys_each_key_has_bytes_of_its_own(behind: bool) -> None:
    """Whoever has none, or another, fills nobody's, though all come from one address."""

    async def reading(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        await JSONResponse(len(await request.body()))(scope, receive, send)

    app = Starlette()
    add_handlers(app)
    app.mount("/", reading)
    guarded = AccessMiddleware(app, (), 100, keys_are_checked_behind=behind)

    async def check() -> list[int]:
        held = asyncio.Event()
        fill = [asyncio.create_task(_asked(guarded, b"x" * 99, held)) for _ in range(17)]
        await asyncio.sleep(0.01)
        told = [await _asked(guarded, b"x" * 99, key=key) for key in (b"good", b"")]
        held.set()
        await asyncio.gather(*fill)
        return told

    assert asyncio.run(check()) == ([200, 429] if behind else [429, 429])


async def _asked(app: Any, body: bytes, held: asyncio.Event | None = None, key: bytes = b"") -> int:
    """The status of a request whose end comes when it is told, or at once."""
    parts = [body, b""]
    statuses = []

    async def receive() -> Any:
        if len(parts) == 1 and held is not None:
            await held.wait()
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: Any) -> None:
        statuses.append(message.get("status"))

    headers = [(b"authorization", b"Bearer " + key)] if key else []
    scope = {"type": "http", "method": "POST", "path": "/v1/verify", "headers": headers, "client": ("10.0.0.1", 1)}
    await RequestLogMiddleware(app)({**scope, "query_string": b"", "root_path": ""}, receive, send)
    return int(statuses[0])


def test_a_form_has_one_file(tmp_path: Any) -> None:
    """Each file of a form is held in a file of its own, which takes a descriptor."""
    with server(ServerSettings(batch_folder=tmp_path)) as opened:
        files = [("file", (f"{number}.jsonl", b"x")) for number in range(2)]
        refused = opened.post("/v1/files", data={"purpose": "batch"}, files=files)
        assert (refused.status_code, "Too many files" in refused.json()["error"]["message"]) == (400, True)
        assert opened.post("/v1/files", data={"purpose": "batch"}, files=files[:1]).status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"logit_bias": {f"x{number}": 1 for number in range(4000)}},
        {"documents": [{"text": number} for number in range(1000)]},
        {"logit_bias": {"x" * 100_000: 1}},
        {"model": "m" * 100_000},
        {"messages": [{"role": "user", "content": [{"type": "t" * 100_000}]}]},
        {"messages": [{"role": "r" * 100_000, "content": "x"}]},
    ],
)
def test_an_error_does_not_repeat_all_that_was_sent(client: Any, wrong: Any) -> None:
    answer = client.post("/v1/chat/completions", json={**CHAT, **wrong})
    assert answer.status_code in (400, 404)
    assert len(answer.content) < 10_000
    assert answer.json()["error"]["message"]


def test_long_texts_to_check_and_long_documents_are_refused(client: Any) -> None:
    long = "It is so. " * 60_000
    for path, field, body in (
        ("/v1/verify", "text", {"text": long}),
        ("/v1/verify", "text", {"text": "It is so.", "prompt": long}),
        ("/v1/chat/completions", "documents", {**CHAT, "documents": [long]}),
        ("/v1/verify", "documents", {"text": "It is so.", "documents": [long]}),
        *(
            (path, "documents", {**body, "documents": [{"text": "It is so.", name: value}]})
            for path, body in (("/v1/chat/completions", CHAT), ("/v1/verify", {"text": "It is so."}))
            for name, value in (("title", long), ("source", long), ("date", long), ("metadata", {"a": long}))
        ),
    ):
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (413, field)
        assert "bytes of text; this server takes" in answer.json()["error"]["message"]


def test_tools_with_more_text_than_a_prompt_may_have_are_refused_before_they_are_tokenised(client: Any) -> None:
    function = {"name": "f", "description": TEXT, "parameters": {"type": "object", "properties": {}}}
    answer = client.post("/v1/chat/completions", json={**CHAT, "tools": [{"type": "function", "function": function}]})
    assert (answer.status_code, answer.json()["error"]["param"]) == (413, "tools")
    assert "takes 1000 (server.max_prompt_bytes)" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "field", "body"),
    [
        ("/v1/chat/completions", "stop", {**CHAT, "stop": "x" * 1025}),
        ("/v1/chat/completions", "stop", {**CHAT, "stop": ["x", "y" * 1025]}),
        ("/v1/messages", "stop_sequences", {**CHAT, "max_tokens": 1, "stop_sequences": ["x" * 1025]}),
        ("/v2/chat", "stop_sequences", {**CHAT, "stop_sequences": ["x" * 1025]}),
    ],
)
def test_long_stop_strings_are_refused(client: Any, path: str, field: str, body: Any) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 400
    assert field in answer.text
