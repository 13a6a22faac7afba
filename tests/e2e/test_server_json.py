"""JSON answers through the real openai client: formats, `.parse()`, streams, and schemas that are refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, Field
from server_rig import PROMPT, openai_client, serving, wait_until_idle

from ewe import LLM, SamplingParams
from ewe.server.app import create_app

openai = pytest.importorskip("openai", reason="the openai client is not installed")
pytest.importorskip("llguidance", reason="llguidance is not installed")

MESSAGES: Any = [{"role": "user", "content": PROMPT}]


class Person(BaseModel):
    """What the built-in model is asked for; it never ends a string by itself."""

    biography: str = Field(max_length=16)
    born: int = Field(ge=1000, le=2000)
    kind: str | None = Field(max_length=8)


SCHEMA = {**Person.model_json_schema(), "additionalProperties": False}
CODE = "invalid_json_schema"
ENDLESS: Any = {"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]}
DEEP: Any = {"const": json.loads("[" * 300 + "]" * 300)}
IN_IT = "response_format.json_schema"
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    # JSON and the verifier together are tested without a server.
    with LLM(model="builtin", verifier="none") as opened:
        yield opened
        wait_until_idle(opened)


@pytest.fixture(scope="module")
def url(llm: LLM) -> Iterator[str]:
    with serving(create_app(llm)) as address:
        yield address


@pytest.fixture
def client(url: str) -> Any:
    """One that validates what it gets; `test_server_openai.py` has one as it comes, too."""
    return openai_client(url, strict=True)


def test_chat_is_parsed_as_the_engine_wrote_it(client: Any, llm: LLM) -> None:
    answer = client.chat.completions.parse(
        model="builtin", messages=MESSAGES, response_format=Person, n=2, seed=4, temperature=0.8
    )
    wanted = llm.chat(
        MESSAGES, SamplingParams(max_tokens=4096, n=2, seed=4, temperature=0.8, json_schema=SCHEMA)
    )  # fmt: skip
    assert [choice.message.content for choice in answer.choices] == [item.text for item in wanted]
    assert all(isinstance(choice.message.parsed, Person) for choice in answer.choices)
    assert {choice.finish_reason for choice in answer.choices} == {"stop"}
    [object_] = client.chat.completions.create(
        model="builtin", messages=MESSAGES, max_tokens=4, response_format={"type": "json_object"}
    ).choices
    assert object_.message.content.startswith("{")
    assert object_.finish_reason == "length"


def test_streams_of_json_add_up(client: Any) -> None:
    with client.chat.completions.stream(
        model="builtin", messages=MESSAGES, response_format=Person, logprobs=True
    ) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        [choice] = stream.get_final_completion().choices
    assert Person.model_validate_json("".join(deltas)) == choice.message.parsed
    assert "".join(item.token for item in choice.logprobs.content) == choice.message.content


def test_responses_are_parsed_and_say_what_was_asked(client: Any) -> None:
    response = client.responses.parse(model="builtin", input=PROMPT, text_format=Person)
    assert isinstance(response.output_parsed, Person)
    assert (response.text.format.type, response.text.format.name) == ("json_schema", "Person")
    with client.responses.stream(model="builtin", input=PROMPT, text_format=Person) as stream:
        for _ in stream:
            pass
        assert stream.get_final_response().output_parsed == response.output_parsed
    loose = client.responses.create(
        model="builtin", input=PROMPT, max_output_tokens=3, text={"format": {"type": "json_object"}}
    )
    assert loose.text.format.type == "json_object"
    assert loose.output_text.startswith("{")


def test_text_completions_take_a_format_too(client: Any) -> None:
    answer = client.completions.create(
        model="builtin", prompt=PROMPT, max_tokens=300, stop="NEVER", extra_body={"response_format": FORMAT}
    )
    assert Person.model_validate_json(answer.choices[0].text)


def test_langchain_gets_an_object(url: str) -> None:
    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    model = langchain.ChatOpenAI(base_url=f"{url}/v1", api_key="none", model="builtin", max_retries=0)
    assert isinstance(model.with_structured_output(Person, method="json_schema").invoke(PROMPT), Person)


@pytest.mark.parametrize(
    ("asked", "param", "code"),
    [
        ({"type": "json_schema"}, "response_format", None),
        ({"type": "json_object", "json_schema": {"name": "x", "schema": {}}}, "response_format", None),
        ({"type": "json_schema", "json_schema": {"name": "x"}}, f"{IN_IT}.schema", None),
        (
            {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}},
            "response_format",
            "invalid_json_schema",
        ),
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": ENDLESS}}, "response_format", CODE),
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": DEEP}}, "response_format", CODE),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_to_is_refused_by_name(url: str, asked: Any, param: str, code: str | None) -> None:
    client = openai_client(url)
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="builtin", messages=MESSAGES, response_format=asked)
    assert (caught.value.param, caught.value.code) == (param, code)


def test_without_the_package_json_is_a_400_that_names_the_extra(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    client = openai_client(url)
    schema = {"type": "object", "description": json.dumps("seen by no one before")}
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with pytest.raises(openai.BadRequestError, match="structured") as caught:
        client.chat.completions.create(model="builtin", messages=MESSAGES, response_format=form)
    assert caught.value.param == "response_format"


def test_a_list_of_lists_may_refer_to_itself(url: str) -> None:
    named = {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}, "maxItems": 1}}
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"$defs": named, "$ref": "#/$defs/a"}}}
    answer = openai_client(url).chat.completions.create(
        model="builtin", messages=MESSAGES, response_format=form, max_tokens=40
    )
    text = answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length" or isinstance(json.loads(text), list)
    assert set(text) <= {"[", "]"}


@pytest.mark.parametrize("schema", [ENDLESS, {"type": "object", "properties": {"x": DEEP}}])
def test_schemas_of_tools_are_refused_by_their_place(url: str, schema: Any) -> None:
    tools: Any = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    with pytest.raises(openai.BadRequestError, match="#/properties/x") as caught:
        openai_client(url).chat.completions.create(
            model="builtin", messages=MESSAGES, tools=tools, tool_choice="required"
        )
    assert (caught.value.param, caught.value.code) == ("tools.0.function.parameters", CODE)


def test_a_schema_that_outgrows_its_grammar_is_the_requests_fault(url: str) -> None:
    """Too many properties to choose from, which only shows after a number."""
    many = {"type": "object", "properties": {f"p{number}": {"type": "null"} for number in range(700)}}
    number = {"type": "integer", "minimum": 1000, "maximum": 9999}
    schema = {"type": "array", "prefixItems": [number], "items": many, "minItems": 2}
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with pytest.raises(openai.BadRequestError, match=r"the grammar of the JSON schema: .*max is 2000") as caught:
        openai_client(url).chat.completions.create(model="builtin", messages=MESSAGES, response_format=form)
    assert caught.value.code == CODE
