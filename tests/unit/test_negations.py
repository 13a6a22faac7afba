import pytest

from ewe.verification.negations import negates_another, negations_of
from ewe.verification.signals import SIGNALS, signals


def negated(claim, sentence, led=None):
    return dict(zip(SIGNALS, signals(claim, sentence, led or sentence), strict=True))["negations"]


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("It is removed by the doctor, not by the nurse.", "It is removed by the nurse, not by the doctor."),
        ("It was significant in men but not in women.", "It was significant in women but not in men."),
        ("In rats, but not in mice, it raised the pressure.", "In mice, but not in rats, it raised the pressure."),
        ("Titles of notes are encrypted.", "Titles of notes are not encrypted, and neither are tags."),
        ("Vaccinations are covered.", "What is not covered: Vaccinations."),
    ],
)
def test_a_word_that_only_one_of_them_negates(claim, evidence):
    assert negates_another(claim, evidence)
    assert negates_another(evidence, claim)
    assert not negates_another(evidence, evidence)


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("The bridge was proposed in 1974.", "The bridge was proposed in 1974 but never built."),
        ("It is open on Mondays.", "It is open on Mondays, and is not open on Tuesdays."),
        ("It was built by Bo.", "It was not built by Ada. It was built by Bo."),
        ("It is removed by the nurse.", "It is removed by the nurse, not by the doctor."),
    ],
)
def test_a_word_that_the_evidence_has_without_its_negation_too(claim, evidence):
    assert not negates_another(claim, evidence)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Titles of notes are not encrypted.", "Titles of notes are not encrypted, and neither are tags."),
        ("The bridge was proposed in 1974.", "The bridge was proposed in 1974 but never built."),
        ("Ada Lind funded the trial.", "Ada Lind funded the trial, which had no sponsor."),
        ("It is removed by the nurse.", "It is removed by the nurse, not by the doctor."),
    ],
)
def test_a_negation_of_words_that_are_left_out_does_not_count(claim, sentence):
    assert not negated(claim, sentence)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Titles of notes are encrypted.", "Titles of notes are not encrypted, and neither are tags."),
        ("Ada and Bo can swim.", "Neither Ada nor Bo can swim."),
        ("The bridge was opened.", "The bridge was not officially opened."),
        ("The plan is approved.", "If nobody objects, the plan is approved."),
        ("Children pay five euros.", "Children pay five euros, but not on Mondays."),
        ("Towels are included.", "Towels are included in neither price."),
        ("The claim is returned.", "Without a signature, the claim is returned."),
    ],
)
def test_a_negation_of_what_is_claimed_or_a_condition_counts(claim, sentence):
    assert negated(claim, sentence)


def test_a_title_negates_what_the_claim_has_from_it():
    excerpt = "Damage to carpets."
    for title in ("Policy - What is not covered", "Policy - Damage is not covered"):
        assert negated("Damage to carpets is covered.", excerpt, f"{title}: {excerpt}")
        assert not negated("Damage to carpets is not covered.", excerpt, f"{title}: {excerpt}")
    assert negated("Visitors touch the glass.", "touch the glass", "Visitors must not: touch the glass")
    assert not negated("Damage to carpets is paid.", "Damage to carpets is paid.", f"Not covered: {excerpt}")


def test_what_a_negation_is_of():
    [own] = negations_of("Ada has not met Bo in Oslo, but in Rome.")
    assert (own.first, own.words, own.is_aside) == ("meet", {"meet", "bo", "oslo"}, True)
