"""MMA: when to rather say nothing, and what that is worth."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewe.errors import InvalidRequestError


class Outcomes(NamedTuple):
    """Counts of questions answered rightly and wrongly, and of abstentions due (there is no answer) and not due."""

    right: int
    wrong: int
    due_abstentions: int
    undue_abstentions: int

    @property
    def total(self) -> int:
        """All questions."""
        return sum(self)

    @property
    def raw_accuracy(self) -> float:
        """(right + due abstentions) / total, in [0, 1] (table 3: "Raw Acc.")."""
        return (self.right + self.due_abstentions) / self.total

    @property
    def actionable_accuracy(self) -> float:
        """right / answered, in [0, 1] (table 6: "Act. Acc."); 0 where nothing was answered."""
        answered = self.right + self.wrong
        return self.right / answered if answered else 0.0

    @property
    def coverage(self) -> float:
        """answered / total, in [0, 1]."""
        return (self.right + self.wrong) / self.total


def selective_score(outcomes: Outcomes, reward: float = 0.2) -> float:
    """(right + due abstentions + alpha undue abstentions) / total, in [0, 1] (the MMA paper, table 3)."""
    undue = reward * outcomes.undue_abstentions
    return (outcomes.right + outcomes.due_abstentions + undue) / outcomes.total


def utility(outcomes: Outcomes, penalty: float = 1.0, reward: float = 0.2) -> float:
    """right - lambda wrong + r abstentions, not divided by the number of questions (the MMA paper, tables 7 and 8)."""
    abstained = outcomes.due_abstentions + outcomes.undue_abstentions
    return outcomes.right - penalty * outcomes.wrong + reward * abstained


def abstains(confidence: float, penalty: float = 1.0, reward: float = 0.2) -> bool:
    """Whether abstaining is worth more than answering: C - lambda (1 - C) < r, the expected `utility`."""
    return confidence - penalty * (1.0 - confidence) < reward


class RiskCoverage(NamedTuple):
    """Per threshold, from the strictest on: the share that is answered and the share of those that is wrong."""

    thresholds: NDArray[np.float64]
    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]

    @property
    def area(self) -> float:
        """The mean risk over the coverages from 0 to 1, each step taken at its risk: in [0, 1], less is better."""
        return float(np.sum(self.risk * np.diff(self.coverage, prepend=0.0)))


def risk_coverage(confidences: Sequence[float], right: Sequence[bool]) -> RiskCoverage:
    """The curve of risk over coverage when all answers of at least a confidence are given (the MMA paper, figure 6b).

    confidences: any finite numbers; right: whether each answer is; same length, at least one. Equal confidences are
    answered together, so the curve does not depend on the order of the answers.
    """
    values, hits = np.asarray(confidences, dtype=np.float64), np.asarray(right, dtype=bool)
    if values.shape != hits.shape or values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise InvalidRequestError("risk and coverage need one finite confidence and one outcome per answer")
    order = np.argsort(-values, kind="stable")
    values, wrong = values[order], np.cumsum(~hits[order])
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    return RiskCoverage(values[last], (last + 1) / len(values), wrong[last] / (last + 1))


def threshold_for_risk(curve: RiskCoverage, max_risk: float) -> float | None:
    """The confidence from which on most is answered at a risk of at most `max_risk`; None if none is low enough."""
    within = np.flatnonzero(curve.risk <= max_risk)
    return float(curve.thresholds[within[-1]]) if len(within) else None
