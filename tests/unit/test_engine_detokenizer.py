"""The incremental detokeniser against decoding everything at once, and its way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_tokenizers import TEXTS, PieceTokenizer, byte_level, sentencepiece_like
from hypothesis import given, settings
from hypothesis import strategies as st

from ewe.engine.answer_text.detokenizer import Detokenizer

TOKENIZERS = {"byte_level": byte_level, "sentencepiece_like": sentencepiece_like}
texts = st.lists(
    st.sampled_from([*" abcde.TheIn\n", "é", "€", "日", "。", "😀", "\u0301", *TEXTS[2].split()]),
    min_size=1,
    max_size=40,
).map("".join)


def feed(detokenizer: Detokenizer, ids: list[int]) -> str:
    return "".join(detokenizer.append(token_id) for token_id in ids)


def state(detokenizer: Detokenizer, num_tokens: int) -> Any:
    ends = [detokenizer.end_of(count) for count in range(num_tokens + 1)]
    places = [(detokenizer.tokens_ending_by(i), detokenizer.tokens_covering(i)) for i in range(len(detokenizer.text))]
    return detokenizer.text, ends, places, detokenizer.flush()


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=40)
@given(data=st.data(), prompt=texts, text=texts)
def test_pieces_add_up_to_the_whole_text(name: str, data: st.DataObject, prompt: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]()
    ids = tokenizer(prompt + " " + text, add_special_tokens=False)["input_ids"]
    cut = data.draw(st.integers(1, len(ids)).filter(lambda n: "\ufffd" not in tokenizer.decode(ids[:n])))
    detokenizer = Detokenizer(tokenizer, ids[:cut])

    pieces = feed(detokenizer, ids[cut:])

    whole = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    before = tokenizer.decode(ids[:cut], clean_up_tokenization_spaces=False)
    assert pieces == detokenizer.text == whole[len(before) :]
    assert detokenizer.flush() == ""


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=40)
@given(data=st.data(), text=texts)
def test_no_character_is_ever_shown_in_part(name: str, data: st.DataObject, text: str) -> None:
    tokenizer = TOKENIZERS[name]()
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    detokenizer = Detokenizer(tokenizer, [])
    whole = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    for token_id in ids:
        detokenizer.append(token_id)
        assert whole.startswith(detokenizer.text)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=40)
@given(data=st.data())
def test_truncated_equals_fresh_for_any_tokens(name: str, data: st.DataObject) -> None:
    """Also for ids that no text has: invalid bytes, special tokens, half characters."""
    tokenizer = TOKENIZERS[name]()
    some_ids = st.integers(0, len(tokenizer) - 1)
    prompt = data.draw(st.lists(some_ids, max_size=8))
    ids = data.draw(st.lists(some_ids, min_size=1, max_size=30))
    cut = data.draw(st.integers(0, len(ids)))
    then = data.draw(st.lists(some_ids, max_size=10))
    detokenizer = Detokenizer(tokenizer, prompt)
    feed(detokenizer, ids)
    detokenizer.add(detokenizer.flush())  # what the end of a text does

    detokenizer.truncate(cut)

    fresh = Detokenizer(tokenizer, prompt)
    feed(fresh, ids[:cut])
    assert state(detokenizer, cut) == state(fresh, cut)
    assert feed(detokenizer, then) == feed(fresh, then)
    assert state(detokenizer, cut + len(then)) == state(fresh, cut + len(then))


def test_flush_shows_bytes_that_never_became_a_character() -> None:
    tokenizer = byte_level()
    ids = tokenizer("a\U0001f600")["input_ids"]
    detokenizer = Detokenizer(tokenizer, [])

    assert feed(detokenizer, ids[:-1]) == "a"
    assert detokenizer.flush() == "\ufffd"
    assert detokenizer.append(ids[-1]) == "\U0001f600"
    assert detokenizer.flush() == ""


def test_a_rewind_never_stops_inside_a_character() -> None:
    tokenizer = byte_level()
    ids = tokenizer("a\U0001f600b")["input_ids"]
    detokenizer = Detokenizer(tokenizer, [])
    feed(detokenizer, ids)

    # After "a" come three tokens of one character; those before its last end at code point 1 too.
    assert [detokenizer.end_of(n) for n in range(6)] == [0, 1, 1, 1, 2, 3]
    assert detokenizer.tokens_ending_by(1) == 1
    assert detokenizer.tokens_covering(1) == 1
    assert detokenizer.tokens_covering(2) == 4


def test_tokens_that_straddle_a_place_count_as_covering_but_not_as_ending_there() -> None:
    detokenizer = Detokenizer(PieceTokenizer(["One", ". Two", "."]), [])
    feed(detokenizer, [0, 1, 2])

    assert detokenizer.text == "One. Two."
    assert (detokenizer.tokens_ending_by(4), detokenizer.tokens_covering(4)) == (1, 2)
    assert (detokenizer.tokens_ending_by(8), detokenizer.tokens_covering(8)) == (2, 2)
    assert (detokenizer.tokens_ending_by(9), detokenizer.tokens_covering(99)) == (3, 3)


def test_the_first_piece_keeps_its_leading_space() -> None:
    tokenizer = sentencepiece_like()
    ids = tokenizer("The \u6771\u4eac a", add_special_tokens=False)["input_ids"]
    cut = next(n for n in range(1, len(ids)) if tokenizer.convert_ids_to_tokens(ids[n]).startswith("\u2581"))
    assert not tokenizer.decode(ids[cut:]).startswith(" ")
    detokenizer = Detokenizer(tokenizer, ids[:cut])

    assert feed(detokenizer, ids[cut:]).startswith(" ")


def test_without_a_tokenizer_the_text_stays_empty() -> None:
    detokenizer = Detokenizer(None, [1, 2])
    assert feed(detokenizer, [3, 4]) == "" == detokenizer.flush()
    assert detokenizer.tokens_ending_by(0) == 2
    detokenizer.truncate(1)
    assert detokenizer.tokens_ending_by(0) == 1


def test_special_tokens_that_are_kept_have_their_text_and_others_have_none() -> None:
    tokenizer = byte_level()
    eos, kept = tokenizer.eos_token_id, tokenizer("q")["input_ids"][0]
    half = tokenizer("🌍")["input_ids"][0]
    detokenizer = Detokenizer(tokenizer, [], {eos: "[CALLS]"})
    for token in (kept, eos, kept, half, eos, kept):
        detokenizer.append(token)
    assert detokenizer.text == "q[CALLS]q\ufffd[CALLS]q", "an unfinished character ends before the token"
    assert [detokenizer.end_of(count) for count in range(7)] == [0, 1, 8, 9, 9, 17, 18]
    detokenizer.truncate(3)
    detokenizer.append(eos)
    assert detokenizer.text == "q[CALLS]q[CALLS]"


@settings(max_examples=80)
@given(data=st.data())
def test_tokens_that_are_bytes_have_the_text_that_decoding_finds(data: st.DataObject) -> None:
    """Also for ids that no text has: invalid bytes, special tokens, half characters, behind such prompts."""
    tokenizer = byte_level()
    some_ids = st.integers(0, len(tokenizer) - 1)
    prompt, ids = (data.draw(st.lists(some_ids, max_size=size)) for size in (8, 40))
    looked_up, decoded = Detokenizer(tokenizer, prompt), Detokenizer(tokenizer, prompt)
    decoded._is_bytewise = False
    for token_id in ids:
        assert looked_up.append(token_id) == decoded.append(token_id)
    assert state(looked_up, len(ids)) == state(decoded, len(ids))


@settings(max_examples=80)
@given(data=st.data())
def test_many_tokens_at_once_are_as_one_by_one(data: st.DataObject) -> None:
    """Whether their texts are known or not; also for invalid bytes, special tokens and half characters."""
    tokenizer = byte_level()
    some_ids = st.integers(0, len(tokenizer) - 1)
    prompt, first, many = (data.draw(st.lists(some_ids, max_size=size)) for size in (8, 3, 20))
    kept = {data.draw(some_ids): "[KEPT]"} if data.draw(st.booleans()) else {}
    together, single = Detokenizer(tokenizer, prompt, kept), Detokenizer(tokenizer, prompt, kept)
    known = many[:: data.draw(st.integers(1, 2))]
    together._alone = {token_id: single._text_alone(token_id) for token_id in known}
    for token_id in (*first, *many):
        single.append(token_id)
    for part in (first, many):
        together.extend(part)
    assert state(together, len(first + many)) == state(single, len(first + many))


LOOKS: dict[str, Callable[[Detokenizer], Any]] = {
    "text": lambda seen: seen.text,
    "length": lambda seen: seen.length,
    "text_from": lambda seen: seen.text_from(1),
    "flush": lambda seen: seen.flush(),
    "end_of": lambda seen: seen.end_of(3),
    "tokens_covering": lambda seen: seen.tokens_covering(99),
    "tokens_ending_by": lambda seen: seen.tokens_ending_by(99),
    "append": lambda seen: (seen.append(5), seen.text),
    "extend": lambda seen: (seen.extend([5, 6]), seen.text),
    "add": lambda seen: (seen.add("[END]"), seen.text),
    "truncate": lambda seen: (seen.truncate(2), seen.text),
    "fork": lambda seen: (seen.fork().append_later(5), seen.fork().text, seen.text),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@settings(max_examples=20)
@given(data=st.data())
def test_nobody_sees_that_a_token_has_waited(look: Callable[[Detokenizer], Any], data: st.DataObject) -> None:
    tokenizer = byte_level()
    ids = data.draw(st.lists(st.integers(0, len(tokenizer) - 1), min_size=3, max_size=40))
    waiting, decoded = (Detokenizer(tokenizer, []) for _ in range(2))
    for token_id in ids:
        decoded.append(token_id)
        waiting.append_later(token_id)
    assert look(waiting) == look(decoded)
    assert state(waiting, 2) == state(decoded, 2)


def test_what_tokens_that_are_bytes_say_is_decoded_once_for_all() -> None:
    tokenizer, text = byte_level(), "The end of the river was named in 1897."  # no character in parts
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    feed(Detokenizer(tokenizer, ids), ids)
    again = Detokenizer(tokenizer, ids)

    def refuse(token_ids: list[int]) -> str:
        raise AssertionError(f"decoded again: {token_ids}")

    again._decode = refuse
    assert feed(again, ids) == text
