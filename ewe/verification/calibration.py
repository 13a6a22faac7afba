"""The thresholds of verdicts, and the verdicts that they give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewe.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What combined evidence must reach for a verdict, in (0, 1]; floor: the probability below which a piece of
    evidence says nothing, in [0, 1).

    Raises ConfigError for values out of range.
    """

    supported: float
    refuted: float
    floor: float = 0.5

    def __post_init__(self) -> None:
        for name, value in (("supported", self.supported), ("refuted", self.refuted)):
            if not 0.0 < value <= 1.0:
                raise ConfigError(f"the threshold for {name} must lie in (0, 1], got {value}")
        if not 0.0 <= self.floor < 1.0:
            raise ConfigError(f"the floor must lie in [0, 1), got {self.floor}")


def verdicts(shares: NDArray[np.floating], thresholds: Thresholds) -> NDArray[np.int64]:
    """Per row of combined shares [n, 3] the verdict: 0 supported, 1 refuted, 2 inconclusive."""
    supported, refuted = shares[:, 0], shares[:, 1]
    passed = np.where(supported > refuted, supported >= thresholds.supported, refuted >= thresholds.refuted)
    decided = np.where(supported > refuted, 0, 1)
    return np.asarray(np.where(passed & (supported != refuted), decided, 2), dtype=np.int64)
