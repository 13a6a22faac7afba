"""From a judge's word on a sentence and on the window around it to what a passage says of a claim.

Owns: the rule, its features, and the file that holds its parameters per judge with how they were found
(`decisions.json`, written by scripts/calibrate_verdicts.py). Knows signals, windows and thresholds; no judge.

A judge reads a single sentence most sharply, and a window where pronouns and context matter. Where a sentence of the
passage has nearly all words of the claim, what matters is the rest: there the rule is a logistic regression with three
outcomes, fitted for the judge, from its log-odds at both grains and from signals that need no model. Elsewhere the
judge's word on the window counts as far as it passes a floor. A judge for which nothing was fitted is believed as it
is: support is the better of the two grains, and the sentence refutes unless its window supports.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from ewe.verification.calibration import Thresholds
from ewe.verification.judges.protocol import REFUTED, SUPPORTED
from ewe.verification.selection import Window
from ewe.verification.signals import SIGNALS, signals, speaks_of_the_same

Probabilities = tuple[float, float, float]
"""Supported, refuted, inconclusive; they sum to 1."""

FEATURES = (
    "1",
    "supported by the sentence",
    "supported by the window",
    "refuted by the sentence",
    "refuted by the window",
    "supported by the better",
    *(f"missing: {name}" for name in SIGNALS),
)
"""What the parameters of the rule stand before."""

_DEFAULT = "default"
_SUREST = 0.997  # Nothing is beyond doubt; log-odds stay below 5.8.
_WINDOW_SUPPORTS = 0.5
_NEAR = 0.2  # Share of a claim's words that may be missing in a sentence that says nearly the same.
_FLOOR = 0.5  # Probability below which the judge's word on a window says nothing.


@dataclass(frozen=True, slots=True)
class Reading:
    """A window with the judge's probabilities for its best sentence and for all of it."""

    window: Window
    sentence: Sequence[float]
    whole: Sequence[float]


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """What a passage says of a claim, and what all passages together must say for a verdict.

    weights: float64 [2, features], the log-odds of supported and of refuted against inconclusive; None believes the
    judge as it is.
    """

    thresholds: Thresholds
    weights: NDArray[np.float64] | None = None

    def probabilities(self, wording: str, reading: Reading) -> Probabilities:
        """Of one passage; wording: the claim as it was written. Only a passage about the same can refute it."""
        supported, refuted, rest = self._fitted(wording, reading) if self.weights is not None else _plain(reading)
        if not speaks_of_the_same(wording, reading.window.text):
            return supported, 0.0, refuted + rest
        return supported, refuted, rest

    def _fitted(self, wording: str, reading: Reading) -> Probabilities:
        assert self.weights is not None
        seen = features(wording, reading)
        if not is_near(seen):
            return far(seen)
        logits = [*(self.weights @ seen).tolist(), 0.0]
        shares = [math.exp(logit - max(logits)) for logit in logits]
        supported, refuted, rest = (share / sum(shares) for share in shares)
        return supported, refuted, rest


def _plain(reading: Reading) -> Probabilities:
    """The judge's own: support by the better grain, refutation by the sentence unless its window supports."""
    supported = max(reading.sentence[SUPPORTED], reading.whole[SUPPORTED])
    refuted = 0.0 if reading.whole[SUPPORTED] >= _WINDOW_SUPPORTS else reading.sentence[REFUTED]
    total = max(1.0, supported + refuted)
    return supported / total, refuted / total, 1.0 - (supported + refuted) / total


def features(wording: str, reading: Reading) -> NDArray[np.float64]:
    """float64 [features]: what the rule sees of a claim and a passage."""
    own = [_log_odds(row[side]) for side in (SUPPORTED, REFUTED) for row in (reading.sentence, reading.whole)]
    return np.array([1.0, *own, max(own[:2]), *signals(wording, reading.window.excerpt, reading.window.led)])


def is_near(seen: NDArray[np.float64]) -> bool:
    """Whether a sentence of the passage has nearly all words of the claim; by `features`."""
    return bool(seen[FEATURES.index("missing: words")] <= _NEAR)


def far(seen: NDArray[np.float64]) -> Probabilities:
    """What a passage says that has other words than the claim: the judge's word on the window above the floor."""
    names = ("supported by the window", "refuted by the window")
    odds = (math.exp(seen[FEATURES.index(name)]) for name in names)
    supported, refuted = (max(0.0, odd / (1.0 + odd) - _FLOOR) / (1.0 - _FLOOR) for odd in odds)
    return supported, refuted, 1.0 - supported - refuted


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, 1.0 - _SUREST), _SUREST)
    return math.log(bounded / (1.0 - bounded))


@lru_cache
def rule_of(judge: str) -> DecisionRule:
    """The rule that was fitted for a judge, by its name, or the one for judges without data of their own."""
    table = json.loads(files("ewe.verification").joinpath("decisions.json").read_text(encoding="utf-8"))["judges"]
    return read_rule(table.get(judge, table[_DEFAULT]))


def read_rule(entry: Mapping[str, object]) -> DecisionRule:
    """A rule from its entry in the file; a feature that the entry does not name has the weight 0."""
    thresholds = Thresholds(*(float(str(entry[name])) for name in ("supported", "refuted", "floor")))
    weights = entry.get("weights")
    if not isinstance(weights, Mapping):
        return DecisionRule(thresholds)
    sides = [[float(weights[side].get(name, 0.0)) for name in FEATURES] for side in ("supported", "refuted")]
    return DecisionRule(thresholds, np.array(sides))
