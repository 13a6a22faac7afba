"""The draft: a truncated one equals one that never went further; stop strings; sentences and their tokens."""

from __future__ import annotations

import pytest
from engine_tokenizers import TEXTS, PieceTokenizer, byte_level, sentencepiece_like
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from output_texts import SPLITTER, pieces, sentences, token

from ewe.engine.answer_text.output_text import OutputText
from ewe.engine.answer_text.sentence_spans import Span
from ewe.text.tool_calls.template import FORMATS
from ewe.text.tool_calls.tools import Tool, ToolRequest
from ewe.text.tool_calls.use import ToolUse

TOKENIZERS = {"byte_level": byte_level, "sentencepiece_like": sentencepiece_like}


def write(draft: OutputText, ids: list[int], looks: set[int]) -> int:
    """Appends tokens until a stop string appears, looking for sentences after some of them; returns how many."""
    for count, token_id in enumerate(ids, 1):
        if draft.append(token(token_id)):
            return count
        if len(draft) in looks:
            draft.find_sentences()
    return len(ids)


@pytest.mark.parametrize("name", TOKENIZERS)
@examples(15, 50)
@given(data=st.data())
def test_truncated_equals_a_draft_that_never_went_further(name: str, data: st.DataObject) -> None:
    tokenizer = TOKENIZERS[name]()
    text = data.draw(st.lists(st.sampled_from(" ".join(TEXTS).split(" ")), min_size=1, max_size=16).map(" ".join))
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    ids += data.draw(st.lists(st.integers(0, len(tokenizer) - 1), max_size=4))
    looks = data.draw(st.sets(st.integers(1, len(ids))))
    stop = tuple(data.draw(st.lists(st.sampled_from(["e", "the", ". I", "\u20ac1", "se\u4eac"]), max_size=2)))
    min_tokens = data.draw(st.integers(0, 10))
    draft, fresh = (OutputText(tokenizer, SPLITTER, [5, 6], stop, min_tokens) for _ in range(2))
    written = write(draft, ids, looks)
    if data.draw(st.booleans()):
        draft.finish()
    cut = data.draw(st.integers(0, written))

    draft.truncate(cut)

    write(fresh, ids[:cut], looks)
    if fresh.text_end is not None:  # the rewind goes to where a stop string ends: the engine never does that
        return
    assert (draft.tokens, draft.ids, draft.text, draft.text_end) == (fresh.tokens, fresh.ids, fresh.text, None)
    # What was known to be a sentence before the cut stays known; the fresh draft may need more text to see it.
    assert draft.sentences[: len(fresh.sentences)] == fresh.sentences
    assert all(span.end <= len(draft.text) and span.end_token <= cut for span in draft.sentences)
    assert draft.held_back_chars() == fresh.held_back_chars()
    if draft.sentences == fresh.sentences:
        then = data.draw(st.lists(st.sampled_from(ids), max_size=8))
        assert write(draft, then, looks) == write(fresh, then, looks)
        draft.finish()
        fresh.finish()
        assert (draft.text, draft.text_end, draft.sentences) == (fresh.text, fresh.text_end, fresh.sentences)


@pytest.mark.parametrize("name", TOKENIZERS)
@examples(15, 50)
@given(data=st.data())
def test_a_text_is_the_same_whether_it_is_watched_or_not(name: str, data: st.DataObject) -> None:
    """Whatever becomes of it: it grows, goes back, has a twin, is looked at."""
    tokenizer = TOKENIZERS[name]()
    ids = tokenizer(" ".join(TEXTS))["input_ids"]
    watched, other = (OutputText(tokenizer, SPLITTER, [5, 6], is_watched=is_watched) for is_watched in (True, False))
    for _ in range(data.draw(st.integers(1, 8))):
        do, count = data.draw(st.sampled_from(["append", "append", "truncate", "fork", "look"])), len(watched)
        number = data.draw(st.integers(0, count if do == "truncate" else 40))
        if do == "append":
            for token_id in ids[count : count + number]:
                assert watched.append(token(token_id)) is other.append(token(token_id)) is False
        elif do == "truncate":
            watched.truncate(number)
            other.truncate(number)
        elif do == "fork":
            dropped, other = other, other.fork()
            dropped.append(token(ids[0]))
        else:
            assert (watched.firm_end, watched.text) == (other.firm_end, other.text)
    watched.finish()
    other.finish()
    assert (watched.text, watched.sentences, watched.token_ends) == (other.text, other.sentences, other.token_ends)
    assert watched.text_between(1, watched.firm_end) == other.text_between(1, other.firm_end)


@settings(max_examples=50)
@given(data=st.data())
def test_writing_the_same_again_after_a_rewind_gives_the_same(data: st.DataObject) -> None:
    tokenizer = byte_level()
    ids = tokenizer(" ".join(TEXTS))["input_ids"][: data.draw(st.integers(5, 150))]
    looks = set(range(0, 200, data.draw(st.integers(1, 9))))
    draft = OutputText(tokenizer, SPLITTER, [])
    write(draft, ids, looks)
    draft.finish()
    before = (list(draft.tokens), draft.text, list(draft.sentences))
    start = data.draw(st.sampled_from(draft.sentences)).start
    kept = draft.tokens_before(start)

    draft.truncate(kept)
    assert len(draft.text) <= start
    write(draft, ids[kept:], looks)
    draft.finish()

    assert (draft.tokens, draft.text, draft.sentences) == before


@given(data=st.data())
def test_every_sentence_is_within_its_tokens(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.sampled_from(["A b", ".", ". C", " ", " D.", ".\n\n", "E. F. G", "h"]), min_size=1))
    draft = pieces(*parts)
    draft.find_sentences()
    draft.finish()
    for span in draft.sentences:
        inside = "".join(parts[span.first_token : span.end_token])
        assert draft.text[span.start : span.end] in inside
        shorter = "".join(parts[span.first_token : span.end_token - 1])
        assert draft.text[span.start : span.end] not in shorter or span.end_token - span.first_token == 1


def test_a_token_that_ends_a_sentence_and_begins_the_next_is_shared() -> None:
    draft = pieces("One", ". Two", " is", " here", ".\n\n", "Three", ".")
    draft.finish()
    assert sentences(draft) == ["One.", "Two is here.", "Three."]
    assert [draft.is_reopened_by_next(span) for span in draft.sentences] == [True, False, False]
    assert [draft.tokens_before(span.start) for span in draft.sentences] == [0, 1, 5]


def test_a_last_sentence_of_unfinished_characters_has_all_its_tokens() -> None:
    tokenizer = byte_level()
    ids = tokenizer("One. Two \U0001f600")["input_ids"][:-1]
    draft = OutputText(tokenizer, SPLITTER, [])
    write(draft, ids, set())
    draft.finish()
    assert sentences(draft) == ["One.", "Two \ufffd"]
    assert draft.sentences[-1].end_token == len(ids)


def test_restoring_an_attempt_gives_back_its_text_tokens_and_sentences() -> None:
    draft = pieces("One", ". Two", " is", ".", " Three")
    draft.find_sentences()
    draft.finish()
    spans, tokens = list(draft.sentences), list(draft.tokens)
    draft.truncate(draft.tokens_before(spans[1].start))
    assert draft.sentences == []  # "One." ends in a token that was dropped

    assert not draft.restore(tokens[1:4], spans[:2])

    assert draft.text == "One. Two is."
    assert draft.sentences == [Span(0, 4, 0, 2), Span(5, 12, 1, 4)]


def test_restoring_says_if_the_attempt_ended_at_a_stop_string() -> None:
    draft = pieces("One", ".END", stop=("END",))
    draft.finish()
    spans, tokens = list(draft.sentences), list(draft.tokens)
    draft.truncate(0)
    assert draft.restore(tokens, spans)
    assert draft.text == "One."


TOOLS = ToolUse(ToolRequest((Tool("f"),)), FORMATS["hermes"])
CALL = '<tool_call>{"name": "f", "arguments": {"a": "One. Two. Three."}}</tool_call>'


def with_tools(text: str) -> OutputText:
    """A draft of characters in which tools may be called."""
    draft = OutputText(PieceTokenizer(text), SPLITTER, [], tools=TOOLS)
    for index in range(len(text)):
        draft.append(token(index))
    return draft


def test_a_text_has_no_sentences_from_a_call_on() -> None:
    draft = with_tools(f"It is. Let me see {CALL} So. It. Is.")
    draft.find_sentences()
    assert sentences(draft) == ["It is.", "Let me see"]
    draft.finish()
    assert sentences(draft) == ["It is.", "Let me see"]
    draft.truncate(7)
    assert sentences(draft) == ["It is."]
    draft.finish()
    assert sentences(draft) == ["It is."]


def test_a_sentence_is_open_while_a_call_may_begin_in_it() -> None:
    draft = with_tools("It is. <tool")
    draft.find_sentences()
    assert draft.held_back_chars() == 5
    assert sentences(draft) == []
    other = with_tools("It is. <tool >")
    other.find_sentences()
    assert (other.held_back_chars(), sentences(other)) == (0, ["It is."])


def test_what_only_began_like_a_call_is_prose_when_the_text_ends() -> None:
    draft = with_tools("See. <tool_call> is a tag. It is.")
    draft.find_sentences()
    assert sentences(draft) == ["See."]
    draft.finish()
    assert sentences(draft)[-1] == "It is."
    cut = with_tools(f"See. {CALL[:50]}")
    cut.finish()
    assert sentences(cut) == ["See."]


def test_the_place_behind_the_last_sentence_is_that_of_the_open_one_or_the_end_without_what_ended_it() -> None:
    tokenizer = byte_level()
    ids = tokenizer("Far off. So near", add_special_tokens=False)["input_ids"]
    draft = OutputText(tokenizer, SPLITTER, [5, 6], (), 0)
    write(draft, ids, {len(ids)})
    start, keep = draft.start_of(1)
    assert (draft.text[start:], draft.end_of(keep)) == ("So near", len("Far off."))
    draft.append(token(tokenizer.eos_token_id))
    draft.finish()
    assert draft.start_of(2) == (len("Far off. So near"), len(ids))
    assert draft.start_of(1) == (start, keep)
