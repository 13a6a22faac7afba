"""First-person sentences in the third person: verbs agree, nothing is added, and what tells nothing is left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.longterm.third_person import in_third_person


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I moved to Lyon.", "Ann moved to Lyon."),
        ("I live in Lyon and my sister lives with me!", "Ann lives in Lyon and Ann's sister lives with Ann."),
        ("Oh wow, I’m a nurse", "Ann is a nurse."),
        ("I'm vegetarian.", "Ann is vegetarian."),
        ("Thanks, Ben! I've two kids", "Ann has two kids."),
        ("I usually watch TV, and I try to study.", "Ann usually watches TV, and Ann tries to study."),
        ("I don't really eat meat.", "Ann doesn't really eat meat."),
        ("I'd love to see Rome.", "Ann would love to see Rome."),
        ("I'd been to Rome twice.", "Ann had been to Rome twice."),
        ("I need new shoes.", "Ann needs new shoes."),
        ("I fly to Rome often.", "Ann flies to Rome often."),
        ("I read a book.", "Ann read a book."),
        ("I put salt on eggs.", "Ann put salt on eggs."),
        ("My wife and I live in Rome.", "Ann's wife and Ann live in Rome."),
        ("We're moving to our new flat.", "Ann and others are moving to Ann's new flat."),
        ("I value my me-time.", "Ann values Ann's me-time."),
        ("My dog is called Rex.", "Ann's dog is called Rex."),
        ("The mural is important to me.", "The mural is important to Ann."),
        ("Painting helps me sleep.", "Painting helps Ann sleep."),
        ("Last week I went to a pottery class.", "Last week Ann went to a pottery class."),
    ],
)
def test_a_statement_about_the_speaker_is_one_about_a_name(said: str, told: str) -> None:
    assert in_third_person(said, "Ann") == told


@pytest.mark.parametrize(
    "said",
    [
        *(
            "",
            "!?",
            "Do I live in Lyon?",
            "Paris is big.",
            "I love your house.",
            "I agree with Ben.",
            "I'm so excited!",
        ),
        *("Tell me about Rome.", "Sing me a song.", "Translate the text for me.", "Glad I won.", "Don't wake my son."),
        *(
            "It made me cry.",
            "I did it.",
            "Write a poem about my cat.",
            "Let's say I live in Rome.",
            "I hope Ben wins.",
        ),
    ],
)
def test_what_tells_nothing_that_can_stand_alone_is_left_out(said: str) -> None:
    assert in_third_person(said, "Ann") == ""


def test_a_user_without_a_name_is_written_small_inside_a_sentence() -> None:
    told = in_third_person("My wife says that I snore.", "The user")
    assert told == "The user's wife says that the user snores."


@given(st.text(alphabet=st.sampled_from("I'mydve we.,!- aX"), max_size=40), st.sampled_from(["Ann", "The user", "x"]))
def test_any_text_gives_a_sentence_or_nothing(said: str, speaker: str) -> None:
    told = in_third_person(said, speaker)
    assert told == "" or told.endswith(".")
