"""Answers that are begun for a model: which of its words belong to the sentence that was begun, and which prompts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from e2e.script_rig import tokenizer_of
from unit.engine_tokenizers import byte_level

from ewe.engine.answer_text.output_text import OutputText
from ewe.engine.sampling.sampler import Token
from ewe.errors import InvalidRequestError
from ewe.text.prefill import in_context, open_sentence
from ewe.text.sentences import SentenceSplitter
from ewe.text.tool_calls.template import ChatTemplate

TOKENIZER = byte_level()


def written(prefill: str, text: str) -> OutputText:
    output = OutputText(TOKENIZER, SentenceSplitter(), [], prefill=prefill)
    for token_id in TOKENIZER(text, add_special_tokens=False)["input_ids"]:
        output.append(Token(token_id, -0.1, 0.0))
    return output


@pytest.mark.parametrize(
    ("prefill", "text", "sentences"),
    [
        ("", "It is sunny. It rains. Yes", ["It is sunny.", "It rains."]),
        ("Lyon is old. It is", " sunny. It rains. Yes", ["sunny.", "It rains."]),
        ("Lyon is old.", " It is sunny. It rains. Yes", ["It is sunny.", "It rains."]),
        ("He lives in St", ". Louis now. It rains. Yes", [". Louis now.", "It rains."]),
        ("It costs 3", ".5 million. Yes, it does. Yes", [".5 million.", "Yes, it does."]),
        (" \n", "It is sunny. Yes it is", ["It is sunny."]),
        ("It is sunny", ". It rains. Yes", [".", "It rains."]),
    ],
)
def test_sentences_are_those_of_the_whole_from_the_prefill_on(prefill: str, text: str, sentences: list[str]) -> None:
    output = written(prefill, text)
    output.find_sentences()
    assert [output.text_of(span) for span in output.sentences] == sentences
    # A rewind of the first one takes back what the model has written, and only that.
    start, kept = output.start_of(0)
    assert output.text[start:].startswith(sentences[0])
    assert output.end_of(kept) == start
    output.truncate(0)
    assert output.start_of(0) == (0, 0)


@pytest.mark.parametrize(
    ("prefill", "before", "sentence", "expected"),
    [
        ("", "A. ", "B c.", ("A. ", "B c.")),
        ("Lyon is old. It is", " ", "sunny.", ("Lyon is old. ", "It is sunny.")),
        ("Lyon is old.", " ", "It is sunny.", ("Lyon is old. ", "It is sunny.")),
        ("Lyon is old. It is", " sunny. ", "It rains.", ("Lyon is old. It is sunny. ", "It rains.")),
        ("So it is. " * 3000 + "It is", " ", "sunny.", ("So it is. " * 3000, "It is sunny.")),
        ("y" * 9000, " ", "is long.", ("y" * 5000, "y" * 4000 + " is long.")),
    ],
)
def test_the_sentence_that_was_begun_is_seen_whole(
    prefill: str, before: str, sentence: str, expected: tuple[str, str]
) -> None:
    assert in_context(prefill, before, sentence) == expected


def test_what_was_begun_last_is_open() -> None:
    assert open_sentence("Lyon is old. It is ") == "It is "
    assert open_sentence(" ") == ""


# --- Prompts


def template(text: str, kind: str = "none") -> ChatTemplate:
    tokenizer = tokenizer_of(kind)
    tokenizer.chat_template = text
    return ChatTemplate(tokenizer, "a-model")


CHATML = """{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<eos>{% endfor %}\
{% if add_generation_prompt %}<|assistant|>{% endif %}"""
# As Qwen3 does, and DeepSeek: what was reasoned is written anew, or left out.
REASONED = """{% for m in messages %}<|{{ m.role }}|>{% set said = m.content.split('</think>') %}\
{% if m.role == 'assistant' and said | length > 1 %}<think>{{ said[0].split('<think>')[-1].strip() }}</think>\
{{ said[-1].lstrip() }}{% else %}{{ m.content }}{% endif %}<eos>{% endfor %}"""
LEFT_OUT = """{% for m in messages %}<|{{ m.role }}|>{{ m.content.split('</think>')[-1] | trim }}<eos>{% endfor %}"""


def begun(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": "How is Lyon?"}, {"role": "assistant", "content": text}]


@pytest.mark.parametrize("text", ["It is", "It is ", " It is\n", "It is\ufdd1 so", "<", "It ends: <eo"])
def test_a_prompt_ends_as_its_last_message_does(text: str) -> None:
    prompt = template(CHATML).render(begun(text), continues=True)
    assert prompt.replace("\ufdd0", "") == f"<|user|>How is Lyon?<eos><|assistant|>{text}"


def test_marks_of_our_own_are_no_text() -> None:
    assert template(CHATML).render(begun("It \ufdd0is"), continues=True).endswith("<|assistant|>It \ufffdis")


def test_a_template_may_trim_what_stands_before_and_leave_out_what_was_reasoned() -> None:
    thought = "<think>\nWell. \n</think>\n\nIt is "
    assert template(REASONED, "may-think").render(begun(thought), continues=True).endswith("<think>Well.</think>It is ")
    assert template(LEFT_OUT, "may-think").render(begun(thought), continues=True).endswith("<|assistant|>It is ")
    open_thought = template(CHATML, "may-think").render(begun("<think>\nWell"), continues=True)
    assert open_thought.endswith("<|assistant|><think>\nWell")


@pytest.mark.parametrize(
    "text",
    [
        "{% for m in messages if m.role == 'user' %}<|user|>{{ m.content }}{% endfor %}<|assistant|>",
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content[:4] }}{% endfor %}",
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content | replace('is', 'was') }}{% endfor %}",
    ],
)
def test_a_template_that_changes_it_is_named(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="messages: the chat template of the model 'a-model'"):
        template(text).render(begun("It is old"), continues=True)


def test_results_of_tools_may_stand_before_it() -> None:
    call = {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": '{"a": "<|user|>"}'}}
    messages: Any = [
        {"role": "user", "content": "How is Lyon?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call00001", "content": "Sunny."},
        {"role": "assistant", "content": "It is"},
    ]
    prompt = template(CHATML).render(messages, continues=True)
    assert prompt.endswith("</tool_response><eos><|assistant|>It is")


def test_the_engine_is_not_asked_for_the_whole_of_a_code_block() -> None:
    from ewe.engine.policy_answer import Answer

    sequence: Any = SimpleNamespace(
        output_text=SimpleNamespace(text="x = 1\n```\nIt is so."),
        request=SimpleNamespace(original=SimpleNamespace(prefill="Here:\n```\n")),
    )
    answer = Answer(sequence, True, False, True, None, False, None)
    [(start, end)] = answer.code_blocks
    assert start < 0
    assert sequence.output_text.text[:end] == "x = 1\n```"
