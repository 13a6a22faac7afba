"""Making probabilities mean what they say, and choosing the thresholds of verdicts on held-back data.

Owns: temperature scaling, the expected calibration error, thresholds. Knows numpy; no judge and no data set.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ewe.errors import ConfigError

_LEAST_PROBABILITY = 1e-9
_TEMPERATURES = (0.05, 20.0)
_SEARCH_STEPS = 60
_GOLDEN = (5**0.5 - 1) / 2
_GRID = tuple(np.round(np.arange(0.2, 0.96, 0.05), 2))


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


def temper(probabilities: NDArray[np.floating], temperature: float) -> NDArray[np.float64]:
    """Probabilities [n, classes] whose logarithms were divided by the temperature (Guo et al. 2017)."""
    logs = np.log(np.clip(probabilities, _LEAST_PROBABILITY, None)) / temperature
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float64)


def fit_temperature(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """The temperature of the least mean negative log likelihood of labels [n], by golden-section search.

    Raises ValueError without labels.
    """
    if not len(labels):
        raise ValueError("no labels to fit a temperature on")

    def loss(log_temperature: float) -> float:
        tempered = temper(probabilities, float(np.exp(log_temperature)))
        right = tempered[np.arange(len(labels)), labels]
        return float(-np.log(np.clip(right, _LEAST_PROBABILITY, None)).mean())

    low, high = np.log(_TEMPERATURES)
    for _ in range(_SEARCH_STEPS):
        step = _GOLDEN * (high - low)
        left, right = high - step, low + step
        if loss(left) < loss(right):
            high = right
        else:
            low = left
    return float(np.exp((low + high) / 2))


def expected_calibration_error(
    probabilities: NDArray[np.floating], labels: NDArray[np.integer], num_bins: int = 15
) -> float:
    """Mean distance between confidence and accuracy over bins of equal width, weighted by their sizes; in [0, 1]."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    bins = np.minimum((confidence * num_bins).astype(int), num_bins - 1)
    error = 0.0
    for number in np.unique(bins):
        chosen = bins == number
        error += chosen.mean() * abs(confidence[chosen].mean() - right[chosen].mean())
    return float(error)


def macro_f1(predicted: NDArray[np.integer], labels: NDArray[np.integer], num_classes: int = 3) -> float:
    """The mean F1 over the classes that occur among the labels."""
    scores = []
    for number in range(num_classes):
        if not (labels == number).any():
            continue
        right = float(((predicted == number) & (labels == number)).sum())
        total = float((predicted == number).sum() + (labels == number).sum())
        scores.append(2 * right / total)
    return float(np.mean(scores))


def choose_thresholds(shares: NDArray[np.floating], labels: NDArray[np.integer], floor: float) -> Thresholds:
    """The thresholds with the best macro-F1 of verdicts from combined shares [n, 3] (supported, refuted, unknown).

    labels: 0 supported, 1 refuted, 2 inconclusive. Of equals the higher ones: a verdict should be earned.
    """

    def score(supported: float, refuted: float) -> float:
        return macro_f1(verdicts(shares, Thresholds(supported, refuted, floor)), labels)

    supported, refuted = max(product(_GRID, _GRID), key=lambda pair: (round(score(*pair), 6), *pair))
    return Thresholds(float(supported), float(refuted), floor)


def verdicts(shares: NDArray[np.floating], thresholds: Thresholds) -> NDArray[np.int64]:
    """Per row of combined shares [n, 3] the verdict: 0 supported, 1 refuted, 2 inconclusive."""
    supported, refuted = shares[:, 0], shares[:, 1]
    passed = np.where(supported > refuted, supported >= thresholds.supported, refuted >= thresholds.refuted)
    decided = np.where(supported > refuted, 0, 1)
    return np.asarray(np.where(passed & (supported != refuted), decided, 2), dtype=np.int64)
