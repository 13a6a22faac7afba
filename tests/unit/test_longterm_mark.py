"""MARK: its table 7 to the printed digits, the relevance score in both forms, trust, persistence and retention."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.longterm.scoring import mark
from ewe.longterm.scoring.mark import PRESETS, MRSWeights, feedback_score, relevance, relevance_as_written

TABLE_7 = [  # total, correct, incorrect, TS, PS, PS threshold, retained, as printed in the MARK paper
    (1, 0, 1, "0.24", "0.67", "0.65", True),
    (2, 0, 2, "0.225", "0.67", "0.66", True),
    (3, 0, 3, "0.21", "0.67", "0.66", True),
    (4, 1, 3, "0.218", "0.72", "0.665", True),
    (5, 1, 4, "0.219", "0.71", "0.664", True),
    (50, 5, 45, "0.18", "0.689", "0.697", False),
]
UPDATES_BEFORE_ROW = [1, 1, 1, 1, 1, 2]
LAST = len(TABLE_7) - 1


def digits(number, printed):
    """The number with the digits of the printed one, once rounded and once cut off."""
    places = len(printed) - 2
    return {f"{number:.{places}f}", f"{math.floor(number * 10**places) / 10**places:.{places}f}"}


@pytest.mark.parametrize("row", range(len(TABLE_7)))
def test_table_7_trust_to_its_printed_digits(row):
    """Each row follows from the trust printed in the row above (the fourth would be 0.217 from the unrounded one).

    The last row leaves out 45 recalls; two updates with its counts give the printed digits, one gives 0.197.
    """
    total, correct, _, printed, *_ = TABLE_7[row]
    trust = float(TABLE_7[row - 1][3]) if row else mark.INITIAL_TRUST
    for _ in range(UPDATES_BEFORE_ROW[row]):
        trust = mark.trust(trust, correct, total)
    assert f"{trust:.{len(printed) - 2}f}" == printed


@pytest.mark.parametrize("row", range(len(TABLE_7)))
def test_table_7_persistence_to_its_printed_digits(row):
    """The table rounds 0.667 to 0.67 and cuts 0.727 to 0.72 and 0.6897 to 0.689."""
    total, _, incorrect, _, printed, *_ = TABLE_7[row]
    assert printed in digits(mark.persistence(total, incorrect), printed)


@pytest.mark.parametrize("row", [0, 1, 3, 4, 5])
def test_table_7_threshold_and_decision(row):
    total, _, incorrect, trust, _, printed, retained = TABLE_7[row]
    threshold = mark.persistence_threshold(float(trust))
    assert printed in digits(threshold, printed)
    assert mark.retains(float(trust), mark.persistence(total, incorrect)) is retained


def test_table_7_contradicts_its_own_formula_in_the_third_row():
    """0.85 (1 - 0.21) is 0.6715, not the printed 0.66, and 2/3 does not exceed it: the formula drops this memory.

    The printed threshold is that of the row above; with it the printed decision holds.
    """
    threshold = mark.persistence_threshold(0.21)
    assert threshold == pytest.approx(0.6715)
    assert "0.66" not in digits(threshold, "0.66")
    assert "0.66" in digits(mark.persistence_threshold(0.225), "0.66")
    persistence = mark.persistence(3, 3)
    assert persistence > 0.66
    assert mark.retains(0.21, persistence) is False


def test_table_7_initial_trust():
    assert mark.INITIAL_TRUST == 0.25


def test_a_new_memory_is_kept_and_one_above_initial_trust_needs_no_persistence():
    assert mark.retains(mark.INITIAL_TRUST, mark.persistence(0, 0))
    assert mark.retains(0.2501, 0.0)
    assert not mark.retains(0.25, 0.0)


counts = st.integers(0, 1000)
shares = st.floats(0, 1)


@given(previous=shares, correct=counts, more=counts)
def test_trust_lies_in_0_1_and_rises_with_validations(previous, correct, more):
    total = correct + more
    trust = mark.trust(previous, correct, total)
    assert 0 <= trust <= 1
    assert mark.trust(previous, min(correct + 1, total), total) >= trust
    assert mark.trust(previous, correct, total + 1) <= trust
    assert mark.trust(min(1.0, previous + 0.1), correct, total) >= trust


@given(correct=counts, more=counts)
def test_trust_settles_where_settled_trust_says(correct, more):
    trust = mark.INITIAL_TRUST
    for _ in range(200):
        trust = mark.trust(trust, correct, correct + more)
    assert trust == pytest.approx(mark.settled_trust(correct, correct + more))


@given(total=counts, incorrect=counts)
def test_persistence_lies_in_0_1_and_falls_with_refusals(total, incorrect):
    persistence = mark.persistence(total, incorrect)
    assert 0 <= persistence <= 1
    assert mark.persistence(total, incorrect + 1) <= persistence
    assert incorrect == 0 or mark.persistence(total + 1, incorrect) >= persistence


def test_the_seven_presets_as_printed():
    assert {name: tuple(weights) for name, weights in PRESETS.items()} == {
        "default": (0.10, 0.15, 0.70, 0.05),
        "core_blend": (0.33, 0.33, 0.33, 0.00),
        "similarity_freshness": (0.05, 0.35, 0.55, 0.05),
        "popularity_similarity": (0.30, 0.05, 0.60, 0.05),
        "feedback_freshness": (0.10, 0.40, 0.10, 0.40),
        "similarity_feedback": (0.05, 0.10, 0.55, 0.30),
        "balanced": (0.20, 0.20, 0.50, 0.10),
    }


def test_relevance_as_written_by_hand():
    weights = MRSWeights(0.1, 0.2, 0.3, 0.4)
    scores = relevance_as_written(
        weights, np.array([2, 0, 1]), np.array([0.99, 1.99, 9.99]), np.array([0.5, 0.9, 0.1]), np.array([1, 0, -1])
    )
    raw = np.array([0.2 + 0.2 + 0.15 + 0.4, 0.1 + 0.27, 0.1 + 0.02 + 0.03 - 0.4])
    np.testing.assert_allclose(scores, (raw - raw.min()) / (raw.max() - raw.min()))


def test_relevance_in_our_form_by_hand():
    scores = relevance(
        MRSWeights(0.1, 0.2, 0.3, 0.4), np.array([5, 0]), np.array([1.0, 0.0]), np.array([0.5, -0.5]), np.array([1, -1])
    )
    np.testing.assert_allclose(scores, [0.05 + 0.1 + 0.15 + 0.4, 0.2], atol=1e-12)


def test_as_written_counts_of_uses_outweigh_similarity_and_ours_do_not():
    weights = PRESETS["default"]
    columns = (np.array([20, 0]), np.array([30.0, 30.0]), np.array([0.1, 0.9]), np.array([0, 0]))
    assert np.argmax(relevance_as_written(weights, *columns)) == 0
    assert np.argmax(relevance(weights, *columns)) == 1


def test_the_papers_own_setup_ranks_by_similarity_alone():
    columns = (np.array([9, 0, 3]), np.array([0.0, 50.0, 2.0]), np.array([0.2, 0.8, 0.5]), np.array([1, -1, 0]))
    for form in (relevance, relevance_as_written):
        assert list(np.argsort(-form(MRSWeights(0, 0, 1, 0), *columns))) == [1, 2, 0]


candidates = st.lists(
    st.tuples(st.integers(0, 500), st.floats(0, 1e4), st.floats(-1, 1), st.sampled_from([-1, 0, 1])),
    min_size=1,
    max_size=8,
)
forms = st.sampled_from([relevance, relevance_as_written])
presets = st.sampled_from(sorted(PRESETS))


def columns_of(rows):
    return tuple(np.array(column) for column in zip(*rows, strict=True))


@given(rows=candidates, form=forms, preset=presets, seed=st.randoms())
def test_relevance_lies_in_0_1_and_does_not_depend_on_the_order(rows, form, preset, seed):
    scores = form(PRESETS[preset], *columns_of(rows))
    assert ((scores >= 0) & (scores <= 1)).all()
    order = list(range(len(rows)))
    seed.shuffle(order)
    np.testing.assert_allclose(
        form(PRESETS[preset], *columns_of([rows[place] for place in order])), scores[order], atol=1e-9
    )


@given(rows=candidates, preset=presets, more=st.tuples(st.integers(0, 9), st.floats(0, 9), st.floats(0, 1)))
def test_a_better_memory_is_never_behind(rows, preset, more):
    """Used as often or more, as young or younger, as close or closer, as well liked or better."""
    recalled, age, similarity, feedback = rows[0]
    better = (recalled + more[0], max(0.0, age - more[1]), min(1.0, similarity + more[2]), max(feedback, 0))
    for form in (relevance, relevance_as_written):
        scores = form(PRESETS[preset], *columns_of([better, rows[0]]))
        assert scores[0] >= scores[1] - 1e-12


@pytest.mark.parametrize(("correct", "incorrect", "score"), [(0, 0, 0), (2, 1, 1), (1, 2, -1), (3, 3, 0)])
def test_feedback(correct, incorrect, score):
    assert feedback_score(correct, incorrect) == score
