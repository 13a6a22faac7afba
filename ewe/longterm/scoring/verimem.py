"""VeriMem's numbers: the veracity of a new memory, how evidence changes it, and how little is known about it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewe.errors import InvalidRequestError
from ewe.longterm.records import MemorySource

CONTENT_LAMBDA = 0.7
"""The share of what is verified in v_content (verimem-a.txt, 2.3.1)."""
LEARNING_RATE = 0.3
"""delta of the moving average (verimem-a.txt, 2.3.2)."""
JUDGE_RELIABILITY = 0.9
"""How often a verdict is right, in our form of the Bayesian update."""
CERTAIN = 0.95
"""No veracity counts as surer than this when evidence comes in: a prior of 0 or 1 could never be moved."""
TAU = 0.6
"""The uncertainty above which evidence is sought (verimem-a.txt, 2.5; T_u of verimem-b.txt); neither gives a value."""
WRITE_TIME_PRIOR = {"tool": 0.9, "user": 0.7, "model": 0.5}
"""v_0 of trusted tools and databases, of what users say, and of what the agent infers (verimem-b.txt, write time)."""
TIER_VERACITY = {"tool": (1.0, 1.0), "user": (0.4, 0.8), "model": (0.2, 0.6)}
"""v_source of the same, without and with somebody who is sure or agrees (the five tiers of verimem-a.txt, 2.3.1)."""
_TRUSTED = frozenset({"tool", "document", "knowledge_base", "database", "passage"})
_USERS = frozenset({"user", "person"})
_NOTHING = 1e-9  # evidence of less weight (log odds) than rounding leaves


class InitialWeights(NamedTuple):
    """alpha, beta and gamma of v_initial, which sum to 1 (verimem-a.txt, 2.3.1)."""

    source: float
    content: float
    consistency: float


INITIAL_WEIGHTS = InitialWeights(0.5, 0.3, 0.2)
"""Ours: the paper gives no values."""


def write_time_prior(source: MemorySource) -> float:
    """v_0 by the kind of a source, in [0, 1]; kinds that are not known count as the agent's own."""
    return WRITE_TIME_PRIOR[_group(source)]


def source_of(kind: str, source_id: str, reliability: float | None = None) -> MemorySource:
    """The source of a kind and id; reliability: how far it is believed (None: as its kind is at write time)."""
    source = MemorySource(kind, source_id)
    return replace(source, reliability=write_time_prior(source) if reliability is None else reliability)


def tier_veracity(source: MemorySource, *, corroborated: bool = False) -> float:
    """v_source by the kind of a source, in [0, 1]; kinds that are not known count as the agent's own."""
    return TIER_VERACITY[_group(source)][corroborated]


def initial_veracity(
    source: float,
    content: float | None = None,
    consistency: float | None = None,
    weights: InitialWeights = INITIAL_WEIGHTS,
) -> float:
    """v_initial = alpha v_source + beta v_content + gamma v_consistency, in [0, 1] (verimem-a.txt, 2.3.1).

    All three in [0, 1]. Where content or consistency is None (nothing verified, no neighbours), the weights of the
    others are scaled to sum to 1; the paper has no rule for that.
    """
    given = zip(weights, (source, content, consistency), strict=True)
    parts = [(weight, value) for weight, value in given if value is not None]
    total = sum(weight for weight, _ in parts)
    return clipped(sum(weight * value for weight, value in parts) / total) if total > 0 else source


def content_veracity(similarity: float, confidence: float) -> float:
    """v_content = lambda sim(c, c_verified) + (1 - lambda) conf(c), in [0, 1] (verimem-a.txt, 2.3.1).

    similarity: of the content with what is verified, in [-1, 1]; confidence: what the model says of itself, in [0, 1].
    """
    return clipped(CONTENT_LAMBDA * similarity + (1.0 - CONTENT_LAMBDA) * confidence)


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
    cannot see a contradiction: "in 1932" and "in 1923" are as alike as two sentences can be.
    """
    weights = np.asarray(veracities, dtype=np.float64)
    if weights.sum() <= 0:
        return None
    rows = _judgements(judgements)
    return clipped(0.5 + 0.5 * float(weights @ (rows[:, 0] - rows[:, 1])) / float(weights.sum()))


def updated_veracity(current: float, verification: float) -> float:
    """v_updated = (1 - delta) v_current + delta v_verification, in [0, 1] (verimem-a.txt, 2.3.2)."""
    return clipped((1.0 - LEARNING_RATE) * current + LEARNING_RATE * verification)


def verification_result(matches: Sequence[float], weights: Sequence[float], decay: float = 1.0) -> float:
    """v_verification = sum_i w_i match_i / sum_i w_i * decay(t), in [0, 1] (verimem-a.txt, 2.3.2).

    matches: per external source in [0, 1]; weights: not negative, not all 0; decay: of the memory's age, in [0, 1]
    (`half_life_decay`; the paper leaves its form open).
    """
    return clipped(float(np.dot(weights, matches)) / sum(weights) * decay)


def bayesian_veracity_as_written(veracity: float, entailment: float, contradiction: float, neutral: float) -> float:
    """v_new = E v / (E v + C (1 - v) + N v), in [0, 1] (verimem-b.txt, score update); v where that is 0/0.

    Evidence that says nothing (N = 1) makes the memory certainly false, though the paper wants it stable.
    """
    below = entailment * veracity + contradiction * (1.0 - veracity) + neutral * veracity
    return clipped(entailment * veracity / below) if below > 0 else veracity


def bayesian_veracity(
    veracity: float, judgements: NDArray[np.floating], reliability: float | Sequence[float] = JUDGE_RELIABILITY
) -> float:
    """P(true | evidence) by Bayes' rule, in [0, 1]: our form of verimem-b.txt's score update.

    odds(v_new) = odds(v) prod_i (r E_i + (1 - r) C_i + N_i / 2) / (r C_i + (1 - r) E_i + N_i / 2)

    judgements: float [pieces, 3], entailment, contradiction and neutral of each piece of evidence; rows sum to 1.
    reliability: r in [1/2, 1), of all pieces or of each: how often what it says is right. Neutral evidence changes
    nothing and the order of the pieces does not matter. v is kept within [0.05, 0.95] on the way in, but evidence
    never moves it against what it says. Raises InvalidRequestError for numbers out of range.
    """
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


def veracity_uncertainty(veracity: float) -> float:
    """u = 1 - |2 v - 1|, in [0, 1]: 1 at v = 1/2, 0 at 0 and 1 (verimem-b.txt, uncertainty)."""
    return 1.0 - abs(2.0 * veracity - 1.0)


def evidence_conflict(judgements: NDArray[np.floating]) -> float:
    """The lesser of the greatest E and the greatest C of evidence (float [pieces, 3]), in [0, 1]: our form."""
    rows = np.asarray(judgements, dtype=np.float64).reshape(-1, 3)
    return clipped(float(min(rows[:, 0].max(), rows[:, 1].max()))) if len(rows) else 0.0


def recall_uncertainty(veracity: float, conflict: float = 0.0) -> float:
    """U(m) = 1 - (1 - u(v)) (1 - conflict), in [0, 1]: our form of f_uncertain (verimem-a.txt, 2.5)."""
    return clipped(1.0 - (1.0 - veracity_uncertainty(veracity)) * (1.0 - conflict))


def clipped(number: float) -> float:
    """The number cut to [0, 1]."""
    return float(np.clip(number, 0.0, 1.0))


def _group(source: MemorySource) -> str:
    return "tool" if source.kind in _TRUSTED else "user" if source.kind in _USERS else "model"


def _judgements(judgements: NDArray[np.floating]) -> NDArray[np.float64]:
    rows = np.asarray(judgements, dtype=np.float64).reshape(-1, 3)
    if not (np.isfinite(rows).all() and (rows >= 0).all() and np.allclose(rows.sum(axis=1), 1.0, atol=1e-3)):
        raise InvalidRequestError("judgements must be rows of three probabilities that sum to 1")
    return rows
