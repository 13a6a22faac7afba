"""VeriMem: the veracity of a new memory, and how evidence changes it.

Numbers in, numbers out: knows numpy, no store, no model and no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewe.errors import InvalidRequestError
from ewe.longterm.scoring.checks import check_shares, check_weights, clipped

CONTENT_LAMBDA = 0.7
"""The share of what is verified in v_content (verimem-a.txt, 2.3.1)."""
LEARNING_RATE = 0.3
"""delta of the moving average (verimem-a.txt, 2.3.2)."""
JUDGE_RELIABILITY = 0.9
"""How often a verdict is right, in our form of the Bayesian update."""
CERTAIN = 0.95
"""No veracity counts as surer than this when evidence comes in: a prior of 0 or 1 could never be moved."""
_NOTHING = 1e-9  # evidence of less weight (log odds) than rounding leaves


@dataclass(frozen=True, slots=True)
class InitialWeights:
    """alpha, beta and gamma of v_initial, which sum to 1 (verimem-a.txt, 2.3.1); the paper gives no values."""

    source: float = 0.5
    content: float = 0.3
    consistency: float = 0.2

    def __post_init__(self) -> None:
        check_weights(source=self.source, content=self.content, consistency=self.consistency)


def initial_veracity(
    source: float,
    content: float | None = None,
    consistency: float | None = None,
    weights: InitialWeights = InitialWeights(),
) -> float:
    """v_initial = alpha v_source + beta v_content + gamma v_consistency, in [0, 1] (verimem-a.txt, 2.3.1).

    All three in [0, 1]. Where content or consistency is None (nothing verified, no neighbours), the weights of the
    others are scaled to sum to 1; the paper has no rule for that, and taking 0 would punish the first memory of a
    store. Raises InvalidRequestError for numbers outside [0, 1].
    """
    parts = [(weights.source, source)]
    parts += [(weights.content, content)] if content is not None else []
    parts += [(weights.consistency, consistency)] if consistency is not None else []
    check_shares(**{f"part {place} of the veracity": value for place, (_, value) in enumerate(parts)})
    total = sum(weight for weight, _ in parts)
    return clipped(sum(weight * value for weight, value in parts) / total) if total > 0 else source


def content_veracity(similarity: float, confidence: float, balance: float = CONTENT_LAMBDA) -> float:
    """v_content = lambda sim(c, c_verified) + (1 - lambda) conf(c), in [0, 1] (verimem-a.txt, 2.3.1).

    similarity: of the content with what is verified, in [-1, 1]; confidence: what the model says of itself, in [0, 1].
    """
    check_shares(confidence=confidence, balance=balance)
    return clipped(balance * similarity + (1.0 - balance) * confidence)


def consistency_veracity(similarities: Sequence[float], veracities: Sequence[float]) -> float | None:
    """v_consistency = 1/|H| sum_h sim(c, h) v_h over high-veracity memories H, in [0, 1] (verimem-a.txt, 2.3.1).

    similarities: sim(c, h) in [-1, 1]; veracities: v_h in [0, 1]; same length. None without memories.
    """
    if not similarities:
        return None
    return clipped(float(np.mean(np.multiply(similarities, veracities))))


def entailed_consistency(judgements: NDArray[np.floating], veracities: Sequence[float]) -> float | None:
    """Our form of v_consistency: (1 + sum_h v_h (E_h - C_h) / sum_h v_h) / 2, in [0, 1]; None without memories.

    judgements: float [memories, 3], what each memory says of the content: entailed, contradicted, neutral. Similarity
    cannot see a contradiction: "in 1932" and "in 1923" are as alike as two sentences can be. Here support pulls towards
    1, contradiction towards 0, and what says nothing towards 1/2.
    """
    weights = np.asarray(veracities, dtype=np.float64)
    if weights.sum() <= 0:
        return None
    rows = _judgements(judgements)
    return clipped(0.5 + 0.5 * float(weights @ (rows[:, 0] - rows[:, 1])) / float(weights.sum()))


def updated_veracity(current: float, verification: float, rate: float = LEARNING_RATE) -> float:
    """v_updated = (1 - delta) v_current + delta v_verification, in [0, 1] (verimem-a.txt, 2.3.2)."""
    check_shares(current=current, verification=verification, rate=rate)
    return clipped((1.0 - rate) * current + rate * verification)


def verification_result(matches: Sequence[float], weights: Sequence[float], decay: float = 1.0) -> float:
    """v_verification = sum_i w_i match_i / sum_i w_i * decay(t), in [0, 1] (verimem-a.txt, 2.3.2).

    matches: per external source in [0, 1]; weights: not negative, not all 0; decay: of the memory's age, in [0, 1]
    (`half_life_decay`; the paper leaves its form open). Raises InvalidRequestError for anything else.
    """
    check_shares(decay=decay, **{f"match {place}": match for place, match in enumerate(matches)})
    if len(matches) != len(weights) or not weights or min(weights) < 0 or sum(weights) <= 0:
        raise InvalidRequestError("every match needs a weight that is not negative, and one of them must be positive")
    return clipped(float(np.dot(weights, matches)) / sum(weights) * decay)


def bayesian_veracity_as_written(veracity: float, entailment: float, contradiction: float, neutral: float) -> float:
    """v_new = E v / (E v + C (1 - v) + N v), in [0, 1] (verimem-b.txt, score update); v where that is 0/0.

    The paper calls it a simplified example. Neutral evidence appears below the line only, so evidence that says
    nothing (N = 1) makes the memory certainly false, though the paper wants it stable or slightly lower.
    """
    check_shares(veracity=veracity, entailment=entailment, contradiction=contradiction, neutral=neutral)
    below = entailment * veracity + contradiction * (1.0 - veracity) + neutral * veracity
    return clipped(entailment * veracity / below) if below > 0 else veracity


def bayesian_veracity(
    veracity: float, judgements: NDArray[np.floating], reliability: float | Sequence[float] = JUDGE_RELIABILITY
) -> float:
    """P(true | evidence) by Bayes' rule, in [0, 1]: our form of verimem-b.txt's score update.

    odds(v_new) = odds(v) prod_i (r E_i + (1 - r) C_i + N_i / 2) / (r C_i + (1 - r) E_i + N_i / 2)

    judgements: float [pieces, 3], entailment, contradiction and neutral of each piece of evidence; rows sum to 1.
    reliability: r in [1/2, 1), of all pieces or of each: how often what it says is right. Neutral evidence changes
    nothing, the order of the pieces does not matter, and no number of agreeing verdicts of a fallible judge makes 0 or
    1. v is kept within [0.05, 0.95] on the way in, but evidence never moves it against what it says.
    """
    check_shares(veracity=veracity)
    rows = _judgements(judgements)
    right = np.broadcast_to(np.asarray(reliability, dtype=np.float64), len(rows))
    if not ((right >= 0.5) & (right < 1.0)).all():
        raise InvalidRequestError(f"reliability must lie in [0.5, 1), got {reliability!r}")
    entailed, contradicted, half = rows[:, 0], rows[:, 1], rows[:, 2] / 2
    if_true = right * entailed + (1.0 - right) * contradicted + half
    if_false = right * contradicted + (1.0 - right) * entailed + half
    weight = float(np.sum(np.log(if_true / if_false)))
    if abs(weight) < _NOTHING:
        return veracity
    updated = from_log_odds(log_odds(veracity) + weight)
    return max(veracity, updated) if weight > 0 else min(veracity, updated)


def log_odds(veracity: float) -> float:
    """ln(v / (1 - v)) of a veracity kept within [0.05, 0.95]: within +-2.95."""
    kept = min(max(veracity, 1.0 - CERTAIN), CERTAIN)
    return float(np.log(kept / (1.0 - kept)))


def from_log_odds(odds: float) -> float:
    """1 / (1 + exp(-odds)), in [0, 1]; the inverse of `log_odds`."""
    return float(0.5 * (1.0 + np.tanh(0.5 * odds)))


def _judgements(judgements: NDArray[np.floating]) -> NDArray[np.float64]:
    rows = np.asarray(judgements, dtype=np.float64).reshape(-1, 3)
    if not (np.isfinite(rows).all() and (rows >= 0).all() and np.allclose(rows.sum(axis=1), 1.0, atol=1e-3)):
        raise InvalidRequestError("judgements must be rows of three probabilities that sum to 1")
    return rows
