"""Whatever is sent: no crash, no answer that the OpenAPI description does not announce."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from server_rig import PROMPT, wait_until_idle

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from fastapi.testclient import TestClient

from ewe import LLM
from ewe.server.app import create_app
from ewe.server.engine_client.served_engine import LocalEngine
from ewe.server.settings import ServerSettings

FOLDER = TemporaryDirectory()
BOUNDS: dict[str, Any] = {"max_tokens": 3, "max_n": 2, "deadline": 60, "max_body_bytes": 200_000}
APP = create_app(None, ServerSettings(**BOUNDS, batch_folder=Path(FOLDER.name)))
PATHS = (
    *("/v1/chat/completions", "/v1/completions", "/v1/verify", "/v1/responses"),
    *("/v1/messages", "/v2/chat"),
    *("/v1/memories", "/v1/memories/search", "/v1/memories/x/feedback"),
    *("/v1/embeddings", "/v1/rerank", "/tokenize", "/detokenize", "/v1/batches"),
)
FEW = settings(max_examples=40, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=10_000, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", autouse=True)
def llm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LLM]:
    with LLM(model="builtin", longterm=tmp_path_factory.mktemp("fuzz") / "memories") as opened:
        APP.state.service.open(LocalEngine(opened))
        yield opened
        wait_until_idle(opened)


@pytest.fixture(scope="module")
def client(llm: LLM) -> Iterator[TestClient]:
    with TestClient(APP) as opened:
        yield opened


@pytest.mark.parametrize(
    ("kinds", "examples"),
    [
        (("negative", "positive"), 1),
        pytest.param(("positive",), 60, marks=pytest.mark.slow),
        pytest.param(("negative",), 60, marks=pytest.mark.slow),
    ],
)
def test_answers_are_those_that_are_described(kinds: tuple[str, ...], examples: int) -> None:
    """To requests that keep to the description, and to those that do not, which are refused; kinds: of one path
    after the other in turns.

    Imported here: schemathesis takes seconds, and only one of the processes that run the tests needs it.
    """
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as openapi

    checks = [not_a_server_error, openapi.status_code_conformance, openapi.response_headers_conformance]
    checks += [openapi.content_type_conformance, openapi.response_schema_conformance, openapi.negative_data_rejection]
    described = schemathesis.openapi.from_asgi("/openapi.json", APP)
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) > 20
    checked = 0
    for operation, kind in zip(operations, cycle(kinds), strict=False):
        # What takes a name at most cannot be asked wrongly, which takes a second to find out.
        takes = operation.query or operation.body
        mode = schemathesis.GenerationMode(kind if takes or len(kinds) == 1 else "positive")

        @settings(max_examples=examples, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
        @given(case=operation.as_strategy(mode))
        def check(case: Any) -> None:
            nonlocal checked
            checked += 1
            answer = case.call()
            is_read = answer.status_code != 413  # else it cannot be known for wrong, which schemathesis wants
            case.validate_response(answer, checks=checks if is_read else checks[:-1])

        with suppress(Unsatisfiable):  # what takes nothing cannot be asked wrongly
            check()
    assert checked > 20


TEXT = st.text(max_size=40) | st.sampled_from([PROMPT, "\ud800", "<|end|>", "\x00", "a" * 3000, "{{ 7 * 7 }}", ""])
SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
FIELDS = [
    *("messages", "prompt", "text", "input", "model", "max_tokens", "n", "stop", "seed", "temperature", "top_p"),
    *("logprobs", "top_logprobs", "stream", "stream_options", "documents", "ewe", "logit_bias", "tools"),
    *("response_format", "memory", "user", "agent", "content", "query", "source", "metadata", "correct", "by"),
    *("echo", "tokens", "top_n", "dimensions", "add_special_tokens", "unheard_of", "input_file_id", "endpoint"),
    *("system", "stop_sequences", "citation_options", "k", "p", "thinking"),
]  # fmt: skip
NAMES = st.sampled_from(FIELDS)
MESSAGE = st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "assistant", "tool"]), "content": VALUE})
BODY = st.dictionaries(NAMES, VALUE, max_size=4).flatmap(
    lambda base: st.fixed_dictionaries(
        {}, optional={"messages": st.lists(MESSAGE, max_size=2), "prompt": TEXT, "text": TEXT, "input": TEXT}
    ).map(lambda more: {"max_tokens": 1, **base, **more})
)


def send(client: TestClient, path: str, content: bytes) -> None:
    answer = client.post(path, content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 400, 404, 413), (answer.text, content)
    if answer.status_code != 200:
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"]


@FEW
@given(path=st.sampled_from(PATHS), body=BODY)
def test_bodies_that_look_like_requests(client: TestClient, path: str, body: Any) -> None:
    send(client, path, json.dumps(body).encode())


@FEW
@given(path=st.sampled_from(PATHS), content=st.binary(max_size=60) | VALUE.map(json.dumps).map(str.encode))
def test_bodies_that_do_not(client: TestClient, path: str, content: bytes) -> None:
    send(client, path, content)


@pytest.mark.slow
@MANY
@given(path=st.sampled_from(PATHS), body=BODY)
def test_ten_thousand_bodies(client: TestClient, path: str, body: Any) -> None:
    send(client, path, json.dumps(body).encode())


def test_bodies_that_are_hard_to_read(client: TestClient) -> None:
    for content in (b"[" * 100_000, b'{"messages": ' + b"[" * 50_000, b'{"n": ' + b"9" * 5000 + b"}", b"\xff\xfe", b""):
        send(client, "/v1/chat/completions", content)
