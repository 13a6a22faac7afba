"""What a judge that reads passages together answers on articles kept apart: figures, temperature and thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from judge_training.claim_corpus import Pack
from judge_training.metrics import ranking, softmax
from judge_training.packed_model import PackedModel
from judge_training.paired_model import PairedModel

_WRONG = {"supported": 0.05, "refuted": 0.03}
"""Share of the false claims that may be called supported, and of the true ones that may be called refuted."""


@torch.inference_mode()
def answers(model: PackedModel | PairedModel, held_out: Sequence[Pack]) -> list[list[object]]:
    """Per claim its source, kind, label and logits."""
    model.module.eval()
    rows: list[list[object]] = []
    at_once = 8 if model.device.type == "cuda" else 1
    for start in range(0, len(held_out), at_once):
        some = held_out[start : start + at_once]
        logits = model.logits([model.ids(pack) for pack in some]).tolist()
        claims = [claim for pack in some for claim in pack.claims]
        rows += [
            [c.source, c.kind, int(c.label), *(round(v, 3) for v in one)] for c, one in zip(claims, logits, strict=True)
        ]
    return rows


def _labels_and_logits(rows: Sequence[Sequence[object]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """int64 [rows] and float64 [rows, 3] of rows of `answers`."""
    return np.array([row[2] for row in rows], np.int64), np.array([row[3:] for row in rows], np.float64)


def temperature_of(rows: Sequence[Sequence[object]]) -> float:
    """What divides the logits of rows of `answers` with the least loss."""
    labels, logits = map(torch.from_numpy, _labels_and_logits(rows))
    candidates = np.arange(0.5, 3.01, 0.05).tolist()
    return round(min(candidates, key=lambda value: float(cross_entropy(logits / value, labels))), 2)


def calibrated(rows: Sequence[Sequence[object]]) -> dict[str, float]:
    """Temperature, and the smallest probabilities from which on few claims get the opposite verdict (_WRONG)."""
    temperature = temperature_of(rows)
    labels, logits = _labels_and_logits(rows)
    shares = softmax(logits / temperature)
    found: dict[str, float] = {"temperature": temperature}
    for column, (name, wrong) in enumerate(_WRONG.items()):
        opposite = shares[labels == 1 - column, column]
        found[name] = round(float(np.ceil(100 * np.quantile(opposite, 1 - wrong)) / 100), 2)
    return found


def figures(rows: Sequence[Sequence[object]]) -> dict[str, float]:
    """Accuracy of three ways, areas under the curve, and shares at the most likely answer."""
    labels, logits = _labels_and_logits(rows)
    shares = softmax(logits)
    guesses = shares.argmax(1)
    sides = labels < 2
    values = {
        "accuracy": np.mean(guesses == labels),
        "AUC true/false": ranking(logits[sides, 0] - logits[sides, 1], labels[sides] == 0),
        "AUC supported/rest": ranking(shares[:, 0], labels == 0),
        "AUC refuted/rest": ranking(shares[:, 1], labels == 1),
        "loss": float(-np.log(shares[np.arange(len(labels)), labels]).mean()),
    }
    for name, score, own in (("supported", shares[:, 0], labels == 0), ("refuted", shares[:, 1], labels == 1)):
        values[f"{name} found at .05 errors"] = np.mean(score[own] > np.quantile(score[~own], 0.95))
    for label, name in enumerate(("true", "false", "open")):
        values |= {
            f"{name} s": np.mean(guesses[labels == label] == 0),
            f"{name} r": np.mean(guesses[labels == label] == 1),
        }
    return {key: round(float(value), 3) for key, value in values.items()}
