"""What the forms of Anthropic, Cohere and vLLM say at their edges: odd calls, thinking, formats, expressions."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

pytest.importorskip("fastapi")

from pydantic import ValidationError

from ewe.server.anthropic_cohere.anthropic_events import MessageEvents
from ewe.server.schemas.anthropic_answers import AnswerBlock, ThinkingBlock, ToolUseBlock
from ewe.server.schemas.chat_schemas import Message
from ewe.server.schemas.cohere_messages import InputMessage
from ewe.server.schemas.cohere_schemas import FormatOfAnswer
from ewe.server.schemas.structured_outputs import StructuredOutputs
from ewe.types import ToolCall


def test_a_call_with_half_of_a_surrogate_pair_can_be_sent() -> None:
    block = ToolUseBlock.of(ToolCall("a", "weather", r'{"city": "Ly\ud83don", "n": [1, null]}'))
    assert json.loads(block.model_dump_json())["input"] == {"city": "Ly?on", "n": [1, None]}


REFUSED = {"type": "refusal", "refusal": "I will not."}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"content": None, "refusal": "I will not."}, "I will not."),
        ({"content": [REFUSED]}, "I will not."),
        ({"content": [{"type": "text", "text": "No."}, REFUSED]}, "No.\nI will not."),
        ({"content": "Yes.", "refusal": None}, "Yes."),
    ],
)
def test_what_was_said_in_refusing_is_a_text(said: dict[str, Any], told: str) -> None:
    assert Message.model_validate({"role": "assistant", **said}).for_template["content"] == told


@pytest.mark.parametrize("said", [{"content": [REFUSED]}, {"content": "Yes.", "refusal": "I will not."}])
def test_users_do_not_refuse(said: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="only an assistant's message may have one"):
        Message.model_validate({"role": "user", **said})


def test_each_thinking_block_is_signed_for_itself() -> None:
    events = MessageEvents()
    records = events.thinking("Hm") + events.thinking(".") + events.block(AnswerBlock(text="A.")) + events.thinking("B")
    records += events.block(AnswerBlock(text="C."))
    assert re.findall(r'"signature":"(\w+)"', records) == [ThinkingBlock.of(text).signature for text in ("Hm.", "B")]


def test_a_schema_goes_with_json_only() -> None:
    assert FormatOfAnswer(type="json_object", json_schema={}).json_schema == {}
    with pytest.raises(ValidationError, match="json_schema"):
        FormatOfAnswer(type="text", json_schema={"type": "object"})


@pytest.mark.parametrize(("data", "told"), [("it rains", "it rains"), ({"sky": "grey"}, "sky: grey")])
def test_a_result_of_a_tool_is_fields_or_a_text(data: Any, told: str) -> None:
    content = [{"type": "document", "document": {"data": data}}]
    message = InputMessage.model_validate({"role": "tool", "tool_call_id": "a", "content": content})
    assert message.in_openai_form.content == told


@pytest.mark.parametrize("regex", [r"a\\/b", r"a\/b", "a/b", r"^a\\$", r"^a\$", r"a\\\$", "^a$"])
def test_an_expression_means_the_same_in_a_grammar(regex: str) -> None:
    library = pytest.importorskip("llguidance", reason="llguidance is not installed")
    lark = StructuredOutputs(regex=regex).lark
    grammar = library.LLMatcher.grammar_from_lark(lark)
    assert library.LLMatcher.validate_grammar(grammar) == ""
    [inner] = re.findall("^start: /(.*)/$", str(lark))
    for text in ("a/b", r"a\/b", "a\\", "a$", r"a\$", "a"):
        assert bool(re.fullmatch(inner, text)) == bool(re.fullmatch(regex, text))
