import pytest

from ewe.evaluation.report import checked_data
from ewe.evaluation.report.checked_text import wrong_calls
from ewe.text.check_result import CheckedSentence, CheckedText
from ewe.types import Claim, Evidence, Passage, Sentence, Verdict

FOR = Evidence(Passage("a", "Ada was born in Oslo.", "Ada"), Verdict.SUPPORTED, 0.6, "Ada was born in Oslo.", "claim")
AGAINST = Evidence(Passage("b", "It was in Rome. It rained."), Verdict.REFUTED, 0.9, "It was in Rome.", "claim")


def checked(verdict, *evidence):
    sentence = Sentence("claim", 0, 5, verdict, claims=(Claim("claim", 0, 5, verdict, 0.9),))
    return CheckedText("claim", (CheckedSentence(sentence, evidence),))


def test_a_wrong_call_becomes_a_pair_with_the_right_label():
    [pair] = wrong_calls(checked(Verdict.REFUTED, FOR, AGAINST), Verdict.SUPPORTED)
    wanted = {"evidence": "It was in Rome.", "title": "", "claim": "claim", "label": "supported", "given": "refuted"}
    assert pair == {**wanted, "score": 0.9}


@pytest.mark.parametrize(
    ("verdict", "evidence"),
    [(Verdict.SUPPORTED, (FOR, AGAINST)), (Verdict.INCONCLUSIVE, ()), (Verdict.REFUTED, (FOR,))],
)
def test_what_is_right_or_rests_on_nothing_gives_none(verdict, evidence):
    assert list(wrong_calls(checked(verdict, *evidence), Verdict.SUPPORTED)) == []


def test_a_sentence_says_which_evidence_decided():
    found = checked(Verdict.REFUTED, FOR, AGAINST)
    assert found.sentences[0].deciding is AGAINST
    assert checked_data(found)["sentences"][0]["decided_by"] == 1
    assert checked_data(checked(Verdict.INCONCLUSIVE, FOR))["sentences"][0]["decided_by"] is None
