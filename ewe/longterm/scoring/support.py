"""What memories say of each other: by cosine, and by entailment minus contradiction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ewe.errors import InvalidRequestError
from ewe.verification.judges.protocol import REFUTED, SUPPORTED, Judge, checked

Matrix = NDArray[np.float64]


def cosine_support(vectors: NDArray[np.floating]) -> Matrix:
    """sigma_ij = v_i . v_j / (|v_i| |v_j|), float64 [n, n] in [-1, 1] (mma.txt, eq. 5); 0 with a vector of 0.

    vectors: embeddings, float [n, d]. The paper reads a negative cosine as a contradiction; embeddings of sentences
    that contradict each other are close (their cosine is high), so it hardly ever sees one.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InvalidRequestError(f"vectors must be a matrix of finite numbers, got shape {rows.shape}")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    units = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return np.asarray(np.clip(units @ units.T, -1.0, 1.0))


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
