"""Errors have the form of the API that was asked, and all forms hold the code that the router goes by."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.server.http.error_forms import ANTHROPIC, COHERE, COHERE_EMBED, end_of_stream
from ewe.server.http.error_responses import RefusedError, answer_of, code_of
from ewe.server.http.sse import DONE

FULL = RefusedError(429, "no room", code="queue_full")
CHAT = "/v1/chat/completions"


@pytest.mark.parametrize("path", [ANTHROPIC, COHERE, COHERE_EMBED, CHAT])
def test_every_form_holds_the_code(path: str) -> None:
    answer = answer_of(FULL, path)
    assert code_of(bytes(answer.body)) == "queue_full"
    assert answer.headers["retry-after"]


def test_the_forms_are_those_of_the_apis() -> None:
    told = {"message": "no room", "type": "rate_limit_error", "param": None, "code": "queue_full"}
    assert FULL.body_for(CHAT) == {"error": told}
    assert FULL.body_for(ANTHROPIC) == {"type": "error", "error": told}
    assert FULL.body_for(COHERE) == FULL.body_for(COHERE_EMBED) == {"message": "no room", "error": told}
    kinds = {401: "authentication_error", 413: "request_too_large", 400: "invalid_request_error", 500: "api_error"}
    assert {status: RefusedError(status, "").body_for(ANTHROPIC)["error"]["type"] for status in kinds} == kinds


def test_a_stream_that_breaks_off_says_so_where_its_client_looks() -> None:
    assert FULL.record_for(ANTHROPIC).startswith("event: error\n")
    name, data, *_ = FULL.record_for(COHERE).split("\n")
    told = json.loads(data.removeprefix("data: "))
    assert (name, told["delta"]) == ("event: message-end", {"finish_reason": "ERROR", "error": "no room"})
    assert FULL.record_for(CHAT).startswith("data: ")
    assert [end_of_stream(path) for path in (ANTHROPIC, COHERE, CHAT)] == ["", DONE, DONE]
