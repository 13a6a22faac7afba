"""MMA: the confidence in each of the memories that were found together."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewe.retrieval.veracity import agreement, half_life_decay

HALF_LIFE_DAYS = 30.0
"""T_half of the authors' public code; the paper gives none."""
SOURCE_PRIORS = {"user": 1.0, "knowledge": 0.9, "web": 0.7, "model": 0.6, "import": 0.5}
"""S(M) by origin (eq. 2), as in the authors' public code; the paper gives none."""
_SECONDS_PER_DAY = 86400.0
_TOLERANCE = 1e-9

Ablation = Literal["st", "cs", "tc"]
ABLATIONS: dict[Ablation, tuple[bool, bool, bool]] = {
    "st": (True, True, False),
    "cs": (True, False, True),
    "tc": (False, True, True),
}
"""Which of source, time and consensus each keeps."""


class MMAWeights(NamedTuple):
    """w_s, w_t and w_c of eq. 1, scaled to sum to 1; those of the authors' public code, as the paper gives none."""

    source: float = 0.45
    time: float = 0.40
    consensus: float = 0.15

    def normalised(self) -> NDArray[np.float64]:
        """(w'_s, w'_t, w'_c), float64 [3], which sum to 1."""
        weights = np.array(self)
        return np.asarray(weights / weights.sum())

    def ablated(self, mode: Ablation) -> MMAWeights:
        """Without consensus ("st"), without time ("cs") or without source ("tc"), as in its tables 5, 6 and 8."""
        return MMAWeights(*(weight * kept for weight, kept in zip(self, ABLATIONS[mode], strict=True)))


PUBLISHED_WEIGHTS = MMAWeights()


def source_prior(kind: str) -> float:
    """S(M) = Map(src), in [0, 1] (eq. 2); kinds that are not listed count as imported."""
    return SOURCE_PRIORS.get(kind, SOURCE_PRIORS["import"])


def temporal_decay(written_at: float, now: float) -> float:
    """T(M) = exp(-ln 2 * age / T_half), in [0, 1] (eq. 3); times in seconds, 1 for what lies in the future."""
    return half_life_decay((now - written_at) / _SECONDS_PER_DAY, HALF_LIFE_DAYS)


def confidence(
    source: NDArray[np.floating],
    time: NDArray[np.floating],
    support: NDArray[np.floating],
    closeness: NDArray[np.floating],
    weights: MMAWeights = PUBLISHED_WEIGHTS,
    *,
    skip_lonely: bool = False,
) -> NDArray[np.float64]:
    """C(M_i) = [w'_s S + w'_t T + w'_c C_con] cut to [0, 1], C_con over C itself (eq. 1 and 4), float64 [n].

    source: S, time: T, float [n] in [0, 1]; support: sigma, float [n, n] in [-1, 1] (cosines in the paper, eq. 5);
    closeness: w, float [n, n] >= 0, whose zeros say who is no neighbour. Eq. 4 defines C by C: each step changes it by
    at most w'_c of the change before, so the fixed point is the only one and does not depend on the start. skip_lonely:
    leave the consensus out for memories without neighbours (our form; as written they lose w'_c).
    """
    share_s, share_t, share_c = weights.normalised()
    own, shares_c = share_s * source + share_t * time, np.full(len(source), share_c)
    if skip_lonely:
        close = closeness * (1.0 - np.eye(len(source)))
        lonely = close.sum(axis=1) <= 0
        own, shares_c = np.where(lonely, own / (1.0 - share_c), own), np.where(lonely, 0.0, shares_c)
    current, change = own / (1.0 - shares_c), np.inf
    while change > _TOLERANCE:
        following = np.clip(own + shares_c * agreement(support, current, closeness), 0.0, 1.0)
        change = float(np.max(np.abs(following - current), initial=0.0))
        current = following
    return np.asarray(current)
