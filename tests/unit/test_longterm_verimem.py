"""VeriMem: every formula against numbers worked out by hand, and what must hold for all numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.errors import InvalidRequestError
from ewe.longterm.records import Memory, MemorySource
from ewe.longterm.scoring import forms, verimem
from ewe.longterm.scoring.contradictions import Relation
from ewe.longterm.scoring.threshold import Action, VeracityThreshold, estimate_criticality
from ewe.longterm.scoring.verimem import (
    evidence_conflict,
    recall_uncertainty,
    tier_veracity,
    veracity_uncertainty,
    write_time_prior,
)
from ewe.types import Passage, ScoredPassage

shares = st.floats(0, 1)
ENTAILED, CONTRADICTED, NEUTRAL = np.eye(3)


def row_of(numbers):
    row = np.array(numbers) + 1e-6
    return row / row.sum()


judgements = st.lists(st.tuples(shares, shares, shares).map(row_of), min_size=1, max_size=6).map(np.array)


def test_both_tables_of_sources():
    assert tier_veracity(MemorySource("tool")) == 1.0
    assert tier_veracity(MemorySource("user"), corroborated=True) == 0.8
    assert tier_veracity(MemorySource("model"), corroborated=True) == 0.6
    assert tier_veracity(MemorySource("user")) == 0.4
    assert tier_veracity(MemorySource("model")) == 0.2
    assert tier_veracity(MemorySource("never heard of")) == 0.2
    assert [write_time_prior(MemorySource(kind)) for kind in ("tool", "user", "model")] == [0.9, 0.7, 0.5]


def test_initial_veracity():
    weights = verimem.InitialWeights(0.5, 0.3, 0.2)
    assert verimem.initial_veracity(0.8, 0.6, 0.5, weights) == pytest.approx(0.4 + 0.18 + 0.1)
    assert verimem.initial_veracity(0.8, None, 0.1, weights) == pytest.approx((0.4 + 0.02) / 0.7)
    assert verimem.initial_veracity(0.8, weights=weights) == pytest.approx(0.8)


def test_content_and_consistency():
    assert verimem.content_veracity(0.9, 0.4) == pytest.approx(0.7 * 0.9 + 0.3 * 0.4)
    assert verimem.content_veracity(-1.0, 0.1) == 0.0
    assert verimem.consistency_veracity([0.5, 1.0], [0.8, 0.9]) == pytest.approx((0.4 + 0.9) / 2)
    assert verimem.consistency_veracity([], []) is None


def test_consistency_by_entailment_sees_a_contradiction():
    assert verimem.entailed_consistency(np.array([CONTRADICTED]), [0.9]) == 0.0
    assert verimem.entailed_consistency(np.array([NEUTRAL]), [0.9]) == 0.5
    mixed = verimem.entailed_consistency(np.array([ENTAILED, CONTRADICTED]), [0.9, 0.3])
    assert mixed == pytest.approx(0.5 + 0.5 * 0.6 / 1.2)
    assert verimem.entailed_consistency(np.zeros((0, 3)), []) is None


def test_moving_average_and_verification():
    assert verimem.updated_veracity(0.6, 1.0) == pytest.approx(0.72)
    assert verimem.verification_result([1.0, 0.5], [3.0, 1.0], 0.5) == pytest.approx((3.5 / 4) * 0.5)


def test_decay_as_written_makes_an_old_truth_false():
    assert verimem.verification_result([1.0], [1.0], 0.0) == 0.0


def test_bayes_as_written():
    assert verimem.bayesian_veracity_as_written(0.6, 0.5, 0.2, 0.3) == pytest.approx(0.3 / (0.3 + 0.08 + 0.18))
    assert verimem.bayesian_veracity_as_written(0.9, 0.0, 0.0, 1.0) == 0.0  # what the docstring warns of
    assert verimem.bayesian_veracity_as_written(0.0, 1.0, 0.0, 0.0) == 0.0  # 0/0


def test_bayes_in_our_form():
    assert verimem.bayesian_veracity(0.5, ENTAILED, 0.9) == pytest.approx(0.9)
    assert verimem.bayesian_veracity(0.5, CONTRADICTED, 0.9) == pytest.approx(0.1)
    assert verimem.bayesian_veracity(0.7, NEUTRAL) == pytest.approx(0.7)
    odds = (0.3 / 0.7) * (0.9 * 0.6 + 0.1 * 0.1 + 0.15) / (0.9 * 0.1 + 0.1 * 0.6 + 0.15)
    assert verimem.bayesian_veracity(0.3, np.array([[0.6, 0.1, 0.3]])) == pytest.approx(odds / (1 + odds))
    assert verimem.bayesian_veracity(0.3, np.zeros((0, 3))) == pytest.approx(0.3)


def test_each_piece_of_evidence_has_its_own_reliability():
    rows = np.array([ENTAILED, CONTRADICTED, ENTAILED])
    odds = (0.8 / 0.2) * (0.4 / 0.6) * 1.0
    assert verimem.bayesian_veracity(0.5, rows, [0.8, 0.6, 0.5]) == pytest.approx(odds / (1 + odds))
    for bad in (0.4, 1.0, [0.9, 0.9, 0.3]):
        with pytest.raises(InvalidRequestError):
            verimem.bayesian_veracity(0.5, rows, bad)


def test_no_prior_is_beyond_evidence():
    assert verimem.bayesian_veracity(1.0, np.array([CONTRADICTED] * 3)) < 0.5
    assert verimem.bayesian_veracity(0.0, np.array([ENTAILED] * 3)) > 0.5


@given(veracity=shares, strength=st.floats(0.01, 1.0))
def test_evidence_never_moves_a_memory_against_what_it_says(veracity, strength):
    for row in (
        np.array([[strength, 0.0, 1.0 - strength]]),
        np.array([[strength, strength / 2, 1.0 - 1.5 * strength]]),
    ):
        if (row >= 0).all():
            assert verimem.bayesian_veracity(veracity, row) >= veracity
            assert verimem.bayesian_veracity(veracity, row[:, [1, 0, 2]]) <= veracity
    assert verimem.bayesian_veracity(veracity, NEUTRAL) == veracity


@pytest.mark.parametrize("rows", [[[0.5, 0.5, 0.5]], [[1.5, -0.5, 0.0]], [[np.nan, 0.5, 0.5]]])
def test_what_is_no_judgement_is_refused(rows):
    with pytest.raises(InvalidRequestError):
        verimem.bayesian_veracity(0.5, np.array(rows))


@given(veracity=shares, rows=judgements, seed=st.randoms())
def test_bayes_stays_in_0_1_and_the_order_of_evidence_does_not_matter(veracity, rows, seed):
    updated = verimem.bayesian_veracity(veracity, rows)
    assert 0 <= updated <= 1
    order = list(range(len(rows)))
    seed.shuffle(order)
    assert verimem.bayesian_veracity(veracity, rows[order]) == pytest.approx(updated)


@given(veracity=st.floats(0.05, 0.95), row=st.tuples(shares, shares, shares).map(row_of), moved=shares)
def test_bayes_rises_with_entailment_and_with_the_prior(veracity, row, moved):
    moved *= row[1]
    better = row + np.array([moved, -moved, 0.0])
    for form in (
        lambda v, e: verimem.bayesian_veracity(v, e),
        lambda v, e: verimem.bayesian_veracity_as_written(v, *np.clip(e, 0, 1)),
    ):
        assert form(veracity, better) >= form(veracity, row) - 1e-9
        assert form(min(1.0, veracity + 0.1), row) >= form(veracity, row) - 1e-9
        assert 0 <= form(veracity, row) <= 1


@given(parts=st.tuples(shares, shares, shares), more=shares, place=st.integers(0, 2))
def test_initial_veracity_rises_with_each_part(parts, more, place):
    better = list(parts)
    better[place] = max(parts[place], more)
    assert 0 <= verimem.initial_veracity(*parts) <= verimem.initial_veracity(*better) + 1e-12 <= 1 + 1e-9


@given(current=shares, verification=shares)
def test_the_moving_average_lies_between(current, verification):
    updated = verimem.updated_veracity(current, verification)
    assert min(current, verification) - 1e-12 <= updated <= max(current, verification) + 1e-12


@given(pairs=st.lists(st.tuples(shares, st.floats(0.01, 5)), min_size=1, max_size=6), decay=shares, seed=st.randoms())
def test_verification_is_a_mean_that_does_not_depend_on_the_order(pairs, decay, seed):
    result = verimem.verification_result(*zip(*pairs, strict=True), decay)
    assert -1e-12 <= result <= max(match for match, _ in pairs) + 1e-12
    seed.shuffle(pairs)
    assert verimem.verification_result(*zip(*pairs, strict=True), decay) == pytest.approx(result)


@given(veracity=st.floats(0.05, 0.95))
def test_log_odds_and_back(veracity):
    assert verimem.from_log_odds(verimem.log_odds(veracity)) == pytest.approx(veracity)


def test_uncertainties_by_hand():
    assert [veracity_uncertainty(v) for v in (0.0, 0.5, 0.75, 1.0)] == [0.0, 1.0, 0.5, 0.0]
    assert evidence_conflict(np.array([ENTAILED, ENTAILED, CONTRADICTED])) == 1.0
    assert evidence_conflict(np.array([[0.8, 0.1, 0.1], [0.6, 0.3, 0.1]])) == pytest.approx(0.3)
    assert recall_uncertainty(1.0) == 0.0
    assert recall_uncertainty(0.9, 0.25) == pytest.approx(1 - 0.8 * 0.75)


@given(veracity=shares, conflict=shares, more=shares)
def test_recall_uncertainty_rises_with_doubt(veracity, conflict, more):
    doubt = recall_uncertainty(veracity, conflict)
    assert 0 <= doubt <= 1
    assert recall_uncertainty(veracity, max(conflict, more)) >= doubt - 1e-12
    assert recall_uncertainty(0.5, conflict) == pytest.approx(1.0)


@given(rows=judgements, seed=st.randoms())
def test_the_conflict_of_evidence_stays_in_0_1_in_any_order(rows, seed):
    order = list(range(len(rows)))
    seed.shuffle(order)
    assert 0 <= evidence_conflict(rows) <= 1
    assert evidence_conflict(rows[order]) == pytest.approx(evidence_conflict(rows))


def test_the_threshold():
    threshold = VeracityThreshold(0.5, 0.3)
    assert threshold.of(0.0) == 0.5
    assert threshold.of(0.5) == pytest.approx(0.65)
    assert VeracityThreshold(0.9, 0.5).of(1.0) == 1.0


def test_the_actions_below_the_threshold_in_their_order():
    threshold = VeracityThreshold(disregard_below=0.2)
    assert threshold.action(0.6, 0.6) is Action.USE
    assert threshold.action(0.5, 0.6, can_revalidate=True, can_look_up=True) is Action.REVALIDATE
    assert threshold.action(0.5, 0.6, can_look_up=True) is Action.EXTERNAL_LOOKUP
    assert threshold.action(0.5, 0.6) is Action.USE_WITH_UNCERTAINTY
    assert threshold.action(0.19, 0.6) is Action.DISREGARD


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("Tell me a joke about doctors.", "What dose of ibuprofen can I give my child?"),
        ("What is the capital of France?", "Is it legal to record a call without consent?"),
        ("Which film did we talk about?", "Should I move my pension into this stock?"),
        ("What is my dog called?", "Is it safe to touch the live voltage rail?"),
        ("What did the court say?", "Should we sue, and what did the court say of our contract?"),
    ],
)
def test_criticality_puts_what_matters_above_what_does_not(lower, higher):
    assert 0 <= estimate_criticality(lower) < estimate_criticality(higher) <= 1


def test_nothing_at_stake_is_0():
    assert estimate_criticality("Where did Anna grow up?") == 0.0
    assert estimate_criticality("") == 0.0
    assert estimate_criticality("The coursework drugstore taxi was here") < 0.7  # "court", "tax" are whole words


@given(st.text(max_size=200))
def test_criticality_of_any_text_lies_in_0_1(text):
    assert 0 <= estimate_criticality(text) <= 1


class Library:
    def retrieve(self, queries, top_k):
        return [[ScoredPassage(Passage("p", "verified"), 1.0)] for _ in queries]


def test_the_first_veracities_as_printed():
    memory = Memory("m", "new", source=MemorySource("user", "ann", 0.9))
    cosines = {"new": 1.0, "verified": 0.5, "old": 0.8, "dubious": 0.9}
    found = [
        Relation(Memory("o", "old", veracity=0.75), 0.9, 0.9, 0.0),
        Relation(Memory("d", "dubious", veracity=0.3), 0.0, 0.0, 0.0),
    ]

    def similarity(texts):
        return np.array([[cosines[text] for text in texts]])

    first = forms.FirstOfTextA(Library(), similarity)
    by_hand = 0.5 * 0.8 + 0.3 * (0.7 * 0.5 + 0.3 * 0.9) + 0.2 * (0.8 * 0.75)  # corroborated: the tier of 0.8
    assert first(memory, found) == pytest.approx((by_hand, veracity_uncertainty(by_hand)))
    assert forms.FirstOfTextA(None, similarity)(memory, []) == pytest.approx((0.4, 0.8))
    assert forms.first_of_text_b(memory, found) == pytest.approx((0.7, 0.6))


def test_the_updates_as_printed():
    memory = Memory("m", "new", veracity=0.6, created_at=0.0)
    rows, reliability, year = np.array([ENTAILED, CONTRADICTED]), [0.9, 0.6], 365 * 86400.0
    assert forms.averaged(memory, rows, reliability, 0.0) == pytest.approx(0.7 * 0.6 + 0.3 * 0.9 / 1.5)
    assert forms.averaged(memory, rows, reliability, year) == pytest.approx(0.7 * 0.6 + 0.3 * 0.45 / 1.5)
    once = verimem.bayesian_veracity_as_written(0.6, 0.5, 0.2, 0.3)
    twice = verimem.bayesian_veracity_as_written(once, 0.5, 0.2, 0.3)
    row = np.array([[0.5, 0.2, 0.3]] * 2)
    assert forms.bayesian_as_written(memory, row, reliability, 0.0) == pytest.approx(twice)
    assert forms.unmoved(memory, rows, reliability, year) == 0.6
    expected = verimem.bayesian_veracity(0.6, rows, reliability)
    assert forms.bayesian(memory, rows, reliability, year) == expected
