"""Tool calls through LLM.chat and the engine: templates, formats, and sentences around calls."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from script_rig import scripted_llm
from unit.engine_parts import Answers

from ewe import LLM, AsyncLLM, SamplingParams
from ewe.errors import InvalidRequestError, SchemaError
from ewe.types import Verdict

PARAMS = SamplingParams(max_tokens=400)
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 12}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
ASKED: Any = [{"role": "user", "content": "How is the weather in Lyon?"}]
CALLS = {
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lyon"}}\n</tool_call>',
    "llama3": '{"name": "get_weather", "parameters": {"city": "Lyon"}}',
    "mistral": '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Lyon"}}]',
    "mistral-new": '[TOOL_CALLS]get_weather[ARGS]{"city": "Lyon"}',
    "none": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lyon"}}\n</tool_call>',
}
FEEDBACK = {"feedback": {"verify_every": 4, "retrieve_every": 4, "max_attempts": 3}}


@pytest.mark.parametrize("kind", CALLS)
def test_a_round_of_calls_in_every_format(kind: str) -> None:
    prompts: list[str] = []

    def script(prompt: str, num_units: int) -> str:
        if not prompts or prompts[-1] != prompt:
            prompts.append(prompt)
        return "It is sunny." if "sunny, 20" in prompt else CALLS[kind]

    with scripted_llm(kind, script) as llm:
        [asked] = llm.chat(ASKED, PARAMS, tools=[WEATHER])
        [call] = asked.tool_calls
        assert (asked.text, asked.finish_reason, call.name) == ("", "stop", "get_weather")
        assert json.loads(call.arguments) == {"city": "Lyon"}
        assert len(call.id) == 9
        history = [
            *ASKED,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "from_elsewhere-1", "type": "function",
                     "function": {"name": call.name, "arguments": call.arguments}}
                ],
            },
            {"role": "tool", "tool_call_id": "from_elsewhere-1", "content": "sunny, 20"},
        ]  # fmt: skip
        [told] = llm.chat(history, PARAMS, tools=[WEATHER])
        assert (told.text, told.tool_calls) == ("It is sunny.", ())
        [without] = llm.chat(history, PARAMS)
        assert without.text == "It is sunny."
    for prompt in prompts[:2]:
        assert "The weather of a city." in prompt
    assert '{"city": "Lyon"}' in prompts[1], "templates get arguments as objects"
    result = "<tool_response>\nsunny, 20\n</tool_response>" if kind == "none" else " get_weather)"
    assert result in prompts[1]


def test_sentences_around_a_call_are_checked_and_what_is_in_it_is_not() -> None:
    seen: list[Any] = []

    def script(prompt: str, num_units: int) -> str:
        first = "Lyon is in France." if num_units else "Lyon is in Spain."
        arguments = '{"city": "Paris is in Italy. Rome is in Peru. So it is."}'
        return f'{first} I look it up. <tool_call>{{"name": "get_weather", "arguments": {arguments}}}</tool_call>'

    verifier = Answers({"Lyon is in Spain.": [Verdict.REFUTED]})
    with scripted_llm("hermes", script, FEEDBACK, verifier=verifier) as llm:
        [answer] = llm.chat(ASKED, PARAMS, tools=[WEATHER])
        seen = [request.sentence for request in verifier.seen]
        assert answer.text == "Lyon is in France. I look it up."
        assert [sentence.text for sentence in answer.sentences] == ["Lyon is in France.", "I look it up."]
        assert answer.sentences[0].removed == ("Lyon is in Spain.",)
        assert set(seen) == {"Lyon is in Spain.", "Lyon is in France.", "I look it up."}
        assert json.loads(answer.tool_calls[0].arguments)["city"].startswith("Paris is in Italy.")
        # Without tools the same text is prose.
        [plain] = llm.chat(ASKED, PARAMS)
        assert "Rome is in Peru." in [sentence.text for sentence in plain.sentences]


def test_what_only_begins_like_a_call_is_checked_like_any_text() -> None:
    verifier = Answers({})
    text = "So it goes. <tool_call> is a tag. Rome is in Peru."
    with scripted_llm("hermes", lambda prompt, units: text, FEEDBACK, verifier=verifier) as llm:
        [answer] = llm.chat(ASKED, PARAMS, tools=[WEATHER])
    assert (answer.text, answer.tool_calls) == (text, ())
    assert [sentence.text for sentence in answer.sentences][-1] == "Rome is in Peru."
    assert "Rome is in Peru." in [request.sentence for request in verifier.seen]


def test_a_call_that_is_cut_is_no_prose_either() -> None:
    verifier = Answers({})
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Rome is in Peru. So it is. And'
    with scripted_llm("hermes", lambda prompt, units: text + " so on" * 99, FEEDBACK, verifier=verifier) as llm:
        [answer] = llm.chat(ASKED, SamplingParams(max_tokens=90), tools=[WEATHER])
    assert answer.finish_reason == "length"
    assert answer.text.startswith(text)
    assert (answer.sentences, answer.tool_calls, verifier.seen) == ((), (), [])


def test_a_choice_of_none_leaves_the_text_alone() -> None:
    with scripted_llm("hermes", lambda prompt, units: CALLS["hermes"]) as llm:
        [answer] = llm.chat(ASKED, PARAMS, tools=[WEATHER], tool_choice="none")
    assert (answer.text, answer.tool_calls) == (CALLS["hermes"], ())


def test_the_async_interface() -> None:
    async def ask(llm: LLM) -> Any:
        opened = AsyncLLM.__new__(AsyncLLM)
        opened.llm = llm
        return await opened.chat(ASKED, PARAMS, tools=[WEATHER])

    with scripted_llm("hermes", lambda prompt, units: CALLS["hermes"]) as llm:
        [answer] = asyncio.run(ask(llm))
    assert answer.tool_calls[0].name == "get_weather"


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_a_forced_call_satisfies_its_schema_whatever_the_model_would_say(kind: str, choice: Any) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed")
    other = {"type": "function", "function": {"name": "other", "parameters": {"properties": {"n": {"const": 1}}}}}
    with scripted_llm(kind, lambda prompt, units: "I would rather talk.") as llm:
        [answer] = llm.chat(ASKED, PARAMS, tools=[WEATHER, other], tool_choice=choice)
    [call] = answer.tool_calls
    assert (answer.text, answer.finish_reason) == ("", "stop")
    assert call.name == "get_weather" or choice == "required"
    assert set(json.loads(call.arguments)) <= {"city", "n"}


def test_strict_functions_are_kept_to_even_where_no_call_is_demanded() -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed")
    wrong = 'Well. <tool_call>\n{"name": "get_weather", "arguments": {"town": 1}}\n</tool_call>'
    strict = {"type": "function", "function": {**WEATHER["function"], "strict": True}}
    with scripted_llm("hermes", lambda prompt, units: wrong) as llm:
        [loose] = llm.chat(ASKED, PARAMS, tools=[WEATHER])
        [kept] = llm.chat(ASKED, PARAMS, tools=[strict])
    assert json.loads(loose.tool_calls[0].arguments) == {"town": 1}
    assert kept.text == "Well."
    assert list(json.loads(kept.tool_calls[0].arguments)) == ["city"]
    with scripted_llm("hermes", lambda prompt, units: "No call.") as llm:
        assert llm.chat(ASKED, PARAMS, tools=[strict])[0].text == "No call."


@pytest.mark.parametrize(
    ("tools", "choice", "message"),
    [
        ([{"type": "web"}], "auto", "tools.0: only tools of the type 'function'"),
        ([WEATHER, WEATHER], "auto", "two of them have the same name"),
        ([{"type": "function", "function": {"name": "a b"}}], "auto", "tools.0.function.name"),
        ([WEATHER], {"type": "function", "function": {"name": "other"}}, "there is no tool 'other'"),
        ([WEATHER], "always", "none, auto, required or a function"),
        ([], "required", "'required' needs tools"),
    ],
)
def test_bad_tools_are_refused_in_words(tools: Any, choice: Any, message: str) -> None:
    with scripted_llm("hermes", lambda prompt, units: "x") as llm, pytest.raises(InvalidRequestError, match=message):
        llm.chat(ASKED, PARAMS, tools=tools, tool_choice=choice)


def test_without_llguidance_forced_calls_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "llguidance", None)
    with scripted_llm("hermes", lambda prompt, units: "x") as llm, pytest.raises(SchemaError, match="structured"):
        llm.chat(ASKED, PARAMS, tools=[WEATHER], tool_choice="required")


def test_the_built_in_model_makes_a_forced_call() -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed")
    with LLM(model="builtin") as llm:
        answers = llm.chat(ASKED, SamplingParams(max_tokens=80, n=2, temperature=0.9, seed=4), tools=[WEATHER],
                           tool_choice="required")  # fmt: skip
        llm.check_integrity()
    for answer in answers:
        [call] = answer.tool_calls
        assert (answer.text, answer.finish_reason, answer.stats.rewrites) == ("", "stop", 0)
        assert list(json.loads(call.arguments)) == ["city"]
