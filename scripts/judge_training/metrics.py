"""Figures of a judge: balanced accuracy, macro-F1, expected calibration error; and what calibrates it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
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


@dataclass(frozen=True, slots=True)
class Calibration:
    """softmax(logits / temperature + biases), biases one per class: bias-corrected temperature scaling (Alexandari et
    al. 2020, section 2).
    """

    temperature: float
    biases: tuple[float, ...]

    def probabilities(self, logits: Floats) -> NDArray[np.float32]:
        """float32 [n, classes] of logits [n, classes]."""
        return softmax(logits / self.temperature + np.array(self.biases)).astype(np.float32)


def calibrate(logits: Floats, labels: Ints) -> Calibration:
    """The calibration with the least negative log-likelihood on held-back pairs; its biases sum to 0."""
    inputs, targets = torch.from_numpy(np.asarray(logits, np.float64)), torch.from_numpy(np.asarray(labels, np.int64))
    log_temperature = torch.zeros((), dtype=torch.float64, requires_grad=True)
    biases = torch.zeros(inputs.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([log_temperature, biases], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(inputs / log_temperature.exp() + biases, targets)
        torch.autograd.backward(value)
        return value.item()

    optimizer.step(loss)
    found = biases.detach() - biases.detach().mean()
    return Calibration(float(log_temperature.detach().exp()), tuple(found.tolist()))


def ranking(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """Area under the ROC curve: the chance that a positive item scores higher than a negative one, ties half."""
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    total, hits = len(scores), int(positive.sum())
    if hits in (0, total):
        return float("nan")
    return float((ranks[places][positive].sum() - hits * (hits + 1) / 2) / (hits * (total - hits)))
