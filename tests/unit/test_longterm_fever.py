"""The benchmark of evidence over time: curves, figures and the prior of verdicts by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.longterm_fever import CURVES, area_under, claims_of, majority, over_time, priors

FOR, AGAINST, NOTHING = (0.9, 0.05, 0.05), (0.05, 0.9, 0.05), (0.02, 0.02, 0.96)


class WordJudge:
    """Supports what says yes, refutes what says no."""

    def judge(self, pairs):
        rows = [FOR if "yes" in text else AGAINST if "no" in text.split() else NOTHING for text, _ in pairs]
        return np.array(rows, dtype=np.float32)


def test_the_majority_counts_sides_only():
    assert majority(np.array([NOTHING, FOR, AGAINST, FOR])) == pytest.approx([1 / 2, 2 / 3, 1 / 2, 3 / 5])


def test_factuality_remembers_what_the_last_piece_forgets():
    told = np.array([FOR, FOR, NOTHING])
    assert CURVES["last piece"](told)[-1] == pytest.approx(0.5)
    assert CURVES["verimem"](told)[-1] > CURVES["verimem"](told)[0] > 0.5


def test_auc_counts_equal_beliefs_half():
    assert area_under(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False])) == pytest.approx(3.5 / 4)


def test_claims_are_told_all_their_evidence_once():
    rows = [{"claim": "c", "label": "refuted", "evidence": "no", "retrieved": ["a", "no", *"bcdefghij"]}]
    [(_, true, pieces)] = claims_of(rows, 5)
    assert (true, len(pieces), len(set(pieces)), "no" in pieces) == (False, 8, 8, True)


def test_every_system_is_measured_after_each_number_of_pieces():
    claims = [("a", True, ("yes", "some")), ("b", False, ("no", "some"))]
    figures = over_time(claims, WordJudge())
    assert figures["time: verimem: auc_after_8"] == 1.0
    assert figures["time: last piece: brier_after_1"] == pytest.approx(0.075**2)
    assert figures["time: verimem - last piece: brier, high"] < 0


def test_stated_reliabilities_settle_what_contradicts_itself():
    rows = [
        {"claim": f"c{number}", "label": label, "evidence": text}
        for number in range(60)
        for label, text in (("supported", "yes"), ("refuted", "no"))
    ]
    figures = priors(rows, 60, WordJudge())
    assert figures["prior: both, weighed"] > 0.75
    assert figures["prior: both, plain"] == 0.0  # equal on both sides: nothing is settled
    assert figures["prior: alone, weighed"] < figures["prior: alone, plain"] == 1.0
