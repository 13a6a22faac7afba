"""VeriMem as its two texts print it, beside our forms: first veracities, and what evidence does to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewe.longterm.records import Memory
from ewe.longterm.scoring.contradictions import Relation, agreeing
from ewe.longterm.scoring.first import HIGH_VERACITY
from ewe.longterm.scoring.verimem import (
    bayesian_veracity,
    bayesian_veracity_as_written,
    consistency_veracity,
    content_veracity,
    initial_veracity,
    updated_veracity,
    verification_result,
)
from ewe.longterm.scoring.verimem_sources import tier_veracity, write_time_prior
from ewe.longterm.scoring.verimem_uncertainty import veracity_uncertainty
from ewe.protocols import Retriever
from ewe.retrieval.veracity import Similarity, half_life_decay, word_cosines

_SECONDS_PER_DAY = 86400.0
_HALF_LIFE_DAYS = 365.0  # of decay(t), which the paper leaves open

VeracityUpdate = Callable[[Memory, NDArray[np.floating], Sequence[float], float], float]
"""A memory, judgements float [pieces, 3], how reliable each piece is, and the time (unix seconds), to the new v."""


@dataclass(frozen=True, slots=True)
class FirstOfTextA:
    """v_initial of verimem-a.txt, 2.3.1, as printed: tiers of sources, similarity with what is verified and believed.

    trusted: verified information (None: v_content is left out, as in `initial_veracity`). similarity: cosines of texts.
    How far the source is believed stands for conf_LLM(c), and neighbours that agree corroborate a claim.
    """

    trusted: Retriever | None = None
    similarity: Similarity = word_cosines

    def __call__(self, memory: Memory, found: Sequence[Relation]) -> tuple[float, float]:
        """v and u, both in [0, 1]."""
        believed = [one.memory for one in found if one.memory.veracity >= HIGH_VERACITY]
        hits = [] if self.trusted is None else self.trusted.retrieve([memory.content], 1)[0]
        verified = [hit.passage.text for hit in hits]
        texts = [memory.content, *verified, *(one.content for one in believed)]
        cosines = np.clip(np.asarray(self.similarity(texts), dtype=np.float64)[0], -1.0, 1.0).tolist()
        content = content_veracity(cosines[1], memory.source.reliability) if verified else None
        consistency = consistency_veracity(cosines[1 + len(verified) :], [one.veracity for one in believed])
        source = tier_veracity(memory.source, corroborated=bool(agreeing(found)))
        veracity = initial_veracity(source, content, consistency)
        return veracity, veracity_uncertainty(veracity)


def first_of_text_b(memory: Memory, found: Sequence[Relation]) -> tuple[float, float]:
    """v_0 and u of verimem-b.txt, write time, as printed: by the kind of the source alone."""
    veracity = write_time_prior(memory.source)
    return veracity, veracity_uncertainty(veracity)


def bayesian(memory: Memory, judgements: NDArray[np.floating], reliability: Sequence[float], now: float) -> float:
    """Our form (`bayesian_veracity`)."""
    return bayesian_veracity(memory.veracity, judgements, reliability)


def averaged(memory: Memory, judgements: NDArray[np.floating], reliability: Sequence[float], now: float) -> float:
    """The moving average of verimem-a.txt, 2.3.2, as printed: old memories fall, whatever is said of them.

    match_i is E + N / 2, so that a source which says nothing is neither a match nor none.
    """
    matches = np.clip(judgements[:, 0] + judgements[:, 2] / 2, 0.0, 1.0).tolist()
    decay = half_life_decay((now - memory.created_at) / _SECONDS_PER_DAY, _HALF_LIFE_DAYS)
    return updated_veracity(memory.veracity, verification_result(matches, reliability, decay))


def bayesian_as_written(
    memory: Memory, judgements: NDArray[np.floating], reliability: Sequence[float], now: float
) -> float:
    """The score update of verimem-b.txt as printed, a piece of evidence after the other."""
    veracity = memory.veracity
    for row in np.clip(judgements, 0.0, 1.0).tolist():
        veracity = bayesian_veracity_as_written(veracity, *row)
    return veracity


def unmoved(memory: Memory, judgements: NDArray[np.floating], reliability: Sequence[float], now: float) -> float:
    """Static scores (the papers' ablation without updates): evidence moves nothing."""
    return memory.veracity
