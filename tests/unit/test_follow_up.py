"""Requests that follow up on earlier ones."""

import pytest

from ewe.text.follow_up import refers_back, topic_of_questions


@pytest.mark.parametrize(
    "request_text",
    [
        "When was she born?",
        "How tall is it?",
        "And in 1930?",
        "Why?",
        "What about the population?",
        "who was his wife",
        "Tell me more about it.",
        "Tell me about his wife.",
        "Did they win against France?",
        "Tell me more.",
        "What else?",
        "How many people live there?",
        "Where exactly is it, and who owns it?",
    ],
)
def test_a_follow_up_refers_back(request_text: str) -> None:
    assert refers_back(request_text)


@pytest.mark.parametrize(
    "request_text",
    [
        "Who was Ada Weston?",
        "Where did Marie Curie meet her husband?",
        "Tell me about Tikal and its water.",
        "tell me about marie curie and her husband",
        "Is it true that Warsaw lies on the Vistula?",
        "Are there lobsters in the Baltic?",
        "what is the population of lagos",
        "How do bees find flowers?",
        "And who was Ada Weston?",
        "",
    ],
)
def test_what_names_its_subject_stands_alone(request_text: str) -> None:
    assert not refers_back(request_text)


def test_the_topic_is_the_latest_subject_that_stands_alone() -> None:
    talk = [
        "Who was Ada Weston?",
        "Tell me about the Eiffel Tower.",
        "Thanks!",
        "When was it built?",
        "And how tall is it?",
    ]
    assert topic_of_questions(talk) == "the Eiffel Tower"
    assert topic_of_questions(talk[:1]) == ""
    assert topic_of_questions(["When was it built?"]) == ""
    assert topic_of_questions([*talk, "Who was Marie Curie?"]) == ""
    assert topic_of_questions([]) == ""


def test_of_long_texts_the_beginning_is_read() -> None:
    assert not refers_back("Why is it? " * 200)
    assert topic_of_questions(["Tell me about Tikal. " + "It is old. " * 100_000, "Why?"]).startswith("Tikal")


def test_a_topic_is_short() -> None:
    assert len(topic_of_questions(["word " * 500, "Why is it?"])) <= 200
