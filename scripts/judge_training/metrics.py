"""Figures of a judge: balanced accuracy, macro-F1, expected calibration error; and the temperature that calibrates it.

Owns: the formulas. Knows numpy; nothing of models.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


def balanced_accuracy(probabilities: Floats, labels: Ints) -> float:
    """Mean recall of supported (0) and refuted (1), each pair taken for the likelier of the two; inconclusive is no
    answer here. probabilities: [n, 3]; labels: [n], 0 or 1.
    """
    guesses = probabilities[:, :2].argmax(1)
    return float(np.mean([np.mean(guesses[labels == label] == label) for label in (0, 1)]))


def macro_f1(probabilities: Floats, labels: Ints) -> float:
    """Mean over the three classes of F1, argmax of [n, 3] against labels [n]; F1 of a class never met is 0."""
    guesses = probabilities.argmax(1)
    scores = []
    for label in range(probabilities.shape[1]):
        hits = np.sum((guesses == label) & (labels == label))
        total = np.sum(guesses == label) + np.sum(labels == label)
        scores.append(2 * hits / total if total else 0.0)
    return float(np.mean(scores))


def calibration_error(probabilities: Floats, labels: Ints, bins: int = 15) -> float:
    """Expected calibration error of the likeliest class: mean |confidence - accuracy| over equal-width bins,
    weighted by their sizes (Guo et al. 2017, eq. 3).
    """
    confidence = probabilities.max(1)
    correct = probabilities.argmax(1) == labels
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    error = 0.0
    for place in range(bins):
        inside = places == place
        if inside.any():
            error += float(inside.mean() * abs(confidence[inside].mean() - correct[inside].mean()))
    return error


def softmax(logits: Floats) -> Floats:
    """Rows of logits -> rows of probabilities."""
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    result: Floats = shifted / shifted.sum(1, keepdims=True)
    return result


def best_temperature(logits: Floats, labels: Ints) -> float:
    """The temperature in [0.3, 5] with the least negative log-likelihood on held-back pairs (Guo et al. 2017, 4.2)."""
    temperatures = np.exp(np.linspace(np.log(0.3), np.log(5), 200))
    rows = np.arange(len(labels))
    losses = [-np.log(softmax(logits / t)[rows, labels] + 1e-12).mean() for t in temperatures]
    return float(temperatures[int(np.argmin(losses))])
