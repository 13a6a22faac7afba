"""Whatever is sent to /v1/responses is refused or taken by the border, never a crash."""

from __future__ import annotations

import json
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the server's packages are not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from fastapi.testclient import TestClient

from ewe.server.app import create_app
from ewe.server.schemas.response_schemas import ResponsesRequest

# Without an engine every request that passes the border gets 503.
CLIENT = TestClient(create_app(), raise_server_exceptions=False)

_leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=12)
)
VALUES = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "tool"]) | VALUES},
        optional={"content": VALUES | st.just([{"type": "input_text", "text": "A"}]), "type": st.just("message")},
    ),
    max_size=3,
)
BODIES = st.fixed_dictionaries(
    {"input": st.just("Who?") | MESSAGES | VALUES},
    optional={name: VALUES for name in ResponsesRequest.model_fields if name != "input"},
)


@examples(20, 60)
@given(BODIES | VALUES)
def test_any_body_gets_an_answer_in_the_one_shape(body: Any) -> None:
    text = json.dumps(body)  # with NaN and halves of surrogate pairs, as JSON writers let them pass
    answer = CLIENT.post("/v1/responses", content=text, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 503), answer.text
    error = answer.json()["error"]
    assert error["message"]
    assert error["code"] == "loading" if answer.status_code == 503 else error["type"] == "invalid_request_error"


@given(st.binary(max_size=64), st.sampled_from(["application/json", "text/plain", "application/octet-stream"]))
def test_any_bytes_are_refused(body: bytes, kind: str) -> None:
    answer = CLIENT.post("/v1/responses", content=body, headers={"content-type": kind})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
