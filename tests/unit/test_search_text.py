"""What a request is about."""

import pytest

from ewe.text.search_text import is_small_talk, subject_of


@pytest.mark.parametrize(
    ("request_text", "subject"),
    [
        ("Tell me about the European lobster.", "the European lobster"),
        ("Could you please give me a short overview of Tikal?", "Tikal"),
        ("In three sentences, tell me about U2.", "U2"),
        ("What do you know about Mirela Hask?", "Mirela Hask"),
        ("Please write me a detailed two-page biography of Ada Lovelace.", "Ada Lovelace"),
        ("tell me about traffic in Rome. Is it bad?", "traffic in Rome. Is it bad"),
        ("Write about Rome", "Rome"),
        ("Give me an introduction to the Light Tank Mk VII", "the Light Tank Mk VII"),
        ("Give me a brief life of Ada Lind.", "Ada Lind"),
        ("I'd like to know about Rome", "Rome"),
        ("the Eiffel Tower\nTell me more about its lifts.", "the Eiffel Tower\nits lifts"),
    ],
)
def test_the_words_that_ask_are_left_out(request_text: str, subject: str) -> None:
    assert subject_of(request_text) == subject


@pytest.mark.parametrize(
    "request_text",
    [
        "Who was Ada Weston?",
        "Explain to a kid how the people of Tikal got their water.",
        "Describe the life of a bee",
        "Tell me.",
        "tell me about",
        "The Tell-Tale Heart is about guilt",
        "",
        "\n",
    ],
)
def test_what_does_not_only_ask_stays_whole(request_text: str) -> None:
    assert subject_of(request_text) == request_text


@pytest.mark.parametrize(
    "request_text",
    ["Say hi", "Hello!", "What is my name?", "Thank you very much.", "How are you today?", "Go on", "Who are you?"],
)
def test_small_talk_names_nothing_to_look_up(request_text: str) -> None:
    assert is_small_talk(request_text)


@pytest.mark.parametrize(
    "request_text",
    ["", "Who was Ada?", "Where was she born?", "Hi, who built Tikal?", "What is DNA?", "Wie geht es?", "你好吗"],
)
def test_what_names_something_is_looked_up(request_text: str) -> None:
    assert not is_small_talk(request_text)
