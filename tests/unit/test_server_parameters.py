"""Every parameter of the engine can be asked for, and every other of OpenAI's is refused by its name."""

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

from ewe.sampling import SamplingParams
from ewe.server.app import create_app
from ewe.server.responses_wire import ResponsesRequest
from ewe.server.wire_chat import ChatRequest
from ewe.server.wire_completions import CompletionRequest

# Without an engine a request that passes the border gets 503.
CLIENT = TestClient(create_app(), raise_server_exceptions=False)
ENDPOINTS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "/v1/chat/completions": (ChatRequest, chat_create_params, {"messages": [{"role": "user", "content": "Who?"}]}),
    "/v1/completions": (CompletionRequest, completion_create_params, {"prompt": "Who?"}),
    "/v1/responses": (ResponsesRequest, response_create_params, {"input": "Who?"}),
}
ELSEWHERE = {"deadline_s": "ewe", "json_schema": "response_format"}
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
    for field in dataclasses.fields(SamplingParams):
        name = ELSEWHERE.get(field.name, field.name)
        name, value = NAMED_ELSE[path].get(name, (name, SAMPLE.get(name, 5)))
        answer = CLIENT.post(path, json={**body, name: value})
        assert answer.json()["error"]["code"] == "loading", (name, answer.text)


@pytest.mark.parametrize("path", ENDPOINTS)
def test_other_parameters_of_openais_are_refused_by_name(path: str) -> None:
    model, module, body = ENDPOINTS[path]
    names = openai_names(module)
    assert {"model", "temperature", "user"} <= names
    for name in [*sorted(names - model.model_fields.keys()), "unheard_of"]:
        answer = CLIENT.post(path, json={**body, name: 1})
        error = answer.json()["error"]
        assert (answer.status_code, error["param"]) == (400, name), answer.text
        assert name in error["message"]


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
