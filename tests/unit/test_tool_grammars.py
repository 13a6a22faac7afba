"""Grammars of tool calls: what they let a model write, with markers that are tokens and with spelled ones."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llguidance", reason="llguidance is not installed")

from tokenizers import AddedToken
from transformers import AutoTokenizer

from ewe.engine.sampling.grammar import Grammars
from ewe.text.tool_calls.template import FORMATS
from ewe.text.tool_calls.tools import ToolChoice, ToolRequest

EOS = 1
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
TOKENS = {"spelled": (), "hermes": ("<tool_call>", "</tool_call>"), "mistral": ("[TOOL_CALLS]", "[ARGS]")}


@cache
def tokenizer_with(kind: str) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(Path(__file__).parents[2] / "ewe" / "evaluation" / "world" / "model")
    special = kind == "mistral"
    tokenizer.add_tokens([AddedToken(text, special=special, normalized=False) for text in TOKENS[kind]])
    return tokenizer, Grammars(tokenizer, len(tokenizer) + 2, frozenset({EOS}))


def allows(
    kind: str, form: str, text: str, choice: ToolChoice = "auto", strict: bool = True, answer: Any = None
) -> bool:
    """Whether an answer may be this text, and end there."""
    tokenizer, grammars = tokenizer_with(kind)
    tools = [{"type": "function", "function": {"name": n, "parameters": SCHEMA, "strict": strict}} for n in ("f", "g")]
    request = ToolRequest.from_openai(tools, choice)
    assert request is not None
    token_ids = {text: tokenizer.convert_tokens_to_ids(text) for text in TOKENS[kind]}
    grammar = grammars.of_lark(FORMATS[form].grammar(request, token_ids, answer))
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    for place, token_id in enumerate([*ids, EOS]):
        assert grammar.follow(ids[:place]) == ""
        if not grammar.allowed[token_id]:
            return False
    return True


def hermes(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


NAMED: Any = {"type": "function", "function": {"name": "g"}}


@pytest.mark.parametrize("kind", ["spelled", "hermes"])
def test_hermes(kind: str) -> None:
    good, wrong = hermes("f", '{"a": 1}'), hermes("f", '{"a": 3}')
    for text in ("", "Hello. ", good, f"Hi.\n{good}", f"{good}\n{good}"):
        assert allows(kind, "hermes", text), text
    for text in (wrong, f"{good}\n{wrong}", hermes("h", "{}"), hermes("f", '{"a": 1, "b": 2}'), f"{good} Hi."):
        assert not allows(kind, "hermes", text), text
    assert allows(kind, "hermes", good, "required")
    assert not any(allows(kind, "hermes", text, "required") for text in ("", "Hi.", f"Hi. {good}", f"{good}\n{good}"))
    assert allows(kind, "hermes", hermes("g", '{"a": 2}'), NAMED)
    assert not allows(kind, "hermes", good, NAMED)
    schema = {"type": "array", "items": {"const": 7}, "maxItems": 1}
    assert allows(kind, "hermes", "[7]", answer=schema)
    assert allows(kind, "hermes", good, answer=schema)
    assert allows(kind, "hermes", wrong, answer=schema, strict=False)
    assert not allows(kind, "hermes", "Hi.", answer=schema)


def test_llama3() -> None:
    good, wrong = '{"name": "f", "parameters": {"a": 1}}', '{"name": "f", "parameters": {"a": 3}}'
    for text in ("Hello.", good, f"{good}; {good}"):
        assert allows("spelled", "llama3", text), text
    assert not any(allows("spelled", "llama3", text) for text in (wrong, '{"b": 1}', f"{good}; {wrong}"))
    assert allows("spelled", "llama3", good, "required")
    assert not any(allows("spelled", "llama3", text, "required") for text in ("Hello.", f"{good}; {good}"))
    schema = {"type": "object", "properties": {"n": {"const": 7}}, "required": ["n"]}
    assert allows("spelled", "llama3", '{"n": 7}', answer=schema)
    assert allows("spelled", "llama3", f"<|python_tag|>{good}", answer=schema)


def test_mistral_in_the_form_that_its_tokens_show() -> None:
    old, new = '[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}]', '[TOOL_CALLS]f[ARGS]{"a": 1}'
    for kind, good, other in (("spelled", old, new), ("mistral", new, old)):
        for text in ("Hello.", good, f"Hi. {good}"):
            assert allows(kind, "mistral", text), text
        assert not any(allows(kind, "mistral", text) for text in (other, good.replace("1", "3")))
        assert allows(kind, "mistral", good, "required")
        assert not any(allows(kind, "mistral", text, "required") for text in ("Hello.", "", f"{new}{new}"))
    assert allows("mistral", "mistral", f"{new}{new}")
    assert allows("spelled", "mistral", old[:-1] + ', {"name": "g", "arguments": {"a": 2}}]')
