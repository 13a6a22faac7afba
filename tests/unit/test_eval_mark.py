"""MARK's evaluation: its scores by hand, and the four experiments on made-up records."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from ewe.errors import ConfigError
from ewe.longterm.evaluation.bench import Finding, run
from ewe.longterm.evaluation.mark_bench import MARKBench
from ewe.longterm.evaluation.mark_metrics import (
    alpha_study,
    coverage_scores,
    information_capture,
    key_point_coverage,
    key_points,
)
from ewe.longterm.evaluation.mark_records import Record, read, read_records
from ewe.retrieval.veracity import word_cosines

COLOURS = ("red", "green", "blue", "white")
RECORDS = {
    str(number): Record(
        str(number),
        f"Which colour has the {thing} of the old {place}?",
        COLOURS,
        number % 4,
        (f"The {thing} was painted in {COLOURS[number % 4]} long ago.", f"Nobody of the {place} has changed it."),
    )
    for number, (thing, place) in enumerate(
        [("door", "mill"), ("roof", "hall"), ("gate", "farm"), ("wall", "quay"), ("bell", "tower"), ("sign", "inn")]
    )
}


def same(texts: list[str]) -> np.ndarray:
    return np.array([[float(one == other) for other in texts] for one in texts])


def test_information_coverage_in_both_forms() -> None:
    expected, generated = "Cats sleep. Dogs bark.", "Cats sleep. Cats sleep. Birds sing."
    assert coverage_scores(expected, generated, same) == pytest.approx((2 / 3, 1 / 2))
    assert coverage_scores("Cats sleep. Cats sleep.", "Cats sleep.", same) == (2.0, 1.0)
    assert coverage_scores("", generated, same) == coverage_scores(expected, "...", same) == (0.0, 0.0)


def test_key_points_and_the_average() -> None:
    text = "Ondansetron is a selective serotonin antagonist of the gut."
    assert key_points(text) == ["ondansetron", "selective serotonin antagonist", "gut"]
    assert key_point_coverage(text, "An antagonist (selective, serotonin): ondansetron") == pytest.approx(2 / 3)
    assert key_point_coverage("It is so.", "It is so.") == 0.0
    assert information_capture(0.8, 0.3, 0.1) == pytest.approx(0.08 + 0.27)
    study = alpha_study([1.0, 1.0, 0.0], [0.5, 0.0, 0.0], [1.0, 0.0, 0.0])
    assert study[0.1] == pytest.approx((0.1 + 0.45, 0.05))
    assert math.isnan(alpha_study([1.0], [1.0], [1.0])[0.5][1])


def test_the_option_that_a_reply_names() -> None:
    record = RECORDS["0"]
    assert record.chosen("It is green, surely.") == 1
    assert record.chosen("B) it is") == 1
    assert record.chosen("C, because red and white make it") == 2
    assert record.chosen("no idea") is None


def test_records_that_fit_are_read_and_missing_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="medmcqa"):
        read_records(tmp_path, 1)
    row = {"id": "a", "question": "Which?", "cop": 2, "opa": "w", "opb": "x", "opc": "y", "opd": "z"}
    long = "The marrow makes cells of every sort. " * 6 + "Reference: a book, page no 3."
    rows = [
        row | {"exp": long, "choice_type": "single"},
        row | {"id": "b", "exp": None, "choice_type": "single"},
        row | {"id": "c", "exp": long, "choice_type": "multi"},
    ]
    (tmp_path / "medmcqa").mkdir()
    (tmp_path / "medmcqa" / "dev_500.jsonl").write_text("\n".join(map(json.dumps, rows)))
    [record] = read_records(tmp_path, 1).values()
    assert (record.id, record.options, record.right, len(record.explanation)) == ("a", ("w", "x", "y", "z"), 1, 6)
    with pytest.raises(ConfigError, match="1 fit record"):
        read_records(tmp_path, 2)


def test_the_experiments_learn_from_corrections() -> None:
    bench = MARKBench(RECORDS, word_cosines)
    found: list[Finding] = []
    run(bench, ["mark", "coin"], lambda asked: read(asked, RECORDS), [], found.append)
    mark, coin = (one.values for one in found)
    wrong = mark["right1"].count(0.0)
    assert 0 < wrong < len(RECORDS)
    assert len(mark["turns2"]) == len(mark["notes2"]) == wrong
    assert sum(mark["right3"]) > sum(mark["right1"])
    assert sum(mark["right_again"]) >= sum(mark["right3"]), "feedback sorts out what a mistaken user said"
    assert np.mean(mark["kpcs3"]) > np.mean(mark["kpcs1"])
    assert len(coin["right1"]) == len(RECORDS)
    assert "right3" not in coin
