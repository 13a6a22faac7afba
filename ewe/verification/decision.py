"""From a judge's word on a piece of evidence to what a passage says of a claim.

A judge reads a single sentence most sharply, and a window where pronouns and context matter. Where a sentence of the
passage says nearly the same as the claim, the judge reads that sentence, and what matters is the rest: the rule is a
logistic regression with three outcomes, fitted for the judge, from its log-odds and from signals that need no model.
Elsewhere the judge reads the window, and its word counts as far as it passes a floor. A judge for which nothing was
fitted is believed as it is.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from ewe.verification.combination import Thresholds
from ewe.verification.judges.protocol import INCONCLUSIVE, REFUTED, SUPPORTED
from ewe.verification.left_out import changes_one_place, drops_a_rank, drops_an_exception, leaves_out_which
from ewe.verification.negations import negates_another
from ewe.verification.number_places import moves_a_number
from ewe.verification.predicates import (
    names_another,
    says_more_often,
    takes_as_done,
    takes_from_the_lead,
    tells_of_another,
)
from ewe.verification.relative_subjects import takes_from_a_relative_clause
from ewe.verification.selection import Window
from ewe.verification.signals import (
    SIGNALS,
    misplaces_a_name,
    repeats_the_words,
    says_nearly_the_same,
    signals,
    speaks_of_another,
    speaks_of_the_same,
    swaps_names,
)
from ewe.verification.spellings import spells_another
from ewe.verification.word_order import says_in_another_order

Probabilities = tuple[float, float, float]
"""Supported, refuted, inconclusive; they sum to 1."""

FEATURES = ("1", "supported", "refuted", *(f"missing: {name}" for name in SIGNALS))
"""What the parameters of the rule stand before."""

_DEFAULT = "default"
_SUREST = 0.997  # Nothing is beyond doubt; log-odds stay below 5.8.
_FLOOR = 0.5  # Probability below which the judge's word on a window says nothing.
_NOTHING = (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Reading:
    """A window with the judge's probabilities for its best sentence, if that says nearly the same, or for all of it."""

    window: Window
    is_near: bool
    probabilities: Sequence[float]


def evidence_of(wording: str, window: Window) -> tuple[bool, str]:
    """Whether the best sentence of a window says nearly the same as the wording, and what the judge is to read."""
    is_near = says_nearly_the_same(wording, window.excerpt, window.led)
    return is_near, window.sentence if is_near else window.text


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """What a passage says of a claim, and what all passages together must say for a verdict.

    weights: float64 [2, features], the log-odds of supported and of refuted against inconclusive; None believes the
    judge as it is. copies_only: whether a passage makes a claim supported only if its best sentence, under its title,
    has all content words of it, most in the same order, says its numbers of the same things, states as done what it
    does, and still says it with all that the claim leaves out (`omission_reader`): for judges whose word on other
    wordings is right too seldom.
    """

    thresholds: Thresholds
    weights: NDArray[np.float64] | None = None
    copies_only: bool = False

    def confirms(self, wording: str, window: Window) -> bool:
        """Whether a passage may make a claim supported, if what the claim leaves out of it does not matter."""
        return not self.copies_only or _is_copy(wording, window)

    def probabilities(self, wording: str, reading: Reading, claim: str = "") -> Probabilities:
        """Of one passage; wording: the claim as it was written; claim: with its pronoun named, where it has one.

        A passage about somebody else says nothing of it, nor does one with the same words but names in each other's
        place; one that says it of another, or has the title's name in another one's place, does not support it; and
        only one about the same can refute it, that does not say the same in the same words. Counting words refutes only
        what is the evidence with one place changed: in several places it may be said in other words.
        """
        window = reading.window
        if speaks_of_another(claim or wording, wording, window.passage):
            return _NOTHING
        if reading.is_near and swaps_names(wording, window.excerpt):
            return _NOTHING
        supported, refuted, rest = self._fitted(wording, reading)
        if reading.is_near and (
            misplaces_a_name(wording, window.excerpt, window.led)
            or tells_of_another(claim or wording, window.excerpt)
            or takes_from_a_relative_clause(claim or wording, window.sentence)
        ):
            return 0.0, refuted, supported + rest
        is_counted = reading.is_near and self.weights is not None
        if (
            not speaks_of_the_same(wording, window.text)
            or self._copies(wording, reading)
            or (is_counted and not changes_one_place(wording, window.excerpt))
        ):
            return supported, 0.0, refuted + rest
        return supported, refuted, rest

    def _copies(self, wording: str, reading: Reading) -> bool:
        """Whether the claim lacks nothing of the sentence that may make it supported: that never refutes it."""
        window = reading.window
        is_alike = reading.is_near and self.copies_only and _is_copy(wording, window)
        return is_alike and not any(signals(wording, window.excerpt, window.led))

    def _fitted(self, wording: str, reading: Reading) -> Probabilities:
        if self.weights is None:
            supported, refuted, rest = map(float, reading.probabilities)
            return supported, refuted, rest
        if not reading.is_near:
            return window_probabilities(reading)
        logits = [*(self.weights @ features(wording, reading)).tolist(), 0.0]
        shares = [math.exp(logit - max(logits)) for logit in logits]
        supported, refuted, rest = (share / sum(shares) for share in shares)
        return supported, refuted, rest


_CHANGES: tuple[Callable[[str, str], bool], ...] = (
    *(says_more_often, moves_a_number, names_another, takes_as_done, spells_another),
    *(drops_a_rank, drops_an_exception, negates_another),
)
"""What a claim may have changed though its words are the sentence's."""


def _is_copy(wording: str, window: Window) -> bool:
    """Whether the claim says what the window's sentence says in its words."""
    led = window.led
    has_the_words = repeats_the_words(wording, led) and not takes_from_the_lead(wording, window.sentence)
    if not has_the_words or says_in_another_order(wording, led, window.passage.title):
        return False
    if _only_asks(wording, window) or any(change(wording, led) for change in _CHANGES):
        return False
    return not leaves_out_which(wording, window.sentence, window.passage.text)


def _only_asks(wording: str, window: Window) -> bool:
    """Whether the sentence, or the title from which the claim's predicate is, is a question."""
    if window.sentence.endswith("?"):
        return True
    return "?" in window.passage.title and takes_from_the_lead(wording, window.excerpt)


def features(wording: str, reading: Reading) -> NDArray[np.float64]:
    """float64 [features]: what the rule sees of a claim and of a passage that says nearly the same."""
    own = (_log_odds(reading.probabilities[side]) for side in (SUPPORTED, REFUTED))
    return np.array([1.0, *own, *signals(wording, reading.window.excerpt, reading.window.led)])


def window_probabilities(reading: Reading) -> Probabilities:
    """What a passage says that has other words than the claim: the judge's word on its window above the floor."""
    sides = (min(reading.probabilities[side], _SUREST) for side in (SUPPORTED, REFUTED))
    supported, refuted = (max(0.0, side - _FLOOR) / (1.0 - _FLOOR) for side in sides)
    return supported, refuted, 1.0 - supported - refuted


def mentions(wording: str, reading: Reading) -> bool:
    """Whether a passage mentions what is claimed, by the judge and by the words missing in its best sentence.

    The probability of inconclusive, the share of missing words, and 1 if a name is missing, sum to 1 at most.
    """
    missing = dict(zip(SIGNALS, signals(wording, reading.window.excerpt, reading.window.led), strict=True))
    return float(reading.probabilities[INCONCLUSIVE]) + missing["words"] + missing["names"] <= 1.0


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, 1.0 - _SUREST), _SUREST)
    return math.log(bounded / (1.0 - bounded))


@lru_cache
def rule_of(judge: str) -> DecisionRule:
    """The rule that was fitted for a judge, by its name, or the one for judges without data of their own."""
    table = json.loads(files("ewe.verification").joinpath("decisions.json").read_text(encoding="utf-8"))["judges"]
    return read_rule(table.get(judge, table[_DEFAULT]))


def rule_for(judge: object, name: str) -> DecisionRule:
    """The rule for a judge: its own `thresholds`, if it has been measured by itself, else what goes with its name."""
    own = getattr(judge, "thresholds", None)
    return DecisionRule(own) if isinstance(own, Thresholds) else rule_of(name)


def read_rule(entry: Mapping[str, object]) -> DecisionRule:
    """A rule from its entry in the file; a feature that the entry does not name has the weight 0."""
    thresholds = Thresholds(*(float(str(entry[name])) for name in ("supported", "refuted", "floor")))
    weights, copies_only = entry.get("weights"), entry.get("copies_only") is True
    if not isinstance(weights, Mapping):
        return DecisionRule(thresholds, None, copies_only)
    sides = [[float(weights[side].get(name, 0.0)) for name in FEATURES] for side in ("supported", "refuted")]
    return DecisionRule(thresholds, np.array(sides), copies_only)
