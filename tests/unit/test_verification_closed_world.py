"""A datastore that is taken to tell everything: what nothing credible in it states is refuted."""

import pytest

from ewe.retrieval.bm25 import BM25Retriever
from ewe.types import Passage, Verdict, VerificationRequest
from ewe.verification.value_comparison.verifier import ValueVerifier

PASSAGES = [
    Passage("page", "Ada Lovelace was born in London in 1815. She worked as a mathematician.", title="Ada Lovelace"),
    Passage("rumour", "Ada Lovelace died in Paris in 1850.", title="Ada Lovelace", source="rumours", veracity=0.3),
]


def judge(sentence: str, **options: bool) -> Verdict:
    verifier = ValueVerifier(BM25Retriever(PASSAGES), **options)
    [result] = verifier.verify([VerificationRequest("Who was Ada Lovelace?", "", sentence)])
    return result.verdict


@pytest.mark.parametrize(
    "sentence", ["Ada Lovelace won the Turing Award in 1966.", "Grace Hopper was born in New York in 1906."]
)
def test_what_nothing_states_is_refuted_only_in_a_closed_world(sentence: str) -> None:
    assert judge(sentence) is Verdict.INCONCLUSIVE
    assert judge(sentence, assume_complete=True) is Verdict.REFUTED


def test_what_is_stated_is_supported_in_a_closed_world() -> None:
    assert judge("Ada Lovelace was born in London in 1815.", assume_complete=True) is Verdict.SUPPORTED


def test_what_only_an_incredible_source_states_is_refuted() -> None:
    sentence = "Ada Lovelace died in Paris in 1850."
    assert judge(sentence, assume_complete=True) is Verdict.SUPPORTED
    assert judge(sentence, assume_complete=True, veracity_weighting=True) is Verdict.REFUTED


def test_a_sentence_without_claims_is_never_refuted() -> None:
    assert judge("Who can say?", assume_complete=True) is Verdict.NOT_CHECKED


@pytest.mark.parametrize(
    ("text", "claim", "evidence"),
    [
        ("Ada Byron won the Ulm Prize in 1931.", "Jan Holm won the Ulm Prize in 1931.", ["p"]),
        ("Ada Byron was born in Ulm in 1847.", "Jan Holm was born in Ulm in 1847.", []),
    ],
)
def test_another_subject_is_evidence_where_the_claim_should_be_the_only_one(
    text: str, claim: str, evidence: list[str]
) -> None:
    verifier = ValueVerifier(BM25Retriever([Passage("p", text)]), assume_complete=True)
    [result] = verifier.verify([VerificationRequest("", "", claim)])
    assert [piece.passage.id for piece in result.evidence] == evidence
    assert [found.verdict for found in result.claims] == [Verdict.REFUTED]
