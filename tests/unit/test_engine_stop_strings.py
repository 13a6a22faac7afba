"""Stop strings in the draft: where they cut, what they hold back, which sentences they keep open."""

from __future__ import annotations

from engine_tokenizers import PieceTokenizer
from output_texts import SPLITTER, pieces, sentences, token

from ewe.engine.answer_text.output_text import OutputText


def test_a_stop_string_ends_the_text_before_it_even_across_tokens() -> None:
    draft = pieces("One", " E", "N", "D more", stop=("END",))
    assert draft.text == "One "
    assert draft.text_end == 4
    draft.finish()
    assert sentences(draft) == ["One"]


def test_the_earliest_of_several_stop_strings_counts() -> None:
    assert pieces("a xy", "z b", stop=("yz", "xyz")).text == "a "


def test_append_says_when_a_stop_string_appeared() -> None:
    draft = OutputText(PieceTokenizer(["a", "b", "c"]), SPLITTER, [], stop=("bc",))
    assert [draft.append(token(i)) for i in range(3)] == [False, False, True]


def test_stop_strings_before_min_tokens_do_not_count_even_when_seen_again() -> None:
    """A longer stop string makes the search look further back: a short one there has been passed over."""
    assert pieces("s", "t", "op", "x", stop=("st",), min_tokens=3).text == "stopx"
    assert pieces("s", "t", "o", "x", stop=("st", "stooooooo"), min_tokens=3).text == "stox"
    # One that is completed later counts, wherever it began.
    assert pieces("s", "t", "o", stop=("sto",), min_tokens=3).text == ""


def test_what_may_begin_a_stop_string_is_held_back() -> None:
    assert pieces("One E", stop=("END",)).held_back_chars() == 1
    assert pieces("One EN", stop=("END",)).held_back_chars() == 2
    assert pieces("One ENd", stop=("END",)).held_back_chars() == 0
    # The longest possibility of all stop strings.
    assert pieces("xab", stop=("bz", "abc")).held_back_chars() == 2
    assert pieces("xab", stop=("abc", "bz")).held_back_chars() == 2
    # Nothing is open once the text has been cut.
    assert pieces("xaba", stop=("aba",)).held_back_chars() == 0


def test_a_sentence_that_a_stop_string_may_still_cut_is_not_complete() -> None:
    stop = (". Two sta",)
    draft = pieces("One.", " Two", stop=stop)
    draft.find_sentences()
    assert sentences(draft) == []

    went_on = pieces("One.", " Two", " comes", stop=stop)
    went_on.find_sentences()
    assert sentences(went_on) == ["One."]

    cut = pieces("One.", " Two", " sta", stop=stop)
    cut.finish()
    assert (cut.text, sentences(cut)) == ("One", ["One"])


def test_a_rewind_reopens_a_sentence_whose_end_may_begin_a_stop_string() -> None:
    draft = pieces("One.", " ", "Two", "!", " T", "END", stop=(". TEND",))
    draft.find_sentences()
    assert sentences(draft) == ["One.", "Two!"]
    assert [draft.is_reopened_by_next(span) for span in draft.sentences] == [True, False]

    draft.truncate(2)  # the start of "Two!"
    assert sentences(draft) == []
    assert draft.held_back_chars() == 2

    draft.truncate(1)
    draft.append(token(4))
    assert draft.append(token(5))
    assert draft.text == "One"


def test_an_attempt_that_was_put_back_can_still_be_cut_by_a_stop_string() -> None:
    draft = pieces("One.", " Two", " T", "END", stop=(". TEND",))
    draft.find_sentences()
    spans, tokens = list(draft.sentences), list(draft.tokens)
    draft.truncate(0)
    draft.restore(tokens[:1], spans)
    assert not draft.append(token(2))
    assert draft.append(token(3))
    draft.finish()
    assert sentences(draft) == ["One"]


def test_the_end_of_a_text_settles_sentences_only_for_good() -> None:
    """Cut off by its length, the text was split; a rewind behind the first sentence makes it open again."""
    draft = pieces("One.", " ", "T", stop=("e. XYZ",))
    draft.finish()
    assert sentences(draft) == ["One.", "T"]
    draft.truncate(2)
    assert sentences(draft) == []
