"""DRAGIN's rules on numbers made by hand, and its policy with a model that is a script."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from asking_parts import drive, passages

from ewe.config import PipelineConfig
from ewe.engine.side_texts import Ask, Reading, Reply
from ewe.policies.dragin import dragin, find_hit, is_content, query_of, tokens_by_word
from ewe.text.sentences import SentenceSplitter

QUESTION = "Who built the old bridge?"
PROMPT = f"user\n{QUESTION}\nassistant\n"
SPLITTER = SentenceSplitter()


def reading(text: str, entropies: dict[str, float], prompt: str = PROMPT) -> Reading:
    """A token per word, which all later ones read alike; sure of every word but those that are named."""
    words, asked = text.split(), prompt.split()
    ends = tuple(text.index(word) + len(word) for word in words)
    count = len(asked) + len(words) - 1
    return Reading(
        prompt,
        tuple(prompt.index(word) + len(word) for word in asked),
        ends,
        tuple(entropies.get(word, 0.0) for word in words),
        np.tile(np.linspace(1, 2, count, dtype=np.float32), (len(words), 1)),
        np.ones(len(words) - 1, np.float32),
    )


def test_the_first_content_word_over_the_threshold_is_the_hit() -> None:
    text = "Tall towers stood there. In 1390 they built of stone. It fell later."
    found = reading(text, {"there.": 9.0, "of": 9.0, "stone.": 2.0, "fell": 9.0})
    hit = find_hit(text, found, 1.9, SPLITTER)
    assert hit is not None
    assert text[hit.word.start : hit.word.end] == "stone."
    assert (hit.sentence, hit.entropy) == (text.index("In 1390"), 2.0)
    # Six words share the attention of their sentence: each has as much as the others.
    assert hit.attention == pytest.approx(1 / 6)
    assert hit.value == pytest.approx(2.0)
    assert find_hit(text, replace(found, entropies=(0.0,) * len(found.ends)), 1.9, SPLITTER) is None


def test_attention_counts_within_its_sentence() -> None:
    text = "Tall towers stood. Walls of stone fell"
    found = reading(text, {"stone": 1.0})
    found = replace(found, received=np.array([100, 100, 100, 1, 1, 2], np.float32))
    hit = find_hit(text, found, 1.9, SPLITTER)
    assert hit is not None
    # The last word has been read by nothing, so the others share the attention: 2 of 4, over 4 words.
    assert hit.value == pytest.approx(2 / 4 * 1.0 * 4)
    assert find_hit(text, replace(found, received=np.zeros(6, np.float32)), 0.0, SPLITTER) is None


def test_the_query_is_what_the_token_before_the_hit_attended_to() -> None:
    text = "Masons of Ghent raised Rome"
    found = reading(text, {"Rome": 9.0}, PROMPT + "Long ago it stood. ")
    hit = find_hit(text, found, 1.0, SPLITTER)
    assert hit is None  # nothing has read the last word
    found = replace(found, received=np.ones(5, np.float32))
    hit = find_hit(text, found, 1.0, SPLITTER)
    assert hit is not None
    assert hit.word.tokens == (4,)
    weights = np.zeros_like(found.weights)
    weights[4] = [9, 1, 5, 9, 8, 4, 9, 3, 2, 9, 1, 7, 9, 6, 0]  # user Who built the old bridge? assistant Long ...
    found = replace(found, weights=weights)
    # "user", "assistant" belong to the template, and "the", "it", "of" say nothing.
    everything = query_of(text, found, hit, QUESTION, "Long ago it stood.", 99)
    assert everything == "built old bridge? Long ago stood. Masons Ghent"
    assert query_of(text, found, hit, QUESTION, "Long ago it stood.", 3) == "old Masons Ghent"


def test_tokens_are_put_together_to_words() -> None:
    #       T   ow  ers  " é" in two bytes, " 12", "\n\n", "x"
    text = "Towers é12\n\nx"
    found = tokens_by_word(text, (1, 3, 6, 6, 8, 10, 12, 13))
    assert [(text[word.start : word.end], word.tokens) for word in found] == [
        ("Towers", (0, 1, 2)),
        ("é12", (3, 4, 5)),
        ("x", (7,)),
    ]


@pytest.mark.parametrize(
    ("word", "says"), [("the", False), ("It's", False), ("—", False), ("Ghent,", True), ("7", True)]
)
def test_content_words(word: str, says: bool) -> None:
    assert is_content(word) == says


def test_one_sentence_is_written_again_under_passages_and_then_the_text_goes_on_without() -> None:
    first = "Tall towers stood. Walls of brick and tin rose. Then it fell."
    answers = {"": first, "Tall towers stood. Walls of stone rose. It was 1390.": ""}

    def model(ask: Ask) -> Reply:
        if ask.passages:
            assert (ask.begin, ask.sentence) == ("Tall towers stood. Walls of", "Walls of")
            return Reply(" stone rose. It was a wonder.", "length")
        text = answers.get(ask.begin, " It was 1390.")
        assert ask.attention
        return Reply(text, "stop", reading=reading(text, {"brick": 3.0} if not ask.begin else {}) if text else None)

    log = drive(dragin, PipelineConfig(dragin_threshold=1.0, step_tokens=30), QUESTION, model)
    assert [write.text for write in log.written] == ["Tall towers stood.", " Walls of stone rose.", " It was 1390."]
    assert log.end == "stop"
    assert [(name, asks[0].begin) for name, asks in log.asked] == [
        ("look-ahead", ""),
        ("sentence", "Tall towers stood. Walls of"),
        ("look-ahead", "Tall towers stood. Walls of stone rose."),
    ]
    [need] = log.decided
    assert (need.data["word"], need.data["threshold"]) == ("brick", 1.0)
    assert log.queries == [((need.data["query"],), 3)]
    assert log.asked[1][1][0].passages == passages(need.data["query"], 3)


def test_a_sentence_that_the_limit_has_cut_is_written_again() -> None:
    def model(ask: Ask) -> Reply:
        if not ask.begin:
            return Reply("One is here. Two is", "length")
        return Reply(" Two is there" if "Two" not in ask.begin else "", "length")

    log = drive(dragin, PipelineConfig(), QUESTION, model)
    assert [write.text for write in log.written] == ["One is here.", " Two is there"]
    assert [asks[0].begin for _, asks in log.asked] == ["", "One is here.", "One is here. Two is there"]


def test_a_text_that_does_not_grow_ends() -> None:
    def model(ask: Ask) -> Reply:
        if ask.passages:
            return Reply("")
        return Reply("Stone fell there.", reading=reading("Stone fell there.", {"Stone": 9.0}))

    log = drive(dragin, PipelineConfig(), QUESTION, model)
    assert (log.written, log.end) == ([], "stop")
