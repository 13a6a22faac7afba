"""What people tell in a chat, cut into statements with their subjects, and what of it is worth keeping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.longterm_turns import FRESH, FURTHER, HALVES, Kept, finds, read
from ewe.longterm.lasting import lasts
from ewe.longterm.plain_writing import plainly_written
from ewe.longterm.rule_facts import facts_by_rules
from ewe.longterm.turn_statements import statements


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        # Each clause with its own subject, tense and negation.
        (
            "I don't eat fish but my son loves it, and we moved to Ulm in May.",
            ["Ann doesn't eat fish.", "Ann and others moved to Ulm in May."],
        ),
        ("I have asthma and take two pills a day.", ["Ann has asthma.", "Ann takes two pills a day."]),
        ("I grew up in Ulm and moved to Kiel in 2010.", ["Ann grew up in Ulm.", "Ann moved to Kiel in 2010."]),
        ("I was born in Ulm but raised in Kiel.", ["Ann was born in Ulm but raised in Kiel."]),
        ("My wife and I live in Ulm.", ["Ann's wife and Ann live in Ulm."]),
        ("I want to quit and move to Ulm.", ["Ann wants to quit and move to Ulm."]),
        ("im a nurse, i dont smoke", ["Ann is a nurse.", "Ann doesn't smoke."]),
        ("my sister's a baker in Ulm", ["Ann's sister is a baker in Ulm."]),
        ("Just got back from Peru!", ["Ann just got back from Peru."]),
        ("Learning German is hard.", []),
        ("Learning German and Greek", ["Ann is learning German and Greek."]),
        ("It was made of wood and my own sweat.", []),
        ("As a nurse, I work nights.", ["Ann is a nurse.", "Ann works nights."]),
        ("As a child I lived in Ulm.", ["As a child Ann lived in Ulm."]),
        # He and she are who was just named, if only one fits.
        ("My son Tim is six. He's allergic to nuts.", ["Ann's son Tim is six.", "Ann's son Tim is allergic to nuts."]),
        ("My dad met my uncle. He lives in Ulm.", ["Ann's dad met Ann's uncle."]),
        ("My gran is in Ulm. I visit her every week.", ["Ann's gran is in Ulm.", "Ann visits Ann's gran every week."]),
        # What is asked is not told.
        ("I'm 45, is it too late to study?", ["Ann is 45."]),
        ("Is it late, and I am 45?", []),
        ("My car's a 2009 Corsa, what's a rear subframe?", ["Ann's car is a 2009 Corsa."]),
        ("I live in a one bed in Ulm, what's the first step for a mortgage", ["Ann lives in a one bed in Ulm."]),
        ("I have two sons, where can we go in the rain?", ["Ann has two sons."]),
        ("Don't use sugar in my coffee.", ["Ann doesn't use sugar in Ann's coffee."]),
        ("I can't eat gluten, so no flour please.", ["Ann can't eat gluten."]),
        ("I'm allergic to nuts, isn't that in the file?", ["Ann is allergic to nuts."]),
        ("Don't call me sir, I'm a woman.", ["Ann is a woman."]),
        # What stands beside a statement is left out, and what is said of others is cut from it.
        ("My cousin Lena, who lives in Ulm, had twins.", ["Ann's cousin Lena had twins."]),
        ("Not gonna lie, I love my job, which is odd.", ["Ann loves Ann's job."]),
        ("No eggs, but we eat fish.", ["Ann and others eat fish."]),
        ("I have a bakery and the oven is old.", ["Ann has a bakery."]),
        # Whoever was named in a question, and what belongs to the speaker without "my".
        ("Can my cat eat tuna? She's diabetic.", ["Ann's cat is diabetic."]),
        ("Mum's a nurse in Ulm.", ["Ann's mum is a nurse in Ulm."]),
        ("My car is loud. It's a 2016 Octavia.", ["Ann's car is loud.", "Ann's car is a 2016 Octavia."]),
        (
            "My colleague Ravi did some PL/I in the 90s.",
            ["Ann's colleague Ravi did some PL/I in the 90s."],
        ),
        (
            "I open a bakery with my cousin Inès. She makes the pastry.",
            [
                "Ann opens a bakery with Ann's cousin Inès.",
                "Ann's cousin Inès makes the pastry.",
            ],
        ),
        ("My son Łukasz is six. He has asthma.", ["Ann's son Łukasz is six.", "Ann's son Łukasz has asthma."]),
    ],
)
def test_clauses_are_told_one_by_one(said: str, facts: list[str]) -> None:
    assert facts_by_rules("Ann", said) == facts


@pytest.mark.parametrize(
    "said",
    [
        *("So I should drink more water.", "ok so I need to restart it first", "My doctor recommended that I rest."),
        *("I was told I should rest.", "My brother says the film is long.", "She says I snore.", "I might try yoga."),
        *("I'm so tired today.", "I don't know what to cook.", "I need help with my essay.", "I tried it twice."),
        *("The neighbours bring us eggs.", "In Rust I get an error.", "I'd go with the red one.", "I'm furious."),
        *("I've already restarted it twice.", "My boss told me to wait.", "My brother is.", "My dog is worried."),
        *("Sure, because I totally have time.", "Ha, as if I'd ever run a marathon.", "I dropped a glove."),
        *("My code crashes at start.", "I have nothing to wear.", "Her cat hates me.", "I'd like to know why."),
    ],
)
def test_advice_hearsay_moods_and_errands_are_not_kept(said: str) -> None:
    assert facts_by_rules("Ann", said) == []


def test_conditions_stay_whole_and_orders_tell_nothing() -> None:
    assert statements("don't tell my wife we have a dog") == []
    assert statements("If I win, I move to Ulm, and my son stays.") == ["If I win, I move to Ulm, and my son stays."]


@given(st.text(alphabet=st.sampled_from("Iiweandmyson'stoquit.,!?- 1)"), max_size=60))
def test_any_text_is_cut_into_some_of_its_parts(said: str) -> None:
    for part in statements(plainly_written(said)):
        assert part.strip()
        assert isinstance(lasts(part), bool)


def test_the_benchmarks_rule_tells_subject_time_and_negation_apart() -> None:
    kept = Kept("The user's sister moved to Ulm.", "the user's sister", "past", negated=False)
    assert finds("Last year the user's sister moved to Ulm.", kept)
    wrong = ("The user moved to Ulm.", "The user's sister moves to Ulm.", "The user's sister never moved to Ulm.")
    plural = Kept("The user's parents moved to Ulm.", "the user's parents", "past", negated=False)
    assert finds("The user's parents moved to Ulm.", plural)
    assert finds("The user and others live in Ulm.", Kept("The user lives in Ulm.", "the user", "now", negated=False))
    assert not any(finds(text, kept) for text in (*wrong, "The user's brother moved to Ulm."))


def test_both_halves_of_the_labelled_turns_hold_a_hundred_of_the_user() -> None:
    turns = read()
    assert {turn.half for turn in read(FURTHER)} == {"tuned further"}
    assert {turn.half for turn in read(FRESH)} == {"fresh"}
    assert all(sum(turn.half == half and turn.role == "user" for turn in turns) >= 100 for half in HALVES)
    assert not any(turn.memories for turn in turns if turn.role == "assistant")
