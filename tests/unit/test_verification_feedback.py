import pytest
from transformers import ByT5Tokenizer

from ewe.engine.units.unit_text import UnitTokenizer
from ewe.types import Claim, Evidence, Passage, Verdict, VerificationResult
from ewe.verification.feedback import PassageFeedback


def evidence(name, stance, score, excerpt="", veracity=1.0):
    passage = Passage(name, f"Long text of {name}. {excerpt}", title=f"Title {name}", veracity=veracity)
    return Evidence(passage, stance, score, excerpt)


RESULT = VerificationResult(
    claims=(Claim("A is B", verdict=Verdict.REFUTED), Claim("C is D", verdict=Verdict.SUPPORTED)),
    evidence=(
        evidence("s", Verdict.SUPPORTED, 0.9, "C is D."),
        evidence("r1", Verdict.REFUTED, 0.5, "A is E."),
        evidence("r2", Verdict.REFUTED, 0.8, "A is F.", veracity=0.4),
    ),
)


def test_units_are_excerpts_under_the_title_with_the_most_useful_last():
    units = PassageFeedback().build(RESULT)
    assert [unit.text for unit in units] == ["C is D.", "A is E.", "A is F."]
    assert [unit.title for unit in units] == ["Title s", "Title r1", "Title r2"]
    assert units[-1].veracity == 0.4


def test_ids_are_stable_and_tell_excerpts_of_one_passage_apart():
    first, second = PassageFeedback().build(RESULT), PassageFeedback().build(RESULT)
    assert first == second
    other = VerificationResult(evidence=(evidence("s", Verdict.SUPPORTED, 0.9, "C is G."),))
    assert PassageFeedback().build(other)[0].id != first[0].id
    assert PassageFeedback().build(other)[0].id.startswith("s#")


@pytest.mark.parametrize(
    ("forms", "texts"),
    [
        (("refuting",), ["A is E.", "A is F."]),
        (("supporting",), ["C is D."]),
        (("instruction",), ["Please refrain from including the following imprecise statements: (1) A is B"]),
        ((), []),
    ],
)
def test_each_form_can_be_switched(forms, texts):
    assert [unit.text for unit in PassageFeedback(forms).build(RESULT)] == texts


def test_the_instruction_lists_all_refuted_claims_once_and_needs_one():
    claims = tuple(Claim(text, verdict=Verdict.REFUTED) for text in ("A is B", "A is B", "E is F"))
    [unit] = PassageFeedback(("instruction",)).build(VerificationResult(claims=claims))
    assert unit.text.endswith("(1) A is B (2) E is F")
    assert PassageFeedback(("instruction",)).build(VerificationResult(claims=(Claim("x"),))) == []


def test_copies_are_left_out_and_their_number_is_bounded():
    same = tuple(evidence(name, Verdict.REFUTED, 0.5, "A is E.") for name in ("a", "a", "b"))
    assert len(PassageFeedback().build(VerificationResult(evidence=same))) == 2
    many = tuple(evidence(str(i), Verdict.REFUTED, i / 10, f"A is {i}.") for i in range(9))
    texts = [unit.text for unit in PassageFeedback(max_units=2).build(VerificationResult(evidence=many))]
    assert texts == ["A is 7.", "A is 8."]


def test_the_sentences_of_one_passage_share_a_unit_the_weightiest_first():
    both = tuple(
        Evidence(Passage("p", "A is E. A was F. A has G.", title="A"), Verdict.REFUTED, score, excerpt)
        for score, excerpt in ((0.5, "A is E."), (0.9, "A was F. A has G."), (0.7, "A has G."))
    )
    supporting = evidence("p", Verdict.SUPPORTED, 1.0, "A is A.")
    units = PassageFeedback().build(VerificationResult(evidence=(*both, supporting)))
    assert [unit.text for unit in units] == ["A is A.", "A was F. A has G. A is E."]
    assert len({unit.id for unit in units}) == 2


def test_a_unit_too_small_for_all_sentences_keeps_the_deciding_one():
    many = tuple(
        Evidence(Passage("p", "Long text."), Verdict.REFUTED, score / 9, f"Fact {score} is so.") for score in range(9)
    )
    [unit] = PassageFeedback().build(VerificationResult(evidence=many))
    text = UnitTokenizer(ByT5Tokenizer(), 20, "{text}").encode(unit).text
    assert text == "Fact 8 is so."


def test_a_passage_without_an_excerpt_comes_whole():
    [unit] = PassageFeedback().build(VerificationResult(evidence=(evidence("r", Verdict.REFUTED, 0.5),)))
    assert unit.id == "r"
    assert unit.text.startswith("Long text of r.")
