"""Claims by rules: what ordinary sentences are taken apart into, and that odd ones break nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ewe.types import Verdict, VerificationRequest
from ewe.verification.extraction.protocol import ClaimExtractor
from ewe.verification.extraction.rules import RuleClaims

CURIE = "Tell me about Marie Curie."
RULES = RuleClaims()


def claims(sentence: str, preceding: str = "", prompt: str = CURIE) -> list[str]:
    return [claim.text for claim in RULES.extract([VerificationRequest(prompt, preceding, sentence)])[0]]


CASES = {
    "one statement": ("Marie Curie discovered polonium.", ["Marie Curie discovered polonium."]),
    "pronoun": ("She discovered polonium.", ["Marie Curie discovered polonium."]),
    "owner": ("Her laboratory stood in Paris.", ["Marie Curie's laboratory stood in Paris."]),
    "short name": ("Curie discovered polonium.", ["Marie Curie discovered polonium."]),
    "shared subject": (
        "She moved to Paris in 1891 and studied physics at the Sorbonne.",
        ["Marie Curie moved to Paris in 1891.", "Marie Curie studied physics at the Sorbonne."],
    ),
    "two clauses": (
        "She worked in Paris, and her sister Bronia practised medicine.",
        ["Marie Curie worked in Paris.", "Marie Curie's sister Bronia practised medicine."],
    ),
    "relative clause of a predicate": (
        "Marie Curie was a physicist who won two Nobel Prizes.",
        ["Marie Curie was a physicist.", "Marie Curie won two Nobel Prizes."],
    ),
    "relative clause of a name": (
        "She worked with Pierre Curie, who taught at the Sorbonne.",
        ["Marie Curie worked with Pierre Curie.", "Pierre Curie taught at the Sorbonne."],
    ),
    "relative clause in the middle": (
        "Marie Curie, who was born in Warsaw, died in Passy.",
        ["Marie Curie was born in Warsaw.", "Marie Curie died in Passy."],
    ),
    "where": (
        "In 1891, she moved to Paris, where she studied physics.",
        ["In 1891, Marie Curie moved to Paris.", "Marie Curie studied physics in Paris."],
    ),
    "where, with a time": (
        "She settled in Paris, where she lived until her death in 1934.",
        ["Marie Curie settled in Paris.", "Marie Curie lived in Paris until her death in 1934."],
    ),
    "there": (
        "She moved to Paris in 1891 and taught there.",
        ["Marie Curie moved to Paris in 1891.", "Marie Curie taught in Paris."],
    ),
    "participle at the beginning": (
        "Born in Warsaw, Marie Curie studied in Paris.",
        ["Marie Curie was born in Warsaw.", "Marie Curie studied in Paris."],
    ),
    "-ing phrases": (
        "She worked in Paris, winning two prizes and founding an institute.",
        ["Marie Curie worked in Paris.", "Marie Curie won two prizes.", "Marie Curie founded an institute."],
    ),
    "after -ing": (
        "After graduating from the Sorbonne, she taught in Paris.",
        ["Marie Curie graduated from the Sorbonne.", "Marie Curie taught in Paris."],
    ),
    "apposition": (
        "Marie Curie, a Polish physicist, won the Nobel Prize in 1903.",
        ["Marie Curie won the Nobel Prize in 1903.", "Marie Curie was a Polish physicist."],
    ),
    "years of life": (
        "Marie Curie (1867–1934) was a physicist.",
        ["Marie Curie was a physicist.", "Marie Curie was born in 1867.", "Marie Curie died in 1934."],
    ),
    "date and place of birth": (
        "She was born on November 7, 1867, in Warsaw, Poland.",
        ["Marie Curie was born on November 7, 1867.", "Marie Curie was born in Warsaw, Poland."],
    ),
    "professions": (
        "Marie Curie was a Polish physicist and chemist.",
        ["Marie Curie was a Polish physicist.", "Marie Curie was a chemist."],
    ),
    "list of objects": (
        "She discovered polonium, radium, and the radioactivity of thorium.",
        [
            "Marie Curie discovered polonium.",
            "Marie Curie discovered radium.",
            "Marie Curie discovered the radioactivity of thorium.",
        ],
    ),
    "list of dates": (
        "She won the Nobel Prize in 1903 and 1911.",
        ["Marie Curie won the Nobel Prize in 1903.", "Marie Curie won the Nobel Prize in 1911."],
    ),
    "examples": (
        'She wrote several books, including "Radioactivity" (1910) and "Pierre Curie" (1923).',
        [
            "Marie Curie wrote several books.",
            'Marie Curie wrote the book "Radioactivity" (1910).',
            'Marie Curie wrote the book "Pierre Curie" (1923).',
        ],
    ),
    "passive of two verbs": (
        "She was born in Warsaw and raised in Poland.",
        ["Marie Curie was born in Warsaw.", "Marie Curie was raised in Poland."],
    ),
    "one object of two verbs": (
        "She founded and directed the Radium Institute.",
        ["Marie Curie founded the Radium Institute.", "Marie Curie directed the Radium Institute."],
    ),
    "no name and no number": (
        "Her notebooks are still radioactive.",
        ["Marie Curie's notebooks are still radioactive."],
    ),
    "connective left out": ("However, she also studied mathematics.", ["Marie Curie studied mathematics."]),
    "remark before a fact": (
        "It is worth noting that Marie Curie discovered polonium.",
        ["Marie Curie discovered polonium."],
    ),
    "list marker": ("- Marie Curie discovered polonium.", ["Marie Curie discovered polonium."]),
}


@pytest.mark.parametrize("case", CASES)
def test_sentences_come_apart(case: str) -> None:
    sentence, expected = CASES[case]
    assert claims(sentence) == expected


WHOLE = {
    "adjectives": "Marie Curie led a long and successful career in physics.",
    "half of a noun": "Marie Curie read several physics and chemistry journals.",
    "a name with and": "Marie Curie lectured at the Academy of Arts and Sciences.",
    "what joins": "Marie Curie studied the difference between radium and barium.",
    "what mixes": "Marie Curie prepared a mixture of radium and barium.",
    "infinitives": "Marie Curie tried to isolate radium and measure its mass.",
    "negation": "Marie Curie did not patent the isolation of radium.",
    "or": "Marie Curie never visited Spain or Portugal.",
}


@pytest.mark.parametrize("case", WHOLE)
def test_what_belongs_together_stays_whole(case: str) -> None:
    assert claims(WHOLE[case]) == [WHOLE[case]]


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "   ",
        "Did Marie Curie discover polonium?",
        "I'm sorry, but I cannot find any information about Marie Curie.",
        "As an AI language model, I do not know Marie Curie.",
        "You should read her notebooks.",
        "Her legacy continues to inspire generations.",
        "She was a truly remarkable and inspiring woman.",
        "It is possible that this was a mistake.",
        "I hope this helps!",
        "Thank you.",
        "...",
        "###",
    ],
)
def test_what_cannot_be_checked_is_left_out(sentence: str) -> None:
    assert claims(sentence) == []


def test_the_subject_at_hand_follows_the_text() -> None:
    before = "Marie Curie worked in Paris. Pierre Curie was a French physicist."
    assert claims("He taught at the Sorbonne.", before) == ["Pierre Curie taught at the Sorbonne."]
    assert claims("The physicist taught at the Sorbonne.", before) == ["Pierre Curie taught at the Sorbonne."]


def test_it_is_the_last_subject_that_was_no_person() -> None:
    told = claims("It became a model for others.", "She founded an institute. The institute stood in Warsaw.")
    assert told == ["The institute became a model for others."]


def test_the_club_is_the_name_before_it() -> None:
    told = claims("She taught at the Sorbonne and left the university in 1934.")
    assert told[-1] == "Marie Curie left the Sorbonne in 1934."


def test_without_a_prompt_the_first_subject_is_at_hand() -> None:
    assert claims("He wrote it in 1928.", "Bertolt Brecht was a playwright.", prompt="")[0].startswith("Bertolt Brecht")


def test_a_pronoun_that_means_nothing_known_stays() -> None:
    assert claims("She discovered polonium.", prompt="") == ["She discovered polonium."]


def test_spans_lie_where_the_claims_are() -> None:
    sentence = "  - She moved to Paris in 1891 and studied physics."
    found = RULES.extract([VerificationRequest(CURIE, "", sentence)])[0]
    assert [sentence[claim.start : claim.end] for claim in found] == ["She moved to Paris in 1891", "studied physics"]
    assert {claim.verdict for claim in found} == {Verdict.NOT_CHECKED}


def test_many_sentences_at_once_and_equal_claims_once() -> None:
    assert isinstance(RULES, ClaimExtractor)
    requests = [
        VerificationRequest(CURIE, "", text) for text in ("She slept.", "She read it and she read it.", "Really?")
    ]
    told = [[claim.text for claim in group] for group in RULES.extract(requests)]
    assert told[1:] == [["Marie Curie read it."], []]
    assert RULES.extract([]) == []


def test_a_long_sentence_has_a_bounded_number_of_claims() -> None:
    names = ", ".join(f"Element{number}" for number in range(500))
    assert 1 <= len(claims(f"She discovered {names}, and Radium.")) <= 32


_PIECES = """\
Marie Curie She he it who which where that whose and or but , , ; ( ) " “ ” 's ' . – - is was were been has
had not to of in on by for with after before while although including such as both a an the his born known won
winning being having wrote written founded plays play films 1867 1903 21 $ % May November 7 Paris Nobel Prize
prizes physicist and also however most respectively * _ É 文"""
_TEXTS = st.one_of(st.text(max_size=120), st.lists(st.sampled_from(_PIECES.split()), max_size=40).map(" ".join))


@settings(max_examples=200, deadline=None)
@given(prompt=_TEXTS, preceding=_TEXTS, sentence=_TEXTS)
def test_any_text_gives_claims_inside_the_sentence(prompt: str, preceding: str, sentence: str) -> None:
    request = VerificationRequest(prompt, preceding, sentence)
    [found] = RULES.extract([request])
    for claim in found:
        assert 0 <= claim.start < claim.end <= len(sentence)
        assert claim.text.strip() == claim.text != ""
        assert "\n" not in claim.text
    assert RuleClaims().extract([request]) == [found]
