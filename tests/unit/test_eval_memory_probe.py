"""The 3-step probe of MMA-Bench: what replies say and are worth, by hand and against the paper's tables."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.longterm.evaluation.mma_bench import (
    alignment,
    core_score,
    correction_rates,
    entropy,
    graded_core_score,
    read_verdict,
    read_wagers,
    relative_uncertainty,
)
from ewe.longterm.evaluation.mma_cases import FALSE, TRUE, UNKNOWN, VERDICTS

SIZES = {"A": 30, "B": 17, "C": 30, "D": 13}


def points(true, false, unknown):
    return dict(zip(VERDICTS, (true, false, unknown), strict=True))


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [("TRUE", TRUE), ("I think it is false.", FALSE), ("Unknown, or TRUE", UNKNOWN), ("untrue", ""), ("", "")],
)
def test_the_first_verdict_counts_and_nonsense_is_none(reply, verdict):
    assert read_verdict(reply) == verdict


def test_wagers_are_scaled_and_nonsense_wagers_nothing():
    assert read_wagers("TRUE=10 FALSE: 30, unknown = 0") == points(25, 75, 0)
    assert read_wagers("I wager a lot on TRUE.") == points(0, 0, 0)


@given(st.text())
def test_any_reply_can_be_read(reply):
    assert read_verdict(reply) in ("", *VERDICTS)
    assert sum(read_wagers(reply).values()) == pytest.approx(100) or not any(read_wagers(reply).values())


@pytest.mark.parametrize(
    ("verdict", "logic", "printed", "graded"),
    [
        (FALSE, "A", 0.5 + 0.5 * 0.3, 1.0),
        (TRUE, "A", 0.5 * 0.3, -1.0),
        (TRUE, "B", 0.5 + 0.5 * 0.2, 1.0),
        (UNKNOWN, "B", 0.5 * 0.2, -0.2),
        (UNKNOWN, "C", 0.5, 1.0),
        (TRUE, "D", 0.5 - 1.0, -1.0),
        ("", "D", 0.5 - 1.0, -1.0),
    ],
)
def test_core_scores_by_hand(verdict, logic, printed, graded):
    assert core_score(verdict, points(20, 30, 50), logic) == pytest.approx(printed)
    assert graded_core_score(verdict, logic) == graded


def graded_mean(right, abstained, total):
    return (right - 0.2 * abstained - (total - right - abstained)) / total


@pytest.mark.parametrize(
    ("accuracy", "core", "type_b", "type_d"),
    [
        ("47.78%", "0.37", "0.00%", "1.00"),  # MIRIX, text; table 4
        ("46.67%", "0.35", "0.00%", "1.00"),
        ("56.67%", "0.28", "23.53%", "0.69"),  # MMA, text
        ("42.22%", "-0.16", "41.18%", "-0.38"),
        ("77.78%", "0.59", "76.47%", "0.85"),  # GPT-4.1-mini, text; table 9
        ("73.33%", "0.51", "64.71%", "0.23"),
        ("65.56%", "0.32", "88.24%", "-0.69"),  # Qwen3-VL-Plus, text
        ("63.33%", "0.28", "82.35%", "-0.69"),
    ],
)
def test_the_graded_form_with_90_cases_gives_what_the_paper_prints(accuracy, core, type_b, type_d):
    total = sum(SIZES.values())
    [right] = [count for count in range(total + 1) if f"{count / total:.2%}" == accuracy]
    assert core in {f"{graded_mean(right, abstained, total):.2f}" for abstained in range(total - right + 1)}
    assert type_b in {f"{count / SIZES['B']:.2%}" for count in range(SIZES["B"] + 1)}
    assert type_d in {f"{graded_mean(count, 0, SIZES['D']):.2f}" for count in range(SIZES["D"] + 1)}


def test_the_printed_shares_of_mma_with_images_make_its_accuracy_and_its_score():
    right = 0.5 * SIZES["A"] + 7 + 0.4 * SIZES["C"] + 4  # 41.18% of B; -0.38 in D
    assert f"{right / 90:.2%}" == "42.22%"
    assert f"{graded_mean(right, 0, 90):.2f}" == "-0.16"


def test_modalities():
    assert [alignment(verdict, "B") for verdict in (FALSE, TRUE, UNKNOWN, "")] == [
        "text", "vision", "confusion", "confusion",
    ]  # fmt: skip
    assert [alignment(verdict, "D") for verdict in (TRUE, UNKNOWN, FALSE)] == ["text", "vision", "confusion"]


def test_relative_uncertainty_by_hand():
    assert entropy(points(50, 50, 0)) == pytest.approx(math.log(2))
    assert entropy(points(0, 0, 0)) == pytest.approx(math.log(3))
    assert entropy(points(100, 0, 0)) == 0
    assert relative_uncertainty(0.9, 0.3) == pytest.approx(2 * 0.6 / 1.2)
    assert relative_uncertainty(0.0, 0.0) == 0


def test_correction_rates():
    assert correction_rates(TRUE, FALSE, FALSE) == {"scr": [1.0]}
    assert correction_rates(TRUE, "", FALSE) == {"scr": [0.0]}
    assert correction_rates(FALSE, TRUE, FALSE) == {"fcr": [1.0]}
    assert correction_rates(FALSE, FALSE, FALSE) == {"fcr": [0.0]}
