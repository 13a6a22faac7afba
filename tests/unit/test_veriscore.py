"""VeriScore: by hand, by its properties, and where the definition leaves a gap."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from shared_data import read_jsonl, require

from ewe.evaluation.veriscore import (
    ClaimCounts,
    count_claims,
    is_refusal,
    median_claims,
    score_response,
    veriscore,
)
from ewe.types import Claim, Verdict

claims_of_answer = st.lists(st.builds(Claim, st.sampled_from("abcdef"), verdict=st.sampled_from(Verdict)), max_size=8)
some_counts = st.integers(0, 60).flatmap(lambda n: st.builds(ClaimCounts, st.integers(0, n), st.just(n)))
some_ks = st.floats(0.5, 200)


def claims(supported: int, others: int = 0) -> list[Claim]:
    found = [Claim(f"true {number}", verdict=Verdict.SUPPORTED) for number in range(supported)]
    return found + [Claim(f"open {number}", verdict=Verdict.INCONCLUSIVE) for number in range(others)]


def test_figures_by_hand() -> None:
    result = veriscore([claims(3, 1), claims(0, 2)], k=6)
    first, second = result.responses
    assert (first.precision, first.recall, first.f1) == (0.75, 0.5, pytest.approx(0.6))
    assert (second.precision, second.recall, second.f1) == (0, 0, 0)
    assert (result.precision, result.recall, result.f1) == (0.375, 0.25, pytest.approx(0.3))
    assert score_response(ClaimCounts(3, 4), 2).recall == 1.0


def test_k_is_the_median_number_of_claims_and_at_least_one() -> None:
    assert veriscore([claims(3, 1), claims(0, 2), claims(9)]).k == 4
    assert median_claims([ClaimCounts(0, 3), ClaimCounts(1, 4)]) == 3.5
    assert median_claims([ClaimCounts(0, 0)]) == 1
    assert median_claims([]) == 1


def test_an_answer_without_claims_scores_nothing_and_counts_for_k() -> None:
    result = veriscore([[], claims(4), []])
    assert (result.k, result.without_claims, result.refusals) == (1, 2, 0)
    assert (result.precision, result.f1) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


def test_a_refusal_scores_nothing_whatever_it_says_and_does_not_lower_k() -> None:
    refused = count_claims(claims(5), refused=True)
    result = veriscore([refused, refused, claims(4)])
    assert (result.k, result.without_claims, result.refusals) == (4, 0, 2)
    assert result.recall == pytest.approx(1 / 3)
    assert veriscore([refused]).f1 == 0


def test_claims_are_told_apart_by_their_exact_text() -> None:
    found = [Claim("A.", verdict=Verdict.SUPPORTED), Claim("A.", 9, 11, Verdict.SUPPORTED), Claim("a.")]
    assert count_claims(found) == ClaimCounts(1, 2)


def test_a_claim_with_several_verdicts_is_supported_only_if_it_always_is() -> None:
    found = [Claim("A.", verdict=verdict) for verdict in (Verdict.SUPPORTED, Verdict.REFUTED, Verdict.SUPPORTED)]
    assert {count_claims(order) for order in permutations(found)} == {ClaimCounts(0, 1)}


@given(st.lists(claims_of_answer, min_size=1, max_size=6), st.none() | some_ks)
def test_figures_lie_between_0_and_1_and_f1_between_its_parts(answers: list[list[Claim]], k: float | None) -> None:
    result = veriscore(answers, k)
    for score in result.responses:
        assert 0 <= score.precision <= 1
        assert 0 <= score.recall <= 1
        low, high = sorted((score.precision, score.recall))
        assert low - 1e-12 <= score.f1 <= high + 1e-12
        assert (score.f1 > 0) == (score.precision > 0) == (score.recall > 0)
    assert result.f1 == pytest.approx(math.fsum(score.f1 for score in result.responses) / len(answers))
    assert result.k >= 0.5


@given(claims_of_answer, st.randoms())
def test_order_and_repetition_of_claims_change_nothing(answer: list[Claim], random: object) -> None:
    shuffled = answer * 2
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert count_claims(shuffled) == count_claims(answer)


@examples(25)
@given(some_counts, some_ks)
def test_another_supported_claim_never_hurts_and_another_unsupported_one_never_helps(
    counts: ClaimCounts, k: float
) -> None:
    score = score_response(counts, k)
    better = score_response(ClaimCounts(counts.supported + 1, counts.stated + 1), k)
    worse = score_response(ClaimCounts(counts.supported, counts.stated + 1), k)
    assert better.f1 >= score.f1 - 1e-12
    assert better.recall >= score.recall
    assert worse.f1 <= score.f1 + 1e-12
    assert worse.recall == score.recall


@given(some_counts, some_ks, some_ks)
def test_a_larger_k_never_raises_the_score(counts: ClaimCounts, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert score_response(counts, large).f1 <= score_response(counts, small).f1 + 1e-12


@pytest.mark.parametrize("k", [0, -1, math.nan])
def test_a_k_that_is_not_positive_is_refused(k: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        veriscore([claims(1)], k)


def test_counts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="2 of 1"):
        ClaimCounts(2, 1)
    with pytest.raises(ValueError, match="refusal"):
        ClaimCounts(0, 1, refused=True)
    with pytest.raises(ValueError, match="no responses"):
        veriscore([])


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I don't have any information on that.",
        "I cannot provide a biography of X.",
        "I apologize, but no.",
        "Unfortunately, I couldn’t find anything.",
        "As an AI language model, I have no access to it.",
    ],
)
def test_refusals_are_recognised(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize("text", ["", "Ana Sorry was a painter.", "I can tell you that she was born.", "Cannot."])
def test_answers_are_no_refusals(text: str) -> None:
    assert not is_refusal(text)


def test_refusals_of_chatgpt_are_those_that_people_gave_no_facts_for() -> None:
    for row in read_jsonl(require("factscore/chatgpt.jsonl")):
        assert is_refusal(row["output"]) == (row["annotations"] is None), row["output"]
