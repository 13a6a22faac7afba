"""First-person sentences in the third person: verbs agree, nothing is added, and what tells nothing is left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.longterm.third_person import in_third_person, own_words


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
        ("I moved to the US in 2019.", "Ann moved to the US in 2019."),
        ("My wife cooks and I am a nurse.", "Ann's wife cooks and Ann is a nurse."),
        ("I seldom eat meat.", "Ann seldom eats meat."),
        ("I'd better call my doctor.", "Ann had better call Ann's doctor."),
        ("I beat Ben and I wanna rest.", "Ann beat Ben and Ann wants to rest."),
        ("Yesterday I never left.", "Yesterday Ann never left."),
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


@pytest.mark.parametrize(
    "said",
    [
        *("If I win, I move to Rome.", "Were I rich, I would buy a boat.", "Can I move to Lyon", "Why am I so tired"),
        *("Maybe my boss left.", "Not only do I cook, I sew.", "I live in Lyon... not!", "Wish I had a dog."),
        *(
            "Henry I was king.",
            "World War I killed my great-grandfather.",
            "I have type I diabetes.",
            "I, Robot is mine.",
        ),
        *("I. M. Pei is my favourite architect.", "I watched My Fair Lady.", "My Little Pony is on TV."),
        *("I'm from Rome, he said.", "My wife said: I moved.", "He said 'I moved to Rome'.", "User: I live in Rome."),
        *("for i in range(10): print(i)", "I run `rm` on my server.", "let me = my[0]", "> I live in Rome."),
        *("I miei amici vivono a Roma.", "Im Haus wohnt mein Bruder.", "No me gusta la carne.", "We wonen in Utrecht."),
        *(
            "Ann and I moved to Lyon.",
            "No way I moved.",
            "I neither smoke nor drink.",
            "Me llamo Ana and I live in Rome.",
        ),
        *("I'd put salt on eggs.", "I and my wife live in Rome.", "Im Sommer regnet es.", "I dunno my blood type."),
    ],
)
def test_what_may_mean_something_else_is_left_out(said: str) -> None:
    assert in_third_person(said, "Ann") == ""


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ('My boss said: "I quit. I never liked it." I stay.', "My boss said: ? I stay."),
        ('I read "Emma" again.', 'I read "Emma" again.'),
        *((said, "") for said in ("I'm a king. Just kidding!", "I am the king /s", "Yeah right, I love spiders.")),
        *((said, "") for said in ("Translate into French: I live in Rome. I am ill.", "Let's pretend. I am a cat.")),
        ("Is this sentence right? I has lived in Rome.", ""),
    ],
)
def test_quotes_jokes_and_texts_to_work_on_are_not_the_speakers_own_words(said: str, left: str) -> None:
    assert own_words(said) == left


def test_a_user_without_a_name_is_written_small_inside_a_sentence() -> None:
    told = in_third_person("My wife says that I snore.", "The user")
    assert told == "The user's wife says that the user snores."


@given(st.text(alphabet=st.sampled_from("I'mydve we.,!- aX"), max_size=40), st.sampled_from(["Ann", "The user", "x"]))
def test_any_text_gives_a_sentence_or_nothing(said: str, speaker: str) -> None:
    told = in_third_person(said, speaker)
    assert told == "" or told.endswith(".")
