"""Every parameter of the engine can be asked for; every other of OpenAI's and vLLM's is ignored or refused by name."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")
pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("openai", reason="the openai client is not installed")

from fastapi.testclient import TestClient
from openai.types import completion_create_params
from openai.types.chat import completion_create_params as chat_create_params
from openai.types.responses import response_create_params

from ewe.server.app import create_app
from ewe.server.schemas.chat_schemas import ChatRequest
from ewe.server.schemas.completion_schemas import CompletionRequest
from ewe.server.schemas.response_schemas import ResponsesRequest
from ewe.server.schemas.sampling_schemas import RefusedFields
from ewe.server.settings import ServerSettings
from ewe.types.sampling_params import SamplingParams

# Without an engine a request that passes the border gets 503.
CLIENT = TestClient(create_app(), raise_server_exceptions=False)
STRICT = TestClient(create_app(settings=ServerSettings(strict=True)), raise_server_exceptions=False)
ENDPOINTS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "/v1/chat/completions": (ChatRequest, chat_create_params, {"messages": [{"role": "user", "content": "Who?"}]}),
    "/v1/completions": (CompletionRequest, completion_create_params, {"prompt": "Who?"}),
    "/v1/responses": (ResponsesRequest, response_create_params, {"input": "Who?"}),
}
ELSEWHERE = {"deadline_s": "ewe", "json_schema": "response_format"}
OF_ECHO = "prompt_logprobs"  # which a request asks for by `echo` with `logprobs`
SAMPLE: dict[str, Any] = {
    "stop": ["a"], "stop_token_ids": [3], "ignore_eos": True, "logit_bias": {"3": 1.5}, "n": 1, "seed": 3,
    "temperature": 0.5, "top_p": 0.5, "min_p": 0.1, "repetition_penalty": 1.1, "presence_penalty": 0.5,
    "frequency_penalty": 0.5, "ewe": {"deadline_s": 3.0}, "response_format": {"type": "json_object"},
}  # fmt: skip
NAMED_ELSE = {
    "/v1/chat/completions": {"logprobs": ("logprobs", True)},
    "/v1/completions": {},
    "/v1/responses": {
        "max_tokens": ("max_output_tokens", 5),
        "logprobs": ("top_logprobs", 2),
        "response_format": ("text", {"format": {"type": "json_object"}}),
    },
}


def openai_names(module: Any) -> set[str]:
    [base] = [item for name, item in vars(module).items() if name.endswith("CreateParamsBase")]
    return set(base.__annotations__) | {"stream"}


@pytest.mark.parametrize("path", ENDPOINTS)
def test_parameters_of_the_engine_are_taken(path: str) -> None:
    _, _, body = ENDPOINTS[path]
    for field in (item for item in dataclasses.fields(SamplingParams) if item.name != OF_ECHO):
        name = ELSEWHERE.get(field.name, field.name)
        name, value = NAMED_ELSE[path].get(name, (name, SAMPLE.get(name, 5)))
        answer = CLIENT.post(path, json={**body, name: value})
        assert answer.json()["error"]["code"] == "loading", (name, answer.text)


@pytest.mark.parametrize("path", ENDPOINTS)
def test_other_parameters_of_openais_are_ignored_and_named(path: str) -> None:
    model, module, body = ENDPOINTS[path]
    names = openai_names(module)
    assert {"model", "temperature", "user"} <= names
    for name in [*sorted(names - model.model_fields.keys()), "unheard_of"]:
        answer = CLIENT.post(path, json={**body, name: 1})
        assert answer.json()["error"]["code"] == "loading", answer.text
        assert answer.headers["x-ewe-ignored"] == name
        refused = STRICT.post(path, json={**body, name: 1})
        error = refused.json()["error"]
        assert (refused.status_code, error["param"]) == (400, name), refused.text
        assert name in error["message"]


@pytest.mark.parametrize("path", ENDPOINTS)
def test_labels_are_named_and_pass_a_strict_server_too(path: str) -> None:
    model, _, body = ENDPOINTS[path]
    sample = {"store": True, "metadata": {"a": "b"}}
    given = {name: sample.get(name, "x") for name in model.labels}
    for client in (CLIENT, STRICT):
        answer = client.post(path, json={**body, **given, "seed": None, "unheard_of": None})
        assert answer.json()["error"]["code"] == "loading", answer.text
        assert set(answer.headers["x-ewe-ignored"].split(", ")) == model.labels
        assert "x-ewe-ignored" not in client.post(path, json=body).headers


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize("name", RefusedFields.model_fields)
def test_what_would_change_an_answer_is_never_ignored(path: str, name: str) -> None:
    answer = CLIENT.post(path, json={**ENDPOINTS[path][2], name: [3]})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, name)
    assert error["message"].startswith(f"not supported yet: {name}")


BODIES = {
    **{path: body for path, (_, _, body) in ENDPOINTS.items()},
    "/v1/verify": {"text": "A text."},
    "/v1/memories": {"content": "A fact."},
    "/v1/memories/search": {"query": "Which?"},
    "/v1/memories/x/feedback": {"correct": True},
    "/v1/memories/x/restore": {},
    "/v1/embeddings": {"input": "A text."},
    **{f"{version}/rerank": {"query": "Which?", "documents": ["A text."]} for version in ("", "/v1", "/v2")},
    "/v2/embed": {"texts": ["A text."], "input_type": "search_query", "embedding_types": ["float"]},
    "/v1/messages": {"messages": [{"role": "user", "content": "Who?"}], "max_tokens": 9},
    "/v1/messages/count_tokens": {"messages": [{"role": "user", "content": "Who?"}]},
    "/v1/responses/input_tokens": {"input": "Who?"},
    "/v2/chat": {"messages": [{"role": "user", "content": "Who?"}]},
    "/tokenize": {"prompt": "A text."},
    "/detokenize": {"tokens": [1]},
    "/v1/tokenize": {"text": "A text."},
    "/v1/detokenize": {"tokens": [1]},
}


def test_every_route_with_a_body_names_what_it_ignores() -> None:
    described = create_app().openapi()["paths"]
    with_body = {path for path, item in described.items() if "requestBody" in item.get("post", {})}
    closed = {"/v1/files", "/v1/batches"}  # without server.batch_folder
    assert {path.replace("{memory_id}", "x") for path in with_body} == BODIES.keys() | closed
    for path, body in BODIES.items():
        answer = CLIENT.post(path, json={**body, "unheard_of": 1})
        if path.startswith("/v1/memories"):  # whose memories are meant is never guessed
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, "unheard_of"), path
        else:
            assert (answer.status_code, answer.headers.get("x-ewe-ignored")) == (503, "unheard_of"), path
    assert CLIENT.delete("/v1/memories?user=x&unheard_of=1").status_code == 400


def test_parts_of_a_request_are_looked_through_and_names_are_fit_for_a_header() -> None:
    body = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Who?", "cache": 1}], "name": "Ada"}] * 3,
        "documents": ["a", {"text": "b", "page": 3, "url": "u"}],
        "stream_options": {"include_usage": True, "include_obfuscation": False},
        "ewe": {"evnets": True},
        "a\nx-evil: 1": 1,
        "é" * 100: 1,
        "": 1,
    }
    named = CLIENT.post("/v1/chat/completions", json=body).headers["x-ewe-ignored"]
    assert set(named.split(", ")) == {
        *(
            "messages.content.cache",
            "documents.page",
            "stream_options.include_obfuscation",
            "ewe.evnets",
        ),
        *("a%0Ax-evil%3A%201", ("%C3%A9" * 100)[:64], '""'),
    }
    many = CLIENT.post("/v1/chat/completions", json={**body, **{f"f{number}": 1 for number in range(500)}})
    assert many.headers["x-ewe-ignored"].count(",") == 32


def test_an_ignored_field_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    client = TestClient(create_app(), raise_server_exceptions=False)
    for _ in range(3):
        client.post("/v1/completions", json={"prompt": "Who?", "unheard_of": 1})
    noted = [record.fields for record in caplog.records if "is ignored" in record.getMessage()]
    assert noted == [{"field": "unheard_of"}]


def test_a_body_that_is_not_called_json_is_refused_by_the_missing_header() -> None:
    answer = CLIENT.post("/v1/completions", content='{"prompt": "Who?"}', headers={"content-type": "text/plain"})
    assert answer.status_code == 400
    assert "content-type: application/json" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ENDPOINTS)
def test_values_of_another_kind_are_refused_by_name(path: str) -> None:
    model, _, body = ENDPOINTS[path]
    for name in model.model_fields:
        for value in ({"odd": []}, [[]], "odd\ud800", 1.5e300):
            answer = CLIENT.post(
                path, content=json.dumps({**body, name: value}), headers={"content-type": "application/json"}
            )
            error = answer.json()["error"]
            if answer.status_code == 400:
                assert error["param"].split(".")[0] == name, (name, value, answer.text)
            else:
                assert error["code"] == "loading", (name, value, answer.text)


@pytest.mark.parametrize("body", [b'{"prompt": "M\xfcller"}', b"[" * 100_000, b'{"seed": ' + b"1" * 5000 + b"}", b"{"])
def test_every_body_that_is_not_json_says_so(body: bytes) -> None:
    answer = CLIENT.post("/v1/completions", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json"), answer.text
