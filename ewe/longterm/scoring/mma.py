"""MMA: the confidence in each of the memories that were found together.

Shares the half-life and the consensus with `ewe.retrieval.veracity`; knows numpy, no store and no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewe.errors import ConfigError, InvalidRequestError
from ewe.longterm.scoring.checks import check_settings
from ewe.retrieval.veracity import agreement, half_life_decay

HALF_LIFE_DAYS = 30.0
"""T_half of the authors' public code; the paper gives none."""
SOURCE_PRIORS = {"user": 1.0, "knowledge": 0.9, "web": 0.7, "model": 0.6, "import": 0.5}
"""S(M) by origin (eq. 2), as in the authors' public code; the paper gives none."""
_SECONDS_PER_DAY = 86400.0
_MOST_CONSENSUS = 0.99
_TOLERANCE = 1e-9

Ablation = Literal["full", "st", "cs", "tc"]
_KEPT: dict[Ablation, tuple[bool, bool, bool]] = {
    "full": (True, True, True),
    "st": (True, True, False),
    "cs": (True, False, True),
    "tc": (False, True, True),
}


@dataclass(frozen=True, slots=True)
class MMAWeights:
    """w_s, w_t and w_c of eq. 1, scaled to sum to 1; those of the authors' public code, as the paper gives none."""

    source: float = 0.45
    time: float = 0.40
    consensus: float = 0.15

    def __post_init__(self) -> None:
        check_settings(source=self.source, time=self.time, consensus=self.consensus)
        if self.source + self.time + self.consensus <= 0:
            raise ConfigError("at least one of the weights of source, time and consensus must be positive")

    def normalised(self) -> NDArray[np.float64]:
        """(w'_s, w'_t, w'_c), float64 [3], which sum to 1."""
        weights = np.array([self.source, self.time, self.consensus])
        return np.asarray(weights / weights.sum())

    def ablated(self, mode: Ablation) -> MMAWeights:
        """Without consensus ("st"), without time ("cs") or without source ("tc"), as mma.txt tables 5, 6 and 8."""
        source, time, consensus = _KEPT[mode]
        return MMAWeights(self.source * source, self.time * time, self.consensus * consensus)


PUBLISHED_WEIGHTS = MMAWeights()


class Consensus(NamedTuple):
    """A fixed point: confidences float64 [n] in [0, 1], the consensus C_con behind them in [-1, 1], and the steps."""

    confidences: NDArray[np.float64]
    consensus: NDArray[np.float64]
    steps: int


def source_prior(kind: str) -> float:
    """S(M) = Map(src), in [0, 1] (eq. 2); kinds that are not listed count as imported."""
    return SOURCE_PRIORS.get(kind, SOURCE_PRIORS["import"])


def temporal_decay(written_at: float, now: float, half_life_days: float = HALF_LIFE_DAYS) -> float:
    """T(M) = exp(-ln 2 * age / T_half), in [0, 1] (eq. 3); times in seconds, 1 for what lies in the future."""
    return half_life_decay((now - written_at) / _SECONDS_PER_DAY, half_life_days)


def confidence(
    source: NDArray[np.floating],
    time: NDArray[np.floating],
    support: NDArray[np.floating],
    closeness: NDArray[np.floating],
    weights: MMAWeights = PUBLISHED_WEIGHTS,
    *,
    skip_lonely: bool = False,
) -> Consensus:
    """C(M_i) = [w'_s S + w'_t T + w'_c C_con] cut to [0, 1], C_con over C itself (eq. 1 and 4): the fixed point.

    source: S, time: T, float [n] in [0, 1]; support: sigma, float [n, n] in [-1, 1] (cosines in the paper, eq. 5);
    closeness: w, float [n, n] >= 0, whose zeros say who is no neighbour. Eq. 4 defines C by C; iterated from
    C = (w_s S + w_t T) / (w_s + w_t), it changes by at most w'_c of its last change in every step, so for w'_c < 1 the
    fixed point is the only one and does not depend on the start; near 1 nothing but C would hold C. skip_lonely: leave
    the consensus out for memories without neighbours, and scale the other weights up (our form; as written such a
    memory has consensus 0 and loses w'_c).

    Raises InvalidRequestError for shapes that do not fit or numbers out of range, ConfigError for w'_c > 0.99.
    """
    sources, times, supports, close = _checked(source, time, support, closeness)
    share_s, share_t, share_c = weights.normalised()
    if share_c > _MOST_CONSENSUS:
        raise ConfigError(f"the consensus may have at most {_MOST_CONSENSUS} of all weight, got {share_c:g}")
    own = share_s * sources + share_t * times
    shares_c = np.full(len(own), share_c)
    if skip_lonely:
        np.fill_diagonal(close, 0.0)
        lonely = close.sum(axis=1) <= 0
        own, shares_c = np.where(lonely, own / (1.0 - share_c), own), np.where(lonely, 0.0, shares_c)
    current = own / (1.0 - shares_c)
    steps, change = 0, np.inf
    while change > _TOLERANCE:  # The change shrinks by w'_c in every step: at most 2,100 of them.
        following = np.clip(own + shares_c * agreement(supports, current, close), 0.0, 1.0)
        change = float(np.max(np.abs(following - current), initial=0.0))
        current, steps = following, steps + 1
    return Consensus(current, agreement(supports, current, close), steps)


def _checked(
    source: NDArray[np.floating],
    time: NDArray[np.floating],
    support: NDArray[np.floating],
    closeness: NDArray[np.floating],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    sources, times = np.array(source, dtype=np.float64), np.array(time, dtype=np.float64)
    supports, close = np.array(support, dtype=np.float64), np.array(closeness, dtype=np.float64)
    size = len(sources)
    if sources.shape != (size,) or times.shape != (size,) or {supports.shape, close.shape} != {(size, size)}:
        raise InvalidRequestError(f"{size} memories need {size} sources and times and {size} x {size} matrices")
    shares = np.concatenate([sources, times])
    if not ((shares >= 0) & (shares <= 1)).all() or not (np.abs(supports) <= 1 + 1e-9).all() or not (close >= 0).all():
        raise InvalidRequestError("sources and times must lie in [0, 1], support in [-1, 1], closeness at 0 or above")
    return sources, times, supports, close
