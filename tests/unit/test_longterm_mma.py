"""MMA: confidence and its fixed point, support in both forms, abstention against the paper's printed tables."""

import math

import numpy as np
import pytest
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ewe.errors import InvalidRequestError
from ewe.longterm.evaluation.abstention import (
    Outcomes,
    abstains,
    risk_coverage,
    selective_score,
    threshold_for_risk,
    utility,
)
from ewe.longterm.scoring.mma import MMAWeights, confidence, source_prior, temporal_decay
from ewe.longterm.scoring.scorers import entailment_support

DAY = 86400.0
shares = st.floats(0, 1)
sizes = st.shared(st.integers(1, 6), key="n")
parts = sizes.flatmap(lambda n: hnp.arrays(float, (3, n), elements=shares))
matrices = sizes.flatmap(lambda n: hnp.arrays(float, (2, n, n), elements=st.floats(-1, 1)))
weights = st.builds(MMAWeights, st.floats(0.02, 1), shares, shares)


def by_loops(source, time, support, closeness, given, start):
    """Equations 1 and 4 written out, a thousand times over."""
    share_s, share_t, share_c = given.normalised()
    current = list(start)
    for _ in range(1000):
        following = []
        for i in range(len(source)):
            others = [j for j in range(len(source)) if j != i]
            total = sum(closeness[i, j] for j in others)
            weighted = sum(closeness[i, j] * current[j] * support[i, j] for j in others)
            consensus = weighted / total if total > 0 else 0.0
            value = share_s * source[i] + share_t * time[i] + share_c * consensus
            following.append(min(1.0, max(0.0, value)))
        current = following
    return current


def test_sources_and_age():
    assert source_prior("user") == 1.0
    assert source_prior("carrier pigeon") == source_prior("import") == 0.5
    assert temporal_decay(0.0, 30 * DAY) == pytest.approx(0.5)
    assert temporal_decay(0.0, 45 * DAY) == pytest.approx(math.exp(-math.log(2) * 1.5))
    assert temporal_decay(5.0, 0.0) == 1.0


def test_two_memories_that_agree_by_hand():
    """C = own + w c C for both: C = own / (1 - w)."""
    given = MMAWeights(0.5, 0.3, 0.2)
    found = confidence(np.array([0.8, 0.8]), np.array([0.5, 0.5]), np.ones((2, 2)), np.ones((2, 2)), given)
    assert found == pytest.approx([0.55 / 0.8] * 2)


def test_a_contradiction_costs_both_and_the_less_trusted_more():
    support = np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = confidence(np.array([0.9, 0.4]), np.array([1.0, 1.0]), support, np.ones((2, 2)))
    alone = confidence(np.array([0.9, 0.4]), np.array([1.0, 1.0]), support, np.zeros((2, 2)))
    lost = alone - found
    assert 0 < lost[0] < lost[1]


def test_a_memory_without_neighbours_loses_the_consensus_only_as_written():
    columns = (np.array([0.6]), np.array([0.6]), np.zeros((1, 1)), np.zeros((1, 1)))
    assert confidence(*columns) == pytest.approx([0.6 * 0.85])
    assert confidence(*columns, skip_lonely=True) == pytest.approx([0.6])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("st", (5 / 8, 3 / 8, 0)), ("cs", (5 / 7, 0, 2 / 7)), ("tc", (0, 0.6, 0.4))],
)
def test_ablations(mode, expected):
    assert MMAWeights(0.5, 0.3, 0.2).ablated(mode).normalised() == pytest.approx(expected)


@examples(25)
@given(columns=parts, square=matrices, given=weights)
def test_the_fixed_point_is_the_one_of_the_equations_from_any_start(columns, square, given):
    source, time, start = columns
    support, closeness = square[0], np.abs(square[1])
    found = confidence(source, time, support, closeness, given)
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_allclose(found, by_loops(source, time, support, closeness, given, start), atol=1e-6)


@given(columns=parts, square=matrices, given=weights, seed=st.randoms(), skip=st.booleans())
def test_confidence_does_not_depend_on_the_order(columns, square, given, seed, skip):
    source, time, _ = columns
    support, closeness = square[0], np.abs(square[1])
    found = confidence(source, time, support, closeness, given, skip_lonely=skip)
    order = list(range(len(source)))
    seed.shuffle(order)
    grid = np.ix_(order, order)
    again = confidence(source[order], time[order], support[grid], closeness[grid], given, skip_lonely=skip)
    np.testing.assert_allclose(again, found[order], atol=1e-7)


@given(columns=parts, square=matrices, given=weights, place=st.integers(0, 5), more=shares)
def test_confidence_rises_with_its_own_source_and_age_where_neighbours_agree(columns, square, given, place, more):
    source, time, _ = columns
    place %= len(source)
    support, closeness = np.abs(square[0]), np.abs(square[1])
    before = confidence(source, time, support, closeness, given)
    for column in (0, 1):
        better = [source.copy(), time.copy()]
        better[column][place] = max(better[column][place], more)
        assert (confidence(*better, support, closeness, given) >= before - 1e-7).all()


def test_no_memories_have_no_confidences():
    empty = np.zeros((0, 0))
    assert len(confidence(np.zeros(0), np.zeros(0), empty, empty)) == 0


class YearJudge:
    """Texts with the same year support each other, with others refute; counts what it is asked."""

    def __init__(self):
        self.asked = []

    def judge(self, pairs):
        self.asked += pairs
        rows = [[0.8, 0.1, 0.1] if a.split()[-1] == b.split()[-1] else [0.1, 0.7, 0.2] for a, b in pairs]
        return np.array(rows, dtype=np.float32).reshape(-1, 3)


def test_support_by_entailment_sees_what_cosines_cannot():
    texts = ["It opened in 1932", "It was opened in 1932", "It opened in 1923", "Penguins swim"]
    judge = YearJudge()
    closeness = np.ones((4, 4))
    closeness[3, :] = closeness[:, 3] = 0.0
    support = entailment_support(texts, judge, closeness)
    assert support[0, 1] == pytest.approx(0.7)
    assert support[0, 2] == pytest.approx(-0.6)
    assert not support[3].any()
    assert not np.diag(support).any()
    assert len(judge.asked) == 6


class OneWayJudge:
    """Refutes only where the evidence is "no"."""

    def judge(self, pairs):
        return np.array([[0, 1, 0] if evidence == "no" else [0, 0, 1] for evidence, _ in pairs], dtype=np.float32)


def test_a_contradiction_counts_in_both_directions():
    support = entailment_support(["yes", "no"], OneWayJudge(), np.ones((2, 2)))
    assert support[0, 1] == support[1, 0] == -1.0


# Means over three seeds of 500 questions, as counts over all 1,500 (its tables 3 and 6); tables 7 and 8: 1,542.
FEVER = Outcomes(588, 233, 311, 368)
LOCOMO = {
    "MIRIX": Outcomes(1190, 317, 3, 32),
    "MMA": Outcomes(1109, 335, 6, 92),
    "st": Outcomes(1166, 298, 5, 73),
}


def test_the_selective_score_gives_what_the_paper_prints():
    assert f"{FEVER.raw_accuracy:.2%}" == "59.93%"
    assert f"{FEVER.actionable_accuracy:.1%}" == "71.6%"
    assert f"{selective_score(FEVER, 0.2):.4f}" == "0.6484"
    assert selective_score(FEVER, 0.0) == FEVER.raw_accuracy
    assert f"{selective_score(Outcomes(596, 241, 302, 361), 0.2):.4f}" == "0.6468"  # the baseline


@pytest.mark.parametrize(
    ("system", "one", "two"), [("MIRIX", 880.0, 573.5), ("MMA", 793.6, 488.0), ("st", 883.6, 609.0)]
)
def test_the_utility_gives_what_the_paper_prints(system, one, two):
    outcomes = LOCOMO[system]
    assert outcomes.total == 1542
    assert utility(outcomes, 1.0, 0.2) == pytest.approx(one)
    assert utility(outcomes, 2.0, 0.5) == pytest.approx(two)


def test_accuracies_of_the_same_table():
    assert [f"{outcomes.raw_accuracy:.2%}" for outcomes in LOCOMO.values()] == ["77.37%", "72.31%", "75.94%"]
    assert [f"{outcomes.actionable_accuracy:.2%}" for outcomes in LOCOMO.values()] == ["78.96%", "76.80%", "79.64%"]
    assert f"{LOCOMO['MIRIX'].coverage:.2%}" == "97.73%"


@given(confidence_=shares, penalty=st.floats(0, 10), reward=shares)
def test_abstaining_is_what_is_worth_more(confidence_, penalty, reward):
    threshold = (reward + penalty) / (1 + penalty)
    assume(abs(confidence_ - threshold) > 1e-9)
    assert abstains(confidence_, penalty, reward) == (confidence_ < threshold)


def test_risk_and_coverage_by_hand():
    curve = risk_coverage([0.9, 0.5, 0.7, 0.5], [True, True, False, False])
    assert curve.thresholds == pytest.approx([0.9, 0.7, 0.5])
    assert curve.coverage == pytest.approx([0.25, 0.5, 1.0])
    assert curve.risk == pytest.approx([0.0, 0.5, 0.5])
    assert curve.area == pytest.approx(0.25 * 0.5 + 0.5 * 0.5)
    assert threshold_for_risk(curve, 0.4) == 0.9
    assert threshold_for_risk(curve, 0.5) == 0.5
    assert threshold_for_risk(risk_coverage([0.5], [False]), 0.5) is None


answers = st.lists(st.tuples(st.floats(0, 1).map(lambda x: round(x, 1)), st.booleans()), min_size=1, max_size=12)


@given(answers=answers, seed=st.randoms())
def test_the_curve_does_not_depend_on_the_order_and_ends_with_everything(answers, seed):
    curve = risk_coverage(*zip(*answers, strict=True))
    shuffled = list(answers)
    seed.shuffle(shuffled)
    again = risk_coverage(*zip(*shuffled, strict=True))
    for one, other in zip(curve, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (np.diff(curve.coverage) > 0).all()
    assert curve.coverage[-1] == 1.0
    assert curve.risk[-1] == pytest.approx(sum(not right for _, right in answers) / len(answers))
    assert 0 <= curve.area <= 1


def test_refuses_curves_of_nothing():
    with pytest.raises(InvalidRequestError):
        risk_coverage([], [])
    with pytest.raises(InvalidRequestError):
        risk_coverage([math.nan], [True])
