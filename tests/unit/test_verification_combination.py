from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.types import Passage, Verdict
from ewe.verification.combination import JudgedPiece, Thresholds, combine, combined, is_conflict

FLOOR = 1 / 3
THRESHOLDS = Thresholds(0.6, 0.6, FLOOR)
SUPPORTED, REFUTED, UNKNOWN = range(3)


def piece(supported, refuted, weight=1.0, name="p", source="", excerpt="It is so."):
    rest = 1.0 - supported - refuted
    return JudgedPiece(Passage(name, "Text.", source=source), excerpt, weight, (supported, refuted, rest))


probabilities = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 1)).map(
    lambda row: (row[0] / sum(row), row[1] / sum(row))
)
pieces = st.lists(
    st.builds(
        lambda row, weight, name: piece(*row, weight=weight, name=name),
        probabilities,
        st.floats(0, 1),
        st.sampled_from("abcdef"),
    ),
    max_size=6,
)


@pytest.mark.parametrize(
    ("supported", "refuted", "verdict"),
    [
        (0.8, 0.1, Verdict.SUPPORTED),
        (0.5, 0.1, Verdict.INCONCLUSIVE),
        (0.1, 0.65, Verdict.INCONCLUSIVE),
        (0.1, 0.8, Verdict.REFUTED),
        (0.45, 0.45, Verdict.INCONCLUSIVE),
    ],
)
def test_a_side_needs_its_threshold_and_more_than_the_other(supported, refuted, verdict):
    assert (
        combine([piece(supported, refuted)], Thresholds(0.4 if supported == refuted else 0.6, 0.7, 0.0)).verdict
        is verdict
    )


def test_one_believable_source_gets_its_probability_above_chance():
    shares = combined([piece(0.8, 0.1)], FLOOR)
    np.testing.assert_allclose(shares, [0.7, 0.0, 0.3])
    np.testing.assert_allclose(combined([piece(0.8, 0.1, weight=0.5)], FLOOR), [0.35, 0.0, 0.65])


def test_a_source_may_lean_to_both_sides():
    np.testing.assert_allclose(combined([piece(0.6, 0.4)], 0.2), [0.5, 0.25, 0.25])


def test_dempsters_rule_of_two_sources_that_disagree():
    # m1 = (0.7, 0, 0.3), m2 = (0, 0.4, 0.6): S = 0.7 * 0.6, R = 0.3 * 0.4, U = 0.3 * 0.6, over their sum 0.72.
    shares = combined([piece(0.8, 0.1, name="a"), piece(0.1, 0.6, name="b")], FLOOR)
    np.testing.assert_allclose(shares, [0.42 / 0.72, 0.12 / 0.72, 0.18 / 0.72])


def test_sources_that_agree_strengthen_each_other_and_copies_do_not():
    alone = combined([piece(0.7, 0.0, name="a")], FLOOR)[SUPPORTED]
    two = combined([piece(0.7, 0.0, name="a"), piece(0.7, 0.0, name="b")], FLOOR)[SUPPORTED]
    copies = [piece(0.7, 0.0, name="a", source="one"), piece(0.7, 0.0, name="b", source="one")]
    assert two > alone
    assert combined(copies, FLOOR)[SUPPORTED] == pytest.approx(alone)


def test_many_passages_that_say_nothing_add_up_to_nothing():
    noise = [piece(0.3, 0.2, name=str(i)) for i in range(50)]
    np.testing.assert_allclose(combined(noise, FLOOR), [0, 0, 1])
    assert combine(noise, THRESHOLDS).verdict is Verdict.INCONCLUSIVE


def test_conflict_is_reported_and_scores_lower():
    clear = combine([piece(0.95, 0.0, name="a")], THRESHOLDS)
    leaning = combine([piece(0.97, 0.0, name="a"), piece(0.0, 0.78, name="b")], THRESHOLDS)
    even = combine([piece(0.9, 0.0, name="a"), piece(0.0, 0.9, name="b")], THRESHOLDS)
    assert not is_conflict(clear)
    assert leaning.verdict is Verdict.SUPPORTED
    assert is_conflict(leaning)
    assert leaning.score < clear.score
    assert even.verdict is Verdict.INCONCLUSIVE
    assert even.score == 0.0
    assert [item.stance for item in even.evidence] == [Verdict.SUPPORTED, Verdict.REFUTED]


def test_scores_are_on_the_scale_of_the_judge():
    one, two = piece(0.85, 0.05, name="a"), piece(0.85, 0.05, name="b")
    assert combine([one], THRESHOLDS).score == pytest.approx(0.85)
    assert combine([one, two], THRESHOLDS).score > 0.85
    [evidence] = combine([piece(0.1, 0.9, weight=0.9)], THRESHOLDS).evidence
    assert evidence.score == pytest.approx(0.81)


def test_evidence_too_weak_to_be_believed_alone_is_no_conflict():
    decision = combine([piece(0.95, 0.0, name="a"), piece(0.1, 0.5, name="b")], THRESHOLDS)
    assert [item.passage.id for item in decision.evidence] == ["a"]


def test_evidence_holds_each_sentence_once_the_strongest_first_and_few():
    many = [piece(0.9 - i / 100, 0.0, name=str(i % 5), excerpt=f"S{i % 5}.") for i in range(10)]
    decision = combine(many, THRESHOLDS)
    assert [item.passage.id for item in decision.evidence] == ["0", "1", "2"]
    assert decision.evidence[0].score == pytest.approx(0.9)


def test_evidence_that_adds_next_to_nothing_is_not_shown():
    decision = combine([piece(0.95, 0.0, name="a"), piece(0.5, 0.2, name="b"), piece(0.8, 0.1, name="c")], THRESHOLDS)
    assert [item.passage.id for item in decision.evidence] == ["a", "c"]


@given(pieces)
def test_shares_are_probabilities(items):
    shares = combined(items, FLOOR)
    assert np.isfinite(shares).all()
    assert min(shares) >= -1e-12
    assert sum(shares) == pytest.approx(1)


@given(pieces, st.randoms())
def test_the_order_of_evidence_does_not_matter(items, random):
    shuffled = random.sample(items, len(items))
    one, other = combine(items, THRESHOLDS), combine(shuffled, THRESHOLDS)
    assert (one.verdict, one.score) == (other.verdict, other.score)
    assert {(e.passage.id, e.stance) for e in one.evidence} == {(e.passage.id, e.stance) for e in other.evidence}


@given(pieces, probabilities, st.sampled_from("abcxyz"))
def test_a_source_of_no_weight_changes_nothing(items, row, name):
    with_it = [*items, piece(*row, weight=0.0, name=name)]
    assert combined(items, FLOOR) == combined(with_it, FLOOR)
    assert combine(items, THRESHOLDS) == combine(with_it, THRESHOLDS)


@given(pieces, probabilities, st.floats(0, 1), st.floats(0.01, 1))
def test_more_support_never_lowers_support_nor_raises_refutation(items, row, more, weight):
    supported, refuted = row
    stronger = supported + more * (1 - supported - refuted)
    before = combined([*items, piece(supported, refuted, weight, "new")], FLOOR)
    after = combined([*items, piece(stronger, refuted, weight, "new")], FLOOR)
    assert after[SUPPORTED] >= before[SUPPORTED] - 1e-9
    assert after[REFUTED] <= before[REFUTED] + 1e-9


@given(pieces)
def test_exchanging_the_sides_exchanges_the_verdicts(items):
    turned = [piece(i.probabilities[1], i.probabilities[0], i.weight, i.passage.id) for i in items]
    shares, (refuted, supported, unknown) = combined(items, FLOOR), combined(turned, FLOOR)
    np.testing.assert_allclose(shares, (supported, refuted, unknown), atol=1e-12)


def test_support_that_does_not_confirm_leaves_a_claim_open_and_still_speaks_against_a_refutation():
    thresholds = Thresholds(0.5, 0.5, 0.0)
    weak = JudgedPiece(Passage("a", "x", source="a"), "x", 1.0, (0.9, 0.0, 0.1), confirms=False)
    against = JudgedPiece(Passage("b", "y", source="b"), "y", 1.0, (0.0, 0.6, 0.4))
    assert combine([weak], thresholds).verdict is Verdict.INCONCLUSIVE
    assert combine([weak], thresholds).support > 0.8
    assert combine([replace(weak, confirms=True)], thresholds).verdict is Verdict.SUPPORTED
    assert combine([against], thresholds).verdict is Verdict.REFUTED
    assert combine([against, weak], thresholds).verdict is not Verdict.REFUTED
