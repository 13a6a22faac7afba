"""MARK: memories put in order by use, age, similarity and feedback (its paper, 1.2); which are kept (appendix 1)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EPSILON = 0.01
"""The small fraction beside the age in days (the MARK paper, 1.2)."""
HISTORY, VALIDATED_WEIGHT, TOTAL_WEIGHT = 0.8, 1.0, 4.0
"""alpha of the trust score and its smoothing weights w_v and w_s, as in table 7."""
INCORRECT_PENALTY, PERSISTENCE_SCALE = 0.5, 0.85
"""lambda of the persistence score, and the alpha of its threshold, as in table 7."""
INITIAL_TRUST = VALIDATED_WEIGHT / TOTAL_WEIGHT
"""TS_init."""
_HALF_USE = 5.0  # the number of uses that counts half in our form


class MRSWeights(NamedTuple):
    """a, b, c and d: of the recall count, the recency, the similarity and the feedback; they sum to 1."""

    recall: float
    recency: float
    similarity: float
    feedback: float


PRESETS = {
    "default": MRSWeights(0.10, 0.15, 0.70, 0.05),
    "core_blend": MRSWeights(0.33, 0.33, 0.33, 0.00),
    "similarity_freshness": MRSWeights(0.05, 0.35, 0.55, 0.05),
    "popularity_similarity": MRSWeights(0.30, 0.05, 0.60, 0.05),
    "feedback_freshness": MRSWeights(0.10, 0.40, 0.10, 0.40),
    "similarity_feedback": MRSWeights(0.05, 0.10, 0.55, 0.30),
    "balanced": MRSWeights(0.20, 0.20, 0.50, 0.10),
}
"""The seven weightings of the MARK paper, 1.2, under short names, as printed."""


def feedback_score(correct: int, incorrect: int) -> int:
    """FS: 1 for a memory that most found correct, -1 for incorrect, 0 without feedback or if they are even."""
    return (correct > incorrect) - (correct < incorrect)


def relevance_as_written(
    weights: MRSWeights,
    recall_counts: NDArray[np.integer],
    ages_days: NDArray[np.floating],
    similarities: NDArray[np.floating],
    feedback: NDArray[np.integer],
) -> NDArray[np.float64]:
    """MRS = a RC + b / (Rec + eps) + c SS + d FS, then scaled to [0, 1] over the candidates (the MARK paper, 1.2).

    All [n]: recall counts >= 0, ages in days (below 0 counts as 0), similarities, feedback in {-1, 0, 1}. Returns
    float64 [n]; all 0 where the candidates are equal.
    """
    recency = 1.0 / (np.maximum(ages_days, 0.0) + EPSILON)
    values = np.stack([recall_counts, recency, similarities, feedback], axis=1) @ np.array(weights)
    if len(values) == 0 or values.max() == values.min():
        return np.zeros_like(values)
    return np.asarray((values - values.min()) / (values.max() - values.min()))


def relevance(
    weights: MRSWeights,
    recall_counts: NDArray[np.integer],
    ages_days: NDArray[np.floating],
    similarities: NDArray[np.floating],
    feedback: NDArray[np.integer],
) -> NDArray[np.float64]:
    """Our form of MRS: a RC / (RC + 5) + b / (1 + Rec) + c max(0, SS) + d (1 + FS) / 2, over a + b + c + d.

    Inputs as in `relevance_as_written`; returns float64 [n] in [0, 1]. No part exceeds its weight, and what a memory
    gets does not depend on what else was found.
    """
    recency, shares = 1.0 / (1.0 + np.maximum(ages_days, 0.0)), np.array(weights)
    parts = [
        recall_counts / (recall_counts + _HALF_USE),
        recency,
        np.clip(similarities, 0.0, 1.0),
        (1.0 + feedback) / 2,
    ]
    return np.asarray(np.clip(np.stack(parts, axis=1) @ shares / shares.sum(), 0.0, 1.0))


def trust(previous: float, correct: int, total: int) -> float:
    """TS_t = alpha TS_{t-1} + (1 - alpha) (C_correct + w_v) / (C_total + w_s), in [0, 1]."""
    return HISTORY * previous + (1.0 - HISTORY) * settled_trust(correct, total)


def settled_trust(correct: int, total: int) -> float:
    """(C_correct + w_v) / (C_total + w_s), in [0, 1]: where `trust` comes to rest if these counts stay."""
    return (min(correct, total) + VALIDATED_WEIGHT) / (total + TOTAL_WEIGHT)


def persistence(total: int, incorrect: int) -> float:
    """PS = C_total / (C_total + lambda C_incorrect), in [0, 1]; 1 where nothing was recalled or refused yet."""
    below = total + INCORRECT_PENALTY * incorrect
    return total / below if below > 0 else 1.0


def persistence_threshold(trust: float) -> float:
    """alpha (1 - TS), in [0, 1], which the persistence score must exceed."""
    return PERSISTENCE_SCALE * (1.0 - trust)


def retains(trust: float, persistence: float) -> bool:
    """Whether TS > TS_init, or else PS > alpha (1 - TS); a memory exactly at TS_init is held to the second."""
    return trust > INITIAL_TRUST or persistence > persistence_threshold(trust)
