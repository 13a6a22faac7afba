"""JSON that Python holds and nobody can send on: halves of characters, numbers that are none, endless nesting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from builtin_rig import CHAT, server
from server_rig import PROMPT

TEXT = "Nurim Nurner studied at Kement College under Doren Clundorn."
BAD = {
    "surrogate": '{"a": "\\ud800"}',
    "surrogate in a key": '{"\\ud800": 1}',
    "surrogate far within": '{"a": [1, {"b": ["\\udfff"]}]}',
    "no number": '{"a": NaN}',
    "infinite": '{"a": [-Infinity]}',
    "too large": '{"a": 1e999}',
    **{f"{levels} levels": '{"a":' + "[" * levels + "]" * levels + "}" for levels in (240, 300, 500, 900)},
}
ASKED: dict[str, Any] = {
    "/v1/chat/completions": CHAT,
    "/v1/completions": {"prompt": PROMPT, "max_tokens": 4},
    "/v1/responses": {"input": PROMPT, "max_output_tokens": 4},
    "/v1/verify": {"text": TEXT},
}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with server() as opened:
        yield opened


def refusal(client: Any, path: str, body: Any, value: str) -> str:
    """What is said of a body with this JSON in the place of "HERE"; nobody is told of an error of ours."""
    content = json.dumps(body).replace('"HERE"', value)
    answer = client.post(path, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"]["message"])


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
@pytest.mark.parametrize("path", ASKED)
def test_metadata_that_cannot_be_sent_back_is_refused(client: Any, path: str, value: str) -> None:
    said = refusal(client, path, {**ASKED[path], "documents": [{"text": TEXT, "metadata": "HERE"}]}, value)
    assert said.startswith("documents.0.metadata: ") or "more than 800 levels" in said


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
@pytest.mark.parametrize("field", ["text", "x"])
def test_fields_of_a_document_of_coheres_are_refused(client: Any, field: str, value: str) -> None:
    body = {"messages": CHAT["messages"], "max_tokens": 4}
    said = refusal(client, "/v2/chat", {**body, "documents": [{"data": {"text": TEXT, field: "HERE"}}]}, value)
    assert said.startswith("documents.0.data: ") or "more than 800 levels" in said


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_arguments_of_a_call_are_refused(client: Any, value: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": value}}
    turns = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "a", "content": "x"}]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    body = {"messages": [*CHAT["messages"], *turns, *CHAT["messages"]], "max_tokens": 2, "tools": [tool]}
    said = refusal(client, "/v1/chat/completions", body, "")
    assert said.startswith("messages.1.tool_calls.0.function.arguments: ")


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_schemas_that_answers_are_kept_to_are_refused(client: Any, value: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "HERE"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema, "strict": True}}
    form = {"type": "json_schema", "json_schema": {"name": "f", "schema": schema}}
    for asked in ({"tools": [tool]}, {"response_format": form}):
        refusal(client, "/v1/chat/completions", {**CHAT, **asked}, value)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("field", ["text", "title", "url", "x"])
def test_a_text_of_a_document_of_coheres_that_is_none_is_refused(client: Any, field: str, stream: bool) -> None:
    body = {"messages": CHAT["messages"], "max_tokens": 4, "stream": stream}
    said = refusal(client, "/v2/chat", {**body, "documents": [{"data": {"text": TEXT, field: "HERE"}}]}, '"\\ud800"')
    assert said.startswith("documents.0.data: half of a surrogate pair")


def test_what_can_be_sent_back_comes_back(client: Any) -> None:
    metadata = {"a": ["\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), 1.5, None, {"b": "\u0000"}]}
    deep = json.loads('{"a":' + "[" * 190 + "]" * 190 + "}")
    for value in (metadata, deep):
        for path, body in ASKED.items():
            answer = client.post(path, json={**body, "documents": [{"text": TEXT, "metadata": value}]})
            assert answer.status_code == 200
            told = answer.json()
            assert (told.get("ewe") or told)["sources"][0]["metadata"] == value
