"""Rounds of tool calls with real clients: openai plain, strict, streamed and parsed; langchain; litellm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, Field
from script_rig import scripted_llm
from server_rig import http, openai_client, serving, wait_until_idle

from ewe import LLM
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings

openai = pytest.importorskip("openai", reason="the openai client is not installed")

KINDS = ["hermes", "llama3", "mistral", "none"]
PROMPT = "How is the weather in Lyon and Oslo?"
MESSAGES: Any = [{"role": "user", "content": PROMPT}]
ANSWER = "It is sunny in Lyon. It rains in Oslo."
CITIES = ["Lyon", "Oslo"]


class Weather(BaseModel):
    """The weather of a city."""

    city: str = Field(max_length=12)


TOOL: Any = {
    "type": "function",
    "function": {"name": "Weather", "description": "The weather of a city.", "parameters": Weather.model_json_schema()},
}


def script(kind: str) -> Any:
    def answer(prompt: str, num_units: int) -> str:
        if "sunny in Lyon" in prompt:
            return ANSWER
        if "Answer as JSON" in prompt:
            return '{"n": 7}'
        if "no tools" in prompt:
            return "Just words."
        key = "parameters" if kind == "llama3" else "arguments"
        objects = [json.dumps({"name": "Weather", key: {"city": city}}) for city in CITIES]
        if kind == "llama3":
            return "; ".join(objects)
        if kind == "mistral":
            return f"I look it up. [TOOL_CALLS] [{', '.join(objects)}]"
        return "I look it up.\n" + "\n".join(f"<tool_call>\n{item}\n</tool_call>" for item in objects)

    return answer


@pytest.fixture(scope="module", params=KINDS)
def llm(request: pytest.FixtureRequest) -> Iterator[LLM]:
    with scripted_llm(request.param, script(request.param)) as opened:
        opened.kind = request.param  # type: ignore[attr-defined]
        yield opened


@pytest.fixture(scope="module")
def url(llm: LLM) -> Iterator[str]:
    with serving(create_app(llm, ServerSettings(served_model_name=["scripted"], max_tokens=400))) as address:
        yield address


@pytest.fixture(autouse=True)
def nothing_is_left(llm: LLM) -> Iterator[None]:
    yield
    wait_until_idle(llm)


@pytest.fixture
def client(url: str) -> Any:
    """One that validates what it gets; `test_server_openai.py` has one as it comes, too."""
    return openai_client(url, strict=True)


def content_of(llm: Any) -> str | None:
    return None if llm.kind == "llama3" else "I look it up."


def results(calls: Any) -> list[Any]:
    return [{"role": "tool", "tool_call_id": call.id, "content": f"sunny in {place}"} for place, call in
            zip(CITIES, calls, strict=True)]  # fmt: skip


def test_a_round(client: Any, llm: LLM) -> None:
    asked = client.chat.completions.create(model="scripted", messages=MESSAGES, tools=[TOOL])
    [choice] = asked.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == content_of(llm)
    calls = choice.message.tool_calls
    assert [json.loads(call.function.arguments) for call in calls] == [{"city": city} for city in CITIES]
    assert len({call.id for call in calls}) == 2
    assert asked.usage.completion_tokens > 10
    assert asked.ewe["finish_reasons"] == ["stop"]
    assert [item["end_index"] for item in asked.ewe["sentences"]] == [len(text) for text in [content_of(llm)] if text]
    told = client.chat.completions.create(
        model="scripted", messages=[*MESSAGES, choice.message, *results(calls)], tools=[TOOL]
    )
    assert (told.choices[0].message.content, told.choices[0].finish_reason) == (ANSWER, "stop")
    assert not told.choices[0].message.tool_calls


@pytest.mark.parametrize("usage_so_far", [False, True])
def test_a_stream(client: Any, llm: LLM, usage_so_far: bool) -> None:
    options = {"include_usage": True, "continuous_usage_stats": usage_so_far}
    chunks = list(
        client.chat.completions.create(
            model="scripted", messages=MESSAGES, tools=[TOOL], stream=True, stream_options=options, n=2
        )
    )
    for index in range(2):
        choices = [choice for chunk in chunks for choice in chunk.choices if choice.index == index]
        deltas = [call for choice in choices for call in choice.delta.tool_calls or ()]
        firsts = [call for call in deltas if call.id]
        assert [(call.index, call.type, call.function.name) for call in firsts] == [
            (0, "function", "Weather"),
            (1, "function", "Weather"),
        ]
        assert {call.function.arguments for call in firsts} == {""}
        for place, city in enumerate(CITIES):
            pieces = [call.function.arguments for call in deltas if call.index == place]
            assert json.loads("".join(pieces)) == {"city": city}
        assert "".join(choice.delta.content or "" for choice in choices) == (content_of(llm) or "")
        assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["tool_calls"]
    assert chunks[-1].usage.completion_tokens > 10
    assert "sentences" in next(chunk.ewe for chunk in chunks if (chunk.model_extra or {}).get("ewe"))


def test_the_stream_helper_and_pydantic_tools(client: Any) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed")
    tool = openai.pydantic_function_tool(Weather)
    parsed = client.chat.completions.parse(model="scripted", messages=MESSAGES, tools=[tool])
    calls = parsed.choices[0].message.tool_calls
    assert [call.function.parsed_arguments for call in calls] == [Weather(city=city) for city in CITIES]
    with client.chat.completions.stream(model="scripted", messages=MESSAGES, tools=[tool]) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        final = stream.get_final_completion()
    assert [event.parsed_arguments for event in done] == [Weather(city=city) for city in CITIES]
    message = final.choices[0].message
    again = client.chat.completions.create(
        model="scripted", messages=[*MESSAGES, message, *results(message.tool_calls)], tools=[tool]
    )
    assert again.choices[0].message.content == ANSWER


def test_choices_that_forbid_force_and_limit(client: Any) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed")
    words: Any = [{"role": "user", "content": "Just words, no tools please."}]
    named = {"type": "function", "function": {"name": "Weather"}}
    ask = client.chat.completions.create
    for choice in ("required", named):
        forced = ask(model="scripted", messages=words, tools=[TOOL], tool_choice=choice).choices[0]
        [call] = forced.message.tool_calls
        assert Weather.model_validate_json(call.function.arguments)
        assert (forced.message.content, forced.finish_reason) == (None, "tool_calls")
    assert ask(model="scripted", messages=words, tools=[TOOL]).choices[0].message.content == "Just words."
    one = ask(model="scripted", messages=MESSAGES, tools=[TOOL], parallel_tool_calls=False).choices[0]
    assert len(one.message.tool_calls) == 1
    none = ask(model="scripted", messages=MESSAGES, tools=[TOOL], tool_choice="none").choices[0]
    assert (none.message.tool_calls, none.finish_reason) == (None, "stop")
    assert "Weather" in none.message.content


def test_a_call_that_is_cut_is_content(client: Any, llm: LLM) -> None:
    choice = client.chat.completions.create(
        model="scripted", messages=MESSAGES, tools=[TOOL], max_tokens=25
    ).choices[0]  # fmt: skip
    assert (choice.finish_reason, choice.message.tool_calls) == ("length", None)
    assert choice.message.content.startswith(content_of(llm) or '{"name"')


def test_tools_and_a_form_of_the_answer_go_together(client: Any) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed")
    said: Any = [{"role": "user", "content": "Answer as JSON."}]
    schema = {"type": "object", "properties": {"n": {"const": 7}}, "required": ["n"], "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    answer = client.chat.completions.create(
        model="scripted", messages=said, tools=[TOOL], response_format=form
    ).choices[0]  # fmt: skip
    assert (answer.message.tool_calls, answer.message.content) == (None, '{"n": 7}')


def test_langchain(url: str) -> None:
    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    from langchain_core.messages import HumanMessage, ToolMessage

    model = langchain.ChatOpenAI(base_url=f"{url}/v1", api_key="none", model="scripted", max_retries=0).bind_tools(
        [Weather]
    )
    asked = model.invoke([HumanMessage(PROMPT)])
    assert [(call["name"], call["args"]) for call in asked.tool_calls] == [("Weather", {"city": c}) for c in CITIES]
    found = [ToolMessage(f"sunny in {call['args']['city']}", tool_call_id=call["id"]) for call in asked.tool_calls]
    assert model.invoke([HumanMessage(PROMPT), asked, *found]).content == ANSWER
    whole = None
    for chunk in model.stream([HumanMessage(PROMPT)]):
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    assert [call["args"] for call in whole.tool_calls] == [{"city": city} for city in CITIES]


@pytest.mark.slow
def test_litellm(url: str) -> None:
    litellm = pytest.importorskip("litellm", reason="litellm is not installed")
    ask: Any = {
        "model": "openai/scripted",
        "api_base": f"{url}/v1",
        "api_key": "none",
        "tools": [TOOL],
        "num_retries": 0,
    }
    message = litellm.completion(messages=MESSAGES, **ask).choices[0].message
    assert [json.loads(call.function.arguments) for call in message.tool_calls] == [{"city": c} for c in CITIES]
    told = litellm.completion(messages=[*MESSAGES, message, *results(message.tool_calls)], **ask)
    assert told.choices[0].message.content == ANSWER
    chunks = list(litellm.completion(messages=MESSAGES, stream=True, **ask))
    rebuilt = litellm.stream_chunk_builder(chunks, messages=MESSAGES).choices[0]
    assert [json.loads(call.function.arguments) for call in rebuilt.message.tool_calls] == [{"city": c} for c in CITIES]
    assert rebuilt.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("change", "param", "message"),
    [
        ({"tools": [{**TOOL, "type": "web_search"}]}, "tools.0.type", "not supported"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools.0.function.name", "letters"),
        ({"tool_choice": "required"}, "tool_choice", "needs tools"),
        ({"tools": [TOOL], "ewe": {"stream": "draft"}}, "ewe.stream", "not supported yet"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice", "'x'"),
        ({"functions": [{"name": "f"}]}, "functions", "use tools"),
        ({"messages": [{"role": "function", "content": "x"}]}, "messages.0.role", "not supported yet"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0", "tool_call_id"),
        ({"messages": [{"role": "user", "content": None}]}, "messages.0", "content"),
        *(
            ({"messages": [{"role": "user", "content": [{"type": kind}]}]}, "messages.0.content", f"yet: {what}")
            for kind, what in (("image_url", "images"), ("input_audio", "audio"), ("file", "files"), ("x", "parts"))
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}]}]},
            "messages.0.tool_calls.0.function.arguments", "not JSON",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_refused_in_words(url: str, change: Any, param: str, message: str) -> None:
    answer = http.post(f"{url}/v1/chat/completions", json={"messages": MESSAGES, **change})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert message in error["message"]


def test_a_server_without_a_parser_refuses_tools(llm: LLM) -> None:
    with serving(create_app(llm, ServerSettings(tool_parser="none"))) as address:
        answer = http.post(f"{address}/v1/chat/completions", json={"messages": MESSAGES, "tools": [TOOL]})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "tools")


def test_tokenize_counts_tools_too(url: str) -> None:
    body = {"messages": MESSAGES, "tools": [TOOL]}
    read = http.post(f"{url}/v1/chat/completions", json={**body, "max_tokens": 1}).json()["usage"]["prompt_tokens"]
    assert http.post(f"{url}/tokenize", json=body).json()["count"] == read
    assert http.post(f"{url}/tokenize", json={"messages": MESSAGES}).json()["count"] < read
    refused = http.post(f"{url}/tokenize", json={"prompt": "A text.", "tools": [TOOL]})
    assert (refused.status_code, "tools" in refused.text) == (400, True)
