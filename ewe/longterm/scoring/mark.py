"""MARK: memories put in order by how often and how lately they served, how close they are, and what users said."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewe.errors import InvalidRequestError
from ewe.longterm.scoring.checks import check_weights

EPSILON = 0.01
"""The small fraction beside the age in days (mark.txt, 1.2)."""
_PRINTED_SUM = 0.01  # The weights of "Core Blend" are printed as three times 0.33.


@dataclass(frozen=True, slots=True)
class MRSWeights:
    """a, b, c and d: of the recall count, the recency, the similarity and the feedback; they sum to 1."""

    recall: float
    recency: float
    similarity: float
    feedback: float

    def __post_init__(self) -> None:
        check_weights(
            _PRINTED_SUM,
            recall=self.recall,
            recency=self.recency,
            similarity=self.similarity,
            feedback=self.feedback,
        )

    def array(self) -> NDArray[np.float64]:
        """(a, b, c, d), float64 [4]."""
        return np.array([self.recall, self.recency, self.similarity, self.feedback])


PRESETS = {
    "default": MRSWeights(0.10, 0.15, 0.70, 0.05),
    "core_blend": MRSWeights(0.33, 0.33, 0.33, 0.00),
    "similarity_freshness": MRSWeights(0.05, 0.35, 0.55, 0.05),
    "popularity_similarity": MRSWeights(0.30, 0.05, 0.60, 0.05),
    "feedback_freshness": MRSWeights(0.10, 0.40, 0.10, 0.40),
    "similarity_feedback": MRSWeights(0.05, 0.10, 0.55, 0.30),
    "balanced": MRSWeights(0.20, 0.20, 0.50, 0.10),
}
"""The seven weightings of mark.txt, 1.2, under short names, as printed."""


def feedback_score(correct: int, incorrect: int) -> int:
    """FS: 1 for a memory found correct, -1 for one found incorrect, 0 without feedback (mark.txt, 1.2).

    Where users disagree, which the paper leaves open, the majority counts; 0 if they are even.
    """
    return (correct > incorrect) - (correct < incorrect)


def relevance_as_written(
    weights: MRSWeights,
    recall_counts: NDArray[np.integer],
    ages_days: NDArray[np.floating],
    similarities: NDArray[np.floating],
    feedback: NDArray[np.integer],
) -> NDArray[np.float64]:
    """MRS = a RC + b / (Rec + eps) + c SS + d FS, then scaled to [0, 1] over the candidates (mark.txt, 1.2).

    All [n]: recall counts >= 0, ages in days (below 0 counts as 0), similarities, feedback in {-1, 0, 1}. Returns
    float64 [n]; all 0 where the candidates are equal. RC has no bound and 1 / (Rec + 0.01) reaches 100, so a memory
    that was used ten times, or is an hour old, outweighs any similarity.
    """
    recall, recency, similarity, feedback_ = _columns(recall_counts, ages_days, similarities, feedback)
    return _min_max(np.stack([recall, recency, similarity, feedback_], axis=1) @ weights.array())


def relevance(
    weights: MRSWeights,
    recall_counts: NDArray[np.integer],
    ages_days: NDArray[np.floating],
    similarities: NDArray[np.floating],
    feedback: NDArray[np.integer],
    half_use: float = 5.0,
) -> NDArray[np.float64]:
    """Our form of MRS: each part is brought to [0, 1] before it is weighted; float64 [n] in [0, 1].

    a RC / (RC + half_use) + b / (1 + Rec) + c max(0, SS) + d (1 + FS) / 2, over a + b + c + d

    The inputs are those of `relevance_as_written`; half_use: the number of uses that counts half. Monotone in every
    part as the paper's, but no part can exceed its weight, and what a memory gets does not depend on what else was
    found.
    """
    recall, recency, similarity, feedback_ = _columns(recall_counts, ages_days, similarities, feedback)
    recency = 1.0 / (1.0 + 1.0 / recency - EPSILON)
    parts = [recall / (recall + half_use), recency, np.clip(similarity, 0.0, 1.0), (1.0 + feedback_) / 2.0]
    return np.asarray(np.clip(np.stack(parts, axis=1) @ weights.array() / weights.array().sum(), 0.0, 1.0))


def _columns(
    recall_counts: NDArray[np.integer],
    ages_days: NDArray[np.floating],
    similarities: NDArray[np.floating],
    feedback: NDArray[np.integer],
) -> list[NDArray[np.float64]]:
    """RC, 1 / (Rec + eps), SS and FS, float64 [n] each."""
    recall, ages, similarity, feedback_ = (
        np.asarray(column, dtype=np.float64) for column in (recall_counts, ages_days, similarities, feedback)
    )
    if len({column.shape for column in (recall, ages, similarity, feedback_)}) != 1 or recall.ndim != 1:
        raise InvalidRequestError("recall counts, ages, similarities and feedback must be rows of one length")
    if (recall < 0).any() or not np.isin(feedback_, (-1, 0, 1)).all() or not np.isfinite(ages + similarity).all():
        raise InvalidRequestError("recall counts must not be negative, feedback must be -1, 0 or 1, the rest finite")
    return [recall, 1.0 / (np.maximum(ages, 0.0) + EPSILON), similarity, feedback_]


def _min_max(values: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(values) == 0 or values.max() == values.min():
        return np.zeros_like(values)
    return np.asarray((values - values.min()) / (values.max() - values.min()))
