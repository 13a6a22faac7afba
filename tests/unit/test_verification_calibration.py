import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.errors import ConfigError
from ewe.types import Passage, Verdict
from ewe.verification.calibration import (
    Thresholds,
    choose_thresholds,
    expected_calibration_error,
    fit_temperature,
    macro_f1,
    temper,
    verdicts,
)
from ewe.verification.combination import JudgedPiece, combine, combined

FLOOR = 1 / 3


def sample(temperature, count=4000):
    """Probabilities that are over-confident by `temperature`, and labels drawn from the true ones."""
    random = np.random.default_rng(0)
    logits = random.normal(size=(count, 3)) * 2
    true = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = np.array([random.choice(3, p=row) for row in true])
    return temper(true, 1 / temperature), labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_temperature_that_spoilt_probabilities_is_found_again(temperature):
    spoilt, labels = sample(temperature)
    found = fit_temperature(spoilt, labels)
    assert found == pytest.approx(temperature, rel=0.1)
    assert expected_calibration_error(temper(spoilt, found), labels) < 0.03


def test_calibration_error_is_confidence_less_accuracy():
    rows = np.array([[0.9, 0.1, 0.0]] * 10)
    assert expected_calibration_error(rows, np.array([0] * 9 + [1])) == pytest.approx(0.0)
    assert expected_calibration_error(rows, np.array([1] * 10)) == pytest.approx(0.9)
    assert expected_calibration_error(np.array([[1.0, 0, 0]] * 2), np.array([0, 0])) == 0.0


def test_a_temperature_needs_labels():
    with pytest.raises(ValueError, match="no labels"):
        fit_temperature(np.zeros((0, 3)), np.zeros(0, int))


def test_macro_f1_is_the_mean_over_the_classes_that_occur():
    labels = np.array([0, 0, 1, 1])
    assert macro_f1(np.array([0, 0, 1, 1]), labels) == 1.0
    assert macro_f1(np.array([0, 0, 0, 0]), labels) == pytest.approx((2 / 3 + 0) / 2)
    assert macro_f1(np.array([0, 2, 1, 2]), labels) == pytest.approx(2 / 3)


def test_chosen_thresholds_separate_what_can_be_separated():
    shares = np.array([[0.8, 0.0, 0.2], [0.6, 0.0, 0.4], [0.0, 0.7, 0.3], [0.0, 0.5, 0.5]] * 5)
    labels = np.array([0, 2, 1, 2] * 5)
    chosen = choose_thresholds(shares, labels, FLOOR)
    assert (verdicts(shares, chosen) == labels).all()
    assert (chosen.supported, chosen.refuted) == (0.8, 0.7)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 1)), max_size=5),
    st.floats(0.01, 1),
    st.floats(0.01, 1),
)
def test_verdicts_of_shares_are_those_of_evidence(rows, supported, refuted):
    thresholds = Thresholds(supported, refuted, FLOOR)
    pieces = [
        JudgedPiece(Passage(str(i), "t"), "t", (a / (a + b + c), b / (a + b + c), c / (a + b + c)))
        for i, (a, b, c) in enumerate(rows)
    ]
    [number] = verdicts(combined(pieces, FLOOR)[None], thresholds)
    assert combine(pieces, thresholds).verdict is list(Verdict)[number]


@pytest.mark.parametrize("values", [(0.0, 0.5, 0.3), (0.5, 1.1, 0.3), (0.5, 0.5, 1.0), (0.5, 0.5, -0.1)])
def test_thresholds_out_of_range_are_refused(values):
    with pytest.raises(ConfigError):
        Thresholds(*values)
