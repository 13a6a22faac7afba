"""What a model reasons before it answers: leading tokens that have no part in the text, however it goes back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast
from unit.engine_tokenizers import byte_level, sentencepiece_like

from ewe.engine.answer_text.output_text import OutputText
from ewe.engine.answer_text.reasoning import Reasoning, reasoning_after
from ewe.engine.sampling.sampler import Token
from ewe.text.reasoning_marks import reasoning_marks
from ewe.text.sentences import SentenceSplitter


def thinking(make: Any) -> Any:
    backend = Tokenizer.from_str(make().backend_tokenizer.to_str())
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=make().eos_token)
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in ("<think>", "</think>")])
    return tokenizer


TOKENIZERS = {"byte level": thinking(byte_level), "sentencepiece": thinking(sentencepiece_like)}
BYTES = TOKENIZERS["byte level"]
MARKS = reasoning_marks(BYTES)
assert MARKS is not None


def text_of(ids: list[int], tokenizer: Any = BYTES, prompt: str = "Hi.", **options: Any) -> OutputText:
    prompt_ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    reasoning = reasoning_after(reasoning_marks(tokenizer), tokenizer, prompt_ids)
    output = OutputText(tokenizer, SentenceSplitter(), prompt_ids, reasoning=reasoning, **options)
    for token_id in ids:
        output.append(Token(token_id, -0.1, 0.0))
    return output


def ids_of(text: str, tokenizer: Any = BYTES) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_text_begins_behind_it(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    output = text_of(ids_of("<think>\nThe sky. It is blue.\n</think>\n\nIt is blue. And so on", tokenizer), tokenizer)
    output.find_sentences()
    assert output.reasoning is not None
    assert output.reasoning.text == "The sky. It is blue."
    assert output.text.strip() == "It is blue. And so on"
    [span] = output.sentences
    assert output.text_of(span) == "It is blue."
    assert span.first_token >= output.reasoning.num_tokens
    # A rewind to the first sentence keeps what was reasoned.
    _, kept = output.start_of(0)
    output.truncate(kept)
    assert kept >= output.reasoning.num_tokens
    assert (output.text.strip(), output.reasoning.text) == ("", "The sky. It is blue.")


def test_a_prompt_may_have_begun_it_or_ended_it() -> None:
    begun = text_of(ids_of("A thought.\n</think>\n\nAn answer."), prompt="Hi.<think>\n")
    assert begun.reasoning is not None
    assert (begun.reasoning.text, begun.text) == ("A thought.", "An answer.")
    ended = text_of(ids_of("An <think> answer."), prompt="Hi.<think>\n\n</think>\n\n")
    assert (ended.reasoning, ended.text) == (None, "An <think> answer.")


def test_marks_later_in_the_text_are_text() -> None:
    output = text_of(ids_of("It is\n\n<think>so</think>\n\nno."))
    assert output.text == "It is\n\n<think>so</think>\n\nno."
    assert output.reasoning is not None
    assert (output.reasoning.text, output.reasoning.num_tokens) == ("", 0)


def test_stop_strings_are_not_looked_for_in_it() -> None:
    output = text_of(ids_of("<think>STOP here</think>Go on. STOP"), stop=["STOP"])
    assert output.text == "Go on. "


def test_one_that_never_ends_leaves_no_text() -> None:
    output = text_of(ids_of("<think>on and on"))
    assert output.is_reasoning
    output.finish()
    assert not output.is_reasoning
    assert output.reasoning is not None
    assert (output.text, output.reasoning.text) == ("", "on and on")


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "\n\n", " ", "a thought", "Yes.", "é"]), max_size=12), st.data()
)
def test_going_back_is_as_if_nothing_had_followed(pieces: list[str], data: st.DataObject) -> None:
    ids = [token_id for piece in pieces for token_id in ids_of(piece)]
    kept = data.draw(st.integers(0, len(ids)))
    whole, begun = text_of(ids), text_of(ids[:kept])
    twin = whole.fork()
    whole.truncate(kept)
    assert state(whole) == state(begun)
    assert state(twin) == state(text_of(ids))
    for token_id in ids[kept:]:
        whole.append(Token(token_id, -0.1, 0.0))
    assert state(whole) == state(twin)


def state(output: OutputText) -> tuple[Any, ...]:
    reasoning = output.reasoning
    assert isinstance(reasoning, Reasoning)
    ends = [output.end_of(number) for number in range(len(output) + 1)]
    return output.text, ends, output.is_reasoning, reasoning.text, reasoning.num_tokens


def test_prompts_are_closed_only_where_they_are_open() -> None:
    assert MARKS is not None
    assert MARKS.closed("Hi.<think>\n") == "Hi.<think>\n\n</think>\n\n"
    assert MARKS.closed("Hi. <think> and more") == "Hi. <think> and more"
    assert reasoning_marks(byte_level()) is None
    assert reasoning_marks(None) is None
