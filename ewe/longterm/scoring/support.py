"""What memories say of each other: entailment minus contradiction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ewe.verification.judges.protocol import REFUTED, SUPPORTED, Judge, checked

Matrix = NDArray[np.float64]


def entailment_support(texts: Sequence[str], judge: Judge, closeness: Matrix, least: float = 0.3) -> Matrix:
    """sigma_ij = P(j entails i) - P(j contradicts i), float64 [n, n] in [-1, 1], zeros on the diagonal: our form.

    judge: asked with evidence j and claim i, once for all pairs whose closeness is at least `least`; the others say
    nothing of each other (0). A contradiction counts in both directions, as strongly as the stronger of the two: if
    one text rules the other out, so does the other one. Raises JudgeError as the judge does.
    """
    size = len(texts)
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j and closeness[i, j] >= least]
    answer = checked(judge.judge([(texts[j], texts[i]) for i, j in pairs]), len(pairs), type(judge).__name__)
    entailed, contradicted = np.zeros((size, size)), np.zeros((size, size))
    for (i, j), row in zip(pairs, answer, strict=True):
        entailed[i, j], contradicted[i, j] = row[SUPPORTED], row[REFUTED]
    return np.asarray(np.clip(entailed - np.maximum(contradicted, contradicted.T), -1.0, 1.0))
