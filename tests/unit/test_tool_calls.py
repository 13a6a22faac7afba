"""Tool calls in texts: however a text is cut the calls and the content are the same, and no text is lost."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from ewe.errors import InvalidRequestError
from ewe.text.tool_calls.format import CallFormat, FunctionCall
from ewe.text.tool_calls.formats import FORMATS
from ewe.text.tool_calls.messages import for_plain_template, for_template
from ewe.text.tool_calls.tools import Tool
from ewe.text.tool_calls.use import CallReader, Piece

NAMES = ("get_weather", "f", "look-up.2")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(st.tuples(st.sampled_from(NAMES), st.dictionaries(TEXTS, VALUES, max_size=3)), min_size=1, max_size=3)
# What texts with calls are made of, right and wrong.
SCRAPS = st.lists(
    st.sampled_from(
        [
            *("<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "<|python_tag|>", ";", "; "),
            *('{"name": "f", "arguments": {"a": [1]}}', '{"name": "f", "parameters": {}}', '[{"name": "f"}]', "f"),
            *('{"name": "f", "arguments": {"a": "}"', "<tool_", "{", "}", "[]", "[", "]", '"', " "),
            *("\\", "\n", "Hi.", "NaN", "1e999"),
        ]
    )
    | st.text(max_size=4),
    max_size=14,
).map("".join)  # fmt: skip


def written(form: str, name: str, arguments: Any) -> str:
    if form == "llama3":
        return json.dumps({"name": name, "parameters": arguments})
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


def text_of(form: str, calls: list[tuple[str, Any]]) -> str:
    objects = [written(form, *call) for call in calls]
    if form == "hermes":
        return "\n".join(f"<tool_call>\n{item}\n</tool_call>" for item in objects)
    if form == "llama3":
        return "; ".join(objects)
    return f"[TOOL_CALLS] [{', '.join(objects)}]"


def read(form: CallFormat, pieces: list[str], parallel: bool = True) -> list[Piece]:
    """What is read of a text that comes in pieces, content put together."""
    reader = CallReader(form, frozenset(NAMES), parallel)
    found: list[Piece] = []
    for item in [*(item for piece in pieces for item in reader.feed(piece)), *reader.finish()]:
        if isinstance(item, str) and found and isinstance(found[-1], str):
            found[-1] += item
        else:
            found.append(item)
    assert reader.num_calls >= sum(isinstance(item, FunctionCall) for item in found)
    return found


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[begin:end] for begin, end in pairwise(edges)]


@pytest.mark.parametrize("name", FORMATS)
@given(text=SCRAPS, places=st.lists(st.integers(0, 1 << 16), max_size=8))
@example(text="[TOOL_CALLS]f[ARGS] {}", places=[19])
@example(text="[TOOL_CALLS]f[CALL_ID]a1 [ARGS]{} x", places=[5, 20, 24])
def test_any_cut_gives_the_same_and_nothing_is_lost(name: str, text: str, places: list[int]) -> None:
    form = FORMATS[name]
    whole = read(form, [text])
    assert read(form, cut(text, places)) == whole
    assert read(form, list(text)) == whole, "one character at a time"
    if not any(isinstance(item, FunctionCall) for item in whole):
        assert "".join(map(str, whole)) == text
    for item in whole:
        if isinstance(item, FunctionCall):
            assert isinstance(json.loads(item.arguments), dict)


@pytest.mark.parametrize("name", FORMATS)
@examples(25)
@given(calls=CALLS, before=st.sampled_from(["", "Let me see.", "One moment; {so}.\n\n"]), data=st.data())
def test_what_was_written_is_read(name: str, calls: list[tuple[str, Any]], before: str, data: st.DataObject) -> None:
    before = "" if name == "llama3" else before
    text = before + text_of(name, calls)
    pieces = cut(text, data.draw(st.lists(st.integers(0, 1 << 16), max_size=6)))
    (*content,) = (item for item in read(FORMATS[name], pieces) if isinstance(item, str))
    found = [item for item in read(FORMATS[name], pieces) if isinstance(item, FunctionCall)]
    assert [(call.name, json.loads(call.arguments)) for call in found] == calls
    assert "".join(content) == before.rstrip()
    [only] = [item for item in read(FORMATS[name], pieces, parallel=False) if isinstance(item, FunctionCall)]
    assert only == found[0]


@examples(25)
@given(calls=CALLS)
def test_mistrals_newer_form(calls: list[tuple[str, Any]]) -> None:
    for between in ("", "[ARGS]", "[CALL_ID]abc123XYZ[ARGS]"):
        text = "".join(f"[TOOL_CALLS]{name}{between}{json.dumps(arguments)}" for name, arguments in calls)
        found = read(FORMATS["mistral"], list(text))
        assert [(call.name, json.loads(call.arguments)) for call in found if not isinstance(call, str)] == calls


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("hermes", '<tool_call>{"name": "f"}', [FunctionCall("f", "{}")]),
        ("hermes", '<tool_call>{"arguments": "{\\"a\\": 1}", "name": "f"}', [FunctionCall("f", '{"a": 1}')]),
        ("hermes", 'Hi. <tool_call>{"name": "f", "arguments": [1]}', None),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>', None),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": "two\nlines"}}',
         [FunctionCall("f", '{"a": "two\\nlines"}')]),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": "cut', None),
        ("hermes", '<tool_call>{"name": "f"}\n</tool_ca', [FunctionCall("f", "{}")]),
        ("hermes", 'a</tool_call> b <tool_call>{"name": "f"}</tool_call> c',
         ["a</tool_call> b", FunctionCall("f", "{}"), " c"]),
        ("llama3", '{"name": "unknown", "parameters": {}}', None),
        ("llama3", '{"answer": {"name": "f"}}', None),
        ("llama3", 'Say {"name": "f", "parameters": {}}', None),
        ("llama3", '<|python_tag|>{"name": "f", "parameters": {}}', [FunctionCall("f", "{}")]),
        ("mistral", "[TOOL_CALLS] []", None),
        ("mistral", "[TOOL_CALLS]f(1)", None),
    ],
)  # fmt: skip
def test_odd_texts(name: str, text: str, expected: list[Piece] | None) -> None:
    assert read(FORMATS[name], list(text)) == ([text] if expected is None else expected)


@pytest.mark.parametrize("name", FORMATS)
def test_deep_and_long_nonsense_is_content(name: str) -> None:
    start = {"hermes": "<tool_call>", "llama3": "", "mistral": "[TOOL_CALLS]"}[name]
    for text in (start + '{"name": "f", "arguments": ' + "[" * 50_000, start + '{"a": ' + "1" * 9999 + "}"):
        assert read(FORMATS[name], [text]) == [text]


def test_no_half_marker_is_content_while_it_may_become_one() -> None:
    reader = CallReader(FORMATS["hermes"], frozenset())
    assert reader.feed("See <tool") == ["See"]
    assert reader.feed("_box") == [" <tool_box"]
    assert reader.feed(" <tool_call") == []
    assert reader.finish() == [" <tool_call"]


CALLED: Any = {
    "role": "assistant",
    "content": "I look.",
    "tool_calls": [{"id": "call_12345678", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
}
RESULT: Any = {"role": "tool", "tool_call_id": "call_12345678", "content": "9"}


def test_templates_get_objects_names_and_short_ids() -> None:
    called, result = for_template([CALLED, RESULT])
    [call] = called["tool_calls"]
    assert call["function"]["arguments"] == {"a": 1}
    assert call["id"] == result["tool_call_id"]
    assert len(call["id"]) == 9
    assert result["name"] == "f"
    kept = {**CALLED, "content": None, "tool_calls": [{**CALLED["tool_calls"][0], "id": "a1B2c3D4e"}]}
    [short] = for_template([kept])
    assert (short["content"], short["tool_calls"][0]["id"]) == ("", "a1B2c3D4e")


def test_templates_that_know_no_tools_get_them_in_words() -> None:
    said = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi."}, CALLED, RESULT, RESULT]
    system, user, called, results = for_plain_template(said, [Tool("f", "Does it.")])
    assert system["content"].startswith("Be kind.\n\n")
    assert '"description": "Does it."' in system["content"]
    assert user == said[1]
    assert called["content"] == 'I look.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    assert results == {"role": "user", "content": "\n".join(["<tool_response>\n9\n</tool_response>"] * 2)}


@pytest.mark.parametrize("arguments", ["{", "[1]", "3", 5])
def test_arguments_that_are_no_object_are_refused_by_their_place(arguments: Any) -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": arguments}}
    with pytest.raises(InvalidRequestError, match=r"messages\.0\.tool_calls\.0\.function\.arguments"):
        for_template([{"role": "assistant", "tool_calls": [call]}])
