"""Tool calls with Anthropic's and Cohere's clients: rounds of them, streams, demanded calls, JSON, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from late_import import late_import
from pydantic import BaseModel
from script_rig import scripted_llm
from server_rig import http, serving, wait_until_idle

from ewe import LLM
from ewe.server.app import create_app

anthropic = late_import("anthropic", reason="the anthropic client is not installed")
cohere = pytest.importorskip("cohere", reason="the cohere client is not installed")

ASKED: Any = [{"role": "user", "content": "How is the weather in Lyon and Oslo?"}]
BEFORE, AFTER = "I look it up.", "It is sunny in Lyon. It rains in Oslo."
CITIES = ["Lyon", "Oslo"]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"]}
OF_ANTHROPIC: Any = {"name": "weather", "description": "The weather of a city.", "input_schema": SCHEMA}
OF_COHERE: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}


def answer(prompt: str, num_units: int) -> str:
    if "sunny" in prompt:
        return AFTER
    if "as JSON" in prompt:
        return '{"n": 7}'
    calls = [json.dumps({"name": "weather", "arguments": {"city": city}}) for city in CITIES]
    return f"{BEFORE}\n" + "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls)


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with scripted_llm("hermes", answer) as opened:
        yield opened


@pytest.fixture(scope="module")
def url(llm: LLM) -> Iterator[str]:
    with serving(create_app(llm)) as address:
        yield address


@pytest.fixture(autouse=True)
def nothing_is_left(llm: LLM) -> Iterator[None]:
    yield
    wait_until_idle(llm)


@pytest.fixture
def claude(url: str) -> Any:
    messages = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages
    return lambda **more: messages.create(
        **{"model": "scripted", "max_tokens": 300, "messages": ASKED, "tools": [OF_ANTHROPIC], **more}
    )


@pytest.fixture
def command(url: str) -> Any:
    client = cohere.ClientV2(api_key="none", base_url=url)
    return lambda **more: client.chat(**{"model": "scripted", "messages": ASKED, "tools": [OF_COHERE], **more})


# --- Anthropic


def test_messages_call_tools_and_go_on_with_their_results(claude: Any) -> None:
    first = claude()
    text, *calls = first.content
    assert (first.stop_reason, text.text) == ("tool_use", BEFORE)
    assert [(call.type, call.name, call.input["city"]) for call in calls] == [
        ("tool_use", "weather", city) for city in CITIES
    ]
    results = [
        {"type": "tool_result", "tool_use_id": calls[0].id, "content": [{"type": "text", "text": "sunny"}]},
        {"type": "tool_result", "tool_use_id": calls[1].id, "content": "it rains"},
    ]
    said = [*ASKED, {"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    second = claude(messages=said)
    assert ([block.text for block in second.content], second.stop_reason) == ([AFTER], "end_turn")


def test_a_streamed_message_adds_up_to_the_same(url: str, claude: Any) -> None:
    messages = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages
    with messages.stream(model="scripted", max_tokens=300, messages=ASKED, tools=[OF_ANTHROPIC]) as stream:
        kinds = [event.type for event in stream]
        told = stream.get_final_message()
    assert [(block.type, getattr(block, "input", None)) for block in told.content] == [
        ("text", None),
        *[("tool_use", {"city": city}) for city in CITIES],
    ]
    assert (told.content[0].text, told.stop_reason) == (BEFORE, "tool_use")
    assert kinds.count("content_block_stop") == 3


def test_calls_come_beside_citations(claude: Any) -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "Lyon is a city."}
    brought = {"type": "document", "source": source, "citations": {"enabled": True}}
    content = [brought, {"type": "text", "text": "How is the weather?"}]
    for stream in (False, True):
        message = claude(messages=[{"role": "user", "content": content}], stream=stream)
        if stream:
            starts = [event.content_block for event in message if event.type == "content_block_start"]
            assert [block.type for block in starts] == ["text", "tool_use", "tool_use"]
        else:
            assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]


def test_a_tool_can_be_demanded_or_forbidden(claude: Any) -> None:
    for choice in ({"type": "any"}, {"type": "tool", "name": "weather"}):
        message = claude(tool_choice=choice)
        assert [(block.type, block.name) for block in message.content] == [("tool_use", "weather")]
    assert [block.type for block in claude(tool_choice={"type": "none"}).content] == ["text"]
    one = claude(tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    assert [block.type for block in one.content] == ["text", "tool_use"]
    with pytest.raises(anthropic.BadRequestError, match="no tool 'another'"):
        claude(tool_choice={"type": "tool", "name": "another"})


def test_a_result_that_is_an_error_says_so_to_the_model(llm: LLM, url: str, claude: Any) -> None:
    def count(**more: Any) -> int:
        result = {"type": "tool_result", "tool_use_id": "a", "content": "sunny", **more}
        call = {"type": "tool_use", "id": "a", "name": "weather", "input": {}}
        messages = [*ASKED, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        body = {"messages": messages, "tools": [OF_ANTHROPIC]}
        return int(http.post(f"{url}/v1/messages/count_tokens", json=body).json()["input_tokens"])

    assert count(is_error=True) - count() == len(llm.tokenizer("Error: ")["input_ids"])


def test_tokens_are_counted_as_they_are_read(url: str, claude: Any) -> None:
    messages = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages
    for tools in ([], [OF_ANTHROPIC]):
        counted = messages.count_tokens(model="scripted", messages=ASKED, tools=tools, system="Be brief.")
        assert counted.input_tokens == claude(tools=tools, system="Be brief.").usage.input_tokens
    with pytest.raises(anthropic.NotFoundError, match="no model") as caught:
        messages.count_tokens(model="another", messages=ASKED)
    assert caught.value.body["type"] == "error"


class Count(BaseModel):
    """A count."""

    n: int


def test_messages_are_json_of_a_schema(url: str) -> None:
    messages = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages
    asked = [{"role": "user", "content": "Answer as JSON."}]
    parsed = messages.parse(model="scripted", max_tokens=50, messages=asked, output_format=Count)
    assert parsed.parsed_output == Count(n=7)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ([{"type": "tool_use", "id": "a", "name": "weather", "input": {}}], "only the assistant"),
        ([{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image", "source": {}}]}], "image"),
    ],
)
def test_messages_that_do_not_fit_are_refused(claude: Any, content: Any, named: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=named):
        claude(messages=[{"role": "user", "content": content}])


# --- Cohere


def test_chats_call_tools_and_go_on_with_their_results(command: Any) -> None:
    first = command()
    assert (first.finish_reason, first.message.content[0].text) == ("TOOL_CALL", BEFORE)
    calls = first.message.tool_calls
    assert [(call.function.name, json.loads(call.function.arguments)["city"]) for call in calls] == [
        ("weather", city) for city in CITIES
    ]
    document = {"type": "document", "document": {"id": "1", "data": {"sky": "sunny"}}}
    results = [
        {"role": "tool", "tool_call_id": calls[0].id, "content": [document]},
        {"role": "tool", "tool_call_id": calls[1].id, "content": "it rains"},
    ]
    second = command(messages=[*ASKED, first.message, *results])
    assert (second.finish_reason, second.message.content[0].text) == ("COMPLETE", AFTER)


def test_a_streamed_chat_adds_up_to_the_same(url: str) -> None:
    client = cohere.ClientV2(api_key="none", base_url=url)
    events = list(client.chat_stream(model="scripted", messages=ASKED, tools=[OF_COHERE]))
    kinds = [event.type for event in events]
    assert [kind for kind in kinds if kind != "content-delta"] == [
        *("message-start", "content-start", "content-end"),
        *["tool-call-start", "tool-call-delta", "tool-call-end"] * 2,
        "message-end",
    ]
    texts = [event.delta.message.content.text for event in events if event.type == "content-delta"]
    arguments = [
        event.delta.message.tool_calls.function.arguments for event in events if event.type == "tool-call-delta"
    ]
    assert ("".join(texts), [json.loads(text)["city"] for text in arguments]) == (BEFORE, CITIES)
    assert events[-1].delta.finish_reason == "TOOL_CALL"


def test_a_chats_tool_can_be_demanded_or_forbidden(command: Any) -> None:
    demanded = command(tool_choice="REQUIRED", strict_tools=True)
    assert (demanded.message.content, len(demanded.message.tool_calls)) == (None, 1)
    assert command(tool_choice="NONE").message.tool_calls is None


def test_chats_are_json(command: Any) -> None:
    asked = [{"role": "user", "content": "Answer as JSON."}]
    for more in ({}, {"json_schema": Count.model_json_schema()}):
        told = command(messages=asked, tools=None, response_format={"type": "json_object", **more}, max_tokens=50)
        assert json.loads(told.message.content[0].text) == {"n": 7}
