"""Measuring how far a chat model can be its own judge: bias, temperature and thresholds out of labelled claims.

The claims fall into two halves by article. Each half's probabilities come from a bias and a temperature that were
fitted on the other one; on them the thresholds are chosen and all figures counted. What is kept is then fitted on all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from ewe.errors import JudgeError
from ewe.verification.judges.labelled_claims import LabelledClaim
from ewe.verification.judges.protocol import COLUMNS, INCONCLUSIVE, REFUTED, SUPPORTED
from ewe.verification.judges.writer_calibration import Ask, Calibration

Floats = NDArray[np.float64]
Ints = NDArray[np.int_]
ASKED_FOR = {SUPPORTED: 0.92, REFUTED: 0.85}
"""The share of a verdict that must be right for it to be given at all."""

_RUNNING = (0.75, 0.15, 0.10)
"""How many sentences are true, false and left open that a model of 1.5B writes with passages in its prompt."""

_LEAST = 12  # Claims that must get a verdict: of fewer, that share is luck.
_GRID = np.round(np.arange(0.34, 0.99, 0.01), 2)
_DECAY, _STEPS, _LEAST_SLOPE = 1e-3, 50, 1e-3
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of labelled claims. thresholds: of supported and refuted, None where none is right often enough.

    decided: of each label [3, 3] how many were called supported, refuted and left open. areas: under the ROC curves of
    supported and of refuted against the rest.
    """

    bias: tuple[float, float, float]
    temperature: float
    thresholds: tuple[float | None, float | None]
    decided: Ints
    areas: tuple[float, float]

    @property
    def can_judge(self) -> bool:
        """Whether any verdict is right often enough to be given."""
        return self.thresholds != (None, None)

    def words(self) -> list[str]:
        """What the figures mean, a sentence per verdict."""
        return [self._word(side, question) for side, question in ASKED_FOR.items()]

    def _word(self, side: int, question: float) -> str:
        name, threshold = COLUMNS[side].value, self.thresholds[side]
        area = f"area under the ROC curve {self.areas[side]:.2f}"
        if threshold is None:
            return f"{name}: never said, for at no probability is it right {question:.0%} of the time ({area})"
        right, given = int(self.decided[side, side]), int(self.decided[:, side].sum())
        return f"{name}: from probability {threshold:.2f} on; {right} of {given} are right ({area})"

    def calibration(self, model: str, fingerprint: str) -> Calibration:
        """What is kept of it."""
        figures = {"claims": int(self.decided.sum()), "decided": self.decided.tolist(), "areas": list(self.areas)}
        return Calibration(model, fingerprint, self.bias, self.temperature, *self.thresholds, figures)


def logits_of(ask: Ask, claims: Sequence[LabelledClaim], advance: Callable[[], object]) -> Floats:
    """float64 [claims, 3]; advance: told of each claim. Raises JudgeError for a claim the model has no room for."""
    rows: list[Floats] = []
    for first in range(0, len(claims), _AT_ONCE):
        batch = claims[first : first + _AT_ONCE]
        rows.append(ask([claim.pair for claim in batch]))
        for _ in batch:
            advance()
    logits = np.concatenate(rows)
    if not np.isfinite(logits).all():
        number = int(np.flatnonzero(~np.isfinite(logits).all(1))[0])
        raise JudgeError(f"the model gave no answer about a claim, or has no room for it: {claims[number].text!r}")
    return logits


def measure(logits: Floats, claims: Sequence[LabelledClaim]) -> Measured:
    """Bias, temperature and thresholds for these logits [claims, 3], and how good they are."""
    labels = np.array([claim.label for claim in claims])
    probabilities = np.zeros_like(logits)
    for half, other in _halves(claims):
        probabilities[half] = Calibration("", "", *fit(logits[other], labels[other]), None, None, {}).probabilities(
            logits[half]
        )
    thresholds = (choose(probabilities, labels, SUPPORTED), choose(probabilities, labels, REFUTED))
    verdicts = _verdicts(probabilities, thresholds)
    decided = np.array([[int(((labels == row) & (verdicts == side)).sum()) for side in range(3)] for row in range(3)])
    areas = (
        _area(probabilities[:, SUPPORTED], labels == SUPPORTED),
        _area(probabilities[:, REFUTED], labels == REFUTED),
    )
    return Measured(*fit(logits, labels), thresholds, decided, areas)


def fit(logits: Floats, labels: Ints) -> tuple[tuple[float, float, float], float]:
    """Bias per label (0 for inconclusive) and temperature of the least log loss, by Newton's method.

    The probabilities are softmax(slope * logits + shift): a convex problem in slope and two shifts. A model that is
    worse than chance gets a slope of almost 0, so that its logits say nothing.
    """
    centred = logits - logits.mean(axis=1, keepdims=True)
    inputs = np.stack([centred, *(np.broadcast_to(np.eye(3)[side], centred.shape) for side in (0, 1))], axis=2)
    targets = np.eye(3)[labels]
    weights = np.array([1.0 / max(1.0, float(centred.std())), 0.0, 0.0])
    for _ in range(_STEPS):
        shares = _softmax(inputs @ weights)
        gradient = np.einsum("ncf,nc->f", inputs, shares - targets) + _DECAY * weights
        mean = np.einsum("ncf,nc->nf", inputs, shares)
        curvature = np.einsum("ncf,nc,ncg->fg", inputs, shares, inputs) - mean.T @ mean + _DECAY * np.eye(3)
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step / max(1.0, float(np.abs(step).max()))
    slope = max(float(weights[0]), _LEAST_SLOPE)
    return (-float(weights[1]) / slope, -float(weights[2]) / slope, 0.0), 1.0 / slope


def choose(probabilities: Floats, labels: Ints, side: int) -> float | None:
    """The smallest probability from which on a verdict is right as often as asked for; None if there is none.

    It must be so among these claims, and among as many true, false and open ones as there are in running answers: few
    sentences are false there, so that a judge which calls one true claim in twenty false is wrong more often than not.
    """
    likeliest = probabilities[:, side] > probabilities[:, REFUTED if side == SUPPORTED else SUPPORTED]
    mixes = ((np.array(_RUNNING) / np.bincount(labels, minlength=3))[labels], np.ones(len(labels)))
    for threshold in _GRID:
        given = likeliest & (probabilities[:, side] >= threshold)
        if given.sum() < _LEAST:
            return None
        if min(np.average(labels[given] == side, weights=mix[given]) for mix in mixes) >= ASKED_FOR[side]:
            return float(threshold)
    return None


def _halves(claims: Sequence[LabelledClaim]) -> Iterator[tuple[Ints, Ints]]:
    """Places of one half and of the other, and the reverse: by article, whatever the order of the claims."""
    groups = sorted({claim.group for claim in claims}, key=lambda group: sha256(group.encode()).digest())
    if len(groups) < 2:
        raise JudgeError("the claims are all about one article: claims about at least two are needed")
    first = set(groups[::2])
    is_first = np.array([claim.group in first for claim in claims])
    yield np.flatnonzero(is_first), np.flatnonzero(~is_first)
    yield np.flatnonzero(~is_first), np.flatnonzero(is_first)


def _verdicts(probabilities: Floats, thresholds: tuple[float | None, float | None]) -> Ints:
    verdicts = np.full(len(probabilities), INCONCLUSIVE)
    for side, other in ((SUPPORTED, REFUTED), (REFUTED, SUPPORTED)):
        threshold = thresholds[side]
        if threshold is not None:
            own = probabilities[:, side]
            verdicts[(own >= threshold) & (own > probabilities[:, other])] = side
    return verdicts


def _area(scores: Floats, is_positive: NDArray[np.bool_]) -> float:
    """How often a positive has the higher score, ties counting half."""
    difference = scores[is_positive][:, None] - scores[~is_positive][None, :]
    return float((difference > 0).mean() + (difference == 0).mean() / 2)


def _softmax(values: Floats) -> Floats:
    shares = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
