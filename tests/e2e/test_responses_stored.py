"""Responses that follow each other by their ids, and calls of tools in them, as the openai package meets both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from script_rig import scripted_llm
from server_rig import openai_client, serving, wait_until_idle

from ewe import LLM
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings

openai = pytest.importorskip("openai", reason="the openai package is not installed")

QUESTION, FOLLOW_UP = "How is the weather in Lyon and Oslo?", "And what did I ask first?"
BEFORE, AFTER = "I look it up.", "It is sunny in Lyon. It rains in Oslo."
CITIES = ["Lyon", "Oslo"]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL: Any = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}


def answer(prompt: str, num_units: int) -> str:
    if FOLLOW_UP in prompt:
        return "You asked about Lyon." if QUESTION in prompt else "I do not know."
    if "sunny" in prompt:
        return AFTER
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


@pytest.fixture(params=[False, True], ids=["lax", "strict"])
def responses(request: pytest.FixtureRequest, url: str) -> Any:
    return openai_client(url, request.param).responses


def ask(responses: Any, **more: Any) -> Any:
    return responses.create(model="scripted", **{"input": QUESTION, "tools": [TOOL], **more})


def results_of(response: Any) -> list[Any]:
    calls = [item for item in response.output if item.type == "function_call"]
    outputs = ["sunny", "it rains"]
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": output}
        for call, output in zip(calls, outputs, strict=True)
    ]


# --- Bounds


def test_a_conversation_ends_that_has_grown_larger_than_a_request(llm: LLM) -> None:
    def turn(before: str | None) -> Any:
        thought = {"type": "reasoning", "summary": [], "encrypted_content": "x" * 9000}
        said = [thought, {"role": "user", "content": FOLLOW_UP}]
        return responses.create(model="scripted", input=said, previous_response_id=before)

    with serving(create_app(llm, ServerSettings(max_body_bytes=20_000))) as address:
        responses = openai_client(address).responses
        third = turn(turn(turn(None).id).id)
        with pytest.raises(openai.BadRequestError, match="larger than a request may be") as caught:
            turn(third.id)
        assert (caught.value.param, caught.value.code) == ("previous_response_id", "context_length_exceeded")
        with pytest.raises(openai.BadRequestError) as gone:
            turn("resp_none")
        assert gone.value.code == "previous_response_not_found"


# --- Calls


def test_calls_are_items_and_their_results_are_sent_back(responses: Any) -> None:
    first = ask(responses, parallel_tool_calls=True)
    message, *calls = first.output
    assert (first.output_text, message.type) == (BEFORE, "message")
    assert [(call.name, json.loads(call.arguments)["city"]) for call in calls] == [("weather", city) for city in CITIES]
    assert (first.tools[0].name, first.tool_choice) == ("weather", "auto")
    said = [{"role": "user", "content": QUESTION}, *[item.model_dump() for item in first.output]]
    assert ask(responses, input=[*said, *results_of(first)]).output_text == AFTER


def test_a_stream_has_the_same_items(responses: Any) -> None:
    events = list(ask(responses, stream=True))
    final = events[-1].response
    told = [event.item for event in events if event.type == "response.output_item.done"]
    assert [item.model_dump() for item in told] == [item.model_dump() for item in final.output]
    assert [item.type for item in told] == ["message", "function_call", "function_call"]
    arguments = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    assert [json.loads(text)["city"] for text in arguments] == CITIES
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_a_tool_can_be_demanded_or_forbidden(responses: Any) -> None:
    for choice in ("required", {"type": "function", "name": "weather"}):
        response = ask(responses, tool_choice=choice)
        assert [item.type for item in response.output] == ["function_call"]
    assert ask(responses, tool_choice="none").output[-1].type == "message"
    with pytest.raises(openai.BadRequestError, match="no tool 'another'"):
        ask(responses, tool_choice={"type": "function", "name": "another"})


# --- Stored responses


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_follows_one_that_is_stored(responses: Any, stream: bool) -> None:
    first = list(ask(responses, stream=True))[-1].response if stream else ask(responses)
    second = ask(responses, input=results_of(first), previous_response_id=first.id)
    assert (second.output_text, second.previous_response_id, second.store) == (AFTER, first.id, True)
    third = ask(responses, input=FOLLOW_UP, previous_response_id=second.id)
    assert third.output_text == "You asked about Lyon."


def test_it_can_be_looked_at_and_forgotten(url: str) -> None:
    responses = openai_client(url).responses
    first = ask(responses)
    second = ask(responses, input=results_of(first), previous_response_id=first.id)
    assert responses.retrieve(second.id).output_text == AFTER
    pages = responses.input_items.list(second.id, order="asc", limit=2)
    kinds = [item.type for item in pages]  # all pages
    assert kinds == ["message", "message", *["function_call"] * 2, *["function_call_output"] * 2]
    assert next(iter(responses.input_items.list(second.id, order="asc"))).content[0].text == QUESTION
    assert next(iter(responses.input_items.list(second.id))).output == "it rains"
    responses.delete(first.id)
    for call in (responses.retrieve, responses.delete, responses.input_items.list):
        with pytest.raises(openai.NotFoundError):
            call(first.id)
    with pytest.raises(openai.BadRequestError) as caught:
        ask(responses, previous_response_id=first.id)
    assert (caught.value.param, caught.value.code) == ("previous_response_id", "previous_response_not_found")
    assert ask(responses, input=FOLLOW_UP, previous_response_id=second.id).output_text == "You asked about Lyon."


def test_who_wants_nothing_stored_is_heard(url: str) -> None:
    responses = openai_client(url).responses
    response = ask(responses, store=False)
    assert response.store is False
    with pytest.raises(openai.NotFoundError):
        responses.retrieve(response.id)


def test_every_key_has_its_own_and_the_oldest_go(llm: LLM, tmp_path: Any) -> None:
    keys = tmp_path / "keys"
    keys.write_text("one\ntwo\n")
    with serving(create_app(llm, ServerSettings(api_key_file=keys, response_bytes=20_000))) as url:
        mine, others = (
            openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0).responses
            for key in keys.read_text().split()
        )
        first = ask(mine)
        with pytest.raises(openai.NotFoundError):
            others.retrieve(first.id)
        for _ in range(10):
            last = ask(mine)
        assert mine.retrieve(last.id).id == last.id
        with pytest.raises(openai.NotFoundError):
            mine.retrieve(first.id)
    with serving(create_app(llm, ServerSettings(response_bytes=0))) as url:
        assert ask(openai_client(url).responses).store is False


def test_tokens_are_counted_as_they_are_read(url: str) -> None:
    responses = openai_client(url).responses
    counted = responses.input_tokens.count(model="scripted", input=QUESTION, tools=[TOOL], instructions="Be brief.")
    assert counted.input_tokens == ask(responses, instructions="Be brief.").usage.input_tokens
