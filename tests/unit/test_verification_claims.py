import pytest

from ewe.text.sentences import SentenceSplitter
from ewe.types import VerificationRequest
from ewe.verification.value_comparison.claims import extract_claims

SPLITTER = SentenceSplitter()


def claims(sentence, prompt="Tell me about Ada Lovelace.", preceding=""):
    return extract_claims(VerificationRequest(prompt, preceding, sentence), SPLITTER)


def texts(*arguments, **keywords):
    return [parsed.claim.text for parsed in claims(*arguments, **keywords)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "She was born in London in 1815 and died in 1852.",
            ["Ada Lovelace was born in London in 1815", "Ada Lovelace died in 1852"],
        ),
        (
            "Lovelace, who was born in London, married William King in 1835.",
            ["Ada Lovelace was born in London", "Ada Lovelace married William King in 1835"],
        ),
        (
            "In 1843, she published her notes; her father was Lord Byron.",
            ["In 1843, Ada Lovelace published her notes", "Ada Lovelace's father was Lord Byron"],
        ),
        (
            "She won the Cup in 1840 and the Medal in 1842.",
            ["Ada Lovelace won the Cup in 1840", "Ada Lovelace the Medal in 1842"],
        ),
        ("It was a wonderful time.", []),
        ("Was she born in London?", []),
        ("You should read more about this!", []),
    ],
)
def test_clauses_become_claims_that_stand_alone(sentence, expected):
    assert texts(sentence) == expected


def test_spans_are_code_points_of_the_sentence():
    sentence = "“Née 🙂” aside, she was born in London and she died in 1852."
    for parsed in claims(sentence):
        assert 0 <= parsed.claim.start < parsed.claim.end <= len(sentence)
    assert sentence[parsed.claim.start : parsed.claim.end] == "and she died in 1852"


@pytest.mark.parametrize(
    ("prompt", "preceding", "sentence", "subject"),
    [
        (
            "Compare Ada Lovelace and Charles Babbage.",
            "Babbage was born in 1791. ",
            "He died in 1871.",
            "charles babbage",
        ),
        ("", "Ada Lovelace was born in 1815. ", "She died in 1852.", "ada lovelace"),
        ("", "Ada Lovelace wrote Sketch. It was published in 1843. ", "She died in 1852.", "ada lovelace"),
        (
            "",
            "The University of Ulm is old. Ada Lovelace was born in 1815. ",
            "The university was founded in 1967.",
            "university ulm",
        ),
        ("Who was Ada Lovelace?", "", "Lovelace died in 1852.", "ada lovelace"),
        ("", "", "In later years Ada Lovelace lived in Surrey.", "ada lovelace"),
    ],
)
def test_subjects_are_found_in_the_text_before(prompt, preceding, sentence, subject):
    [parsed] = claims(sentence, prompt=prompt, preceding=preceding)
    assert " ".join(parsed.statement.subject.words) == subject


def test_different_wordings_of_one_statement_have_one_form():
    wordings = [
        "Ada Lovelace wrote Sketch in 1843.",
        "Sketch was written by Ada Lovelace in 1843.",
        "Sketch, a book by Ada Lovelace, was published in 1843.",
        "Ada Lovelace is the author of Sketch, published in 1843.",
        "The author of Sketch, published in 1843, is Ada Lovelace.",
    ]
    forms = set()
    for wording in wordings:
        said = [parsed.statement for parsed in claims(wording)]
        stated = {(s.subject.words, a.value.words) for s in said for a in s.arguments if hasattr(a.value, "words")}
        years = {a.value.year for s in said for a in s.arguments if hasattr(a.value, "year")}
        forms.add((frozenset(stated), frozenset(years)))
    assert forms == {(frozenset({(("ada", "lovelace"), ("sketch",))}), frozenset({1843}))}
