"""How far a new memory is believed and what evidence does to it: VeriMem in our forms and as its texts print it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ewe.longterm.records import Memory
from ewe.longterm.scoring import mark, verimem
from ewe.longterm.scoring.contradictions import Relation, agreeing
from ewe.longterm.scoring.scorers import voice_of
from ewe.retrieval.veracity import Similarity, half_life_decay, word_cosines
from ewe.types.protocols import Retriever

HIGH_VERACITY = 0.6
"""From here on a neighbour has a say in the first veracity of a new memory."""
_SECONDS_PER_DAY = 86400.0
_HALF_LIFE_DAYS = 365.0  # of decay(t), which the paper leaves open

First = Callable[[Memory, Sequence[Relation]], tuple[float, float]]
"""A new memory and how its neighbours stand to it, to v and u, both in [0, 1]."""
VeracityUpdate = Callable[[Memory, NDArray[np.floating], Sequence[float], float], float]
"""A memory, judgements float [pieces, 3], how reliable each piece is, and the time (unix seconds), to the new v."""


@dataclass(frozen=True, slots=True)
class FirstVeracity:
    """v_initial and u of a new memory (verimem-a.txt, 2.3.1, with our form of consistency).

    weights: alpha, beta, gamma. contradictions: whether neighbours that contradict it lower its veracity, as in the
    paper; the default scorer weighs contradictions when memories are read instead.
    """

    weights: verimem.InitialWeights = verimem.INITIAL_WEIGHTS
    contradictions: bool = False

    def __call__(self, memory: Memory, related: Sequence[Relation]) -> tuple[float, float]:
        """v and u. Neighbours of at least 0.6 take part; of each other voice the one that says most."""
        best: dict[tuple[str, str], Relation] = {}
        for relation in related:
            voice = voice_of(relation.memory)
            if voice == voice_of(memory) or relation.memory.veracity < HIGH_VERACITY or relation.judgement[2] > 0.5:
                continue
            if voice not in best or relation.judgement[2] < best[voice].judgement[2]:
                best[voice] = relation
        voices = [best[voice] for voice in sorted(best)]
        heard = [one for one in voices if self.contradictions or one.judgement[0] >= one.judgement[1]]
        consistency = verimem.entailed_consistency(_rows(heard), [one.memory.veracity for one in heard])
        veracity = verimem.initial_veracity(memory.source.reliability, None, consistency, self.weights)
        return veracity, verimem.recall_uncertainty(veracity, verimem.evidence_conflict(_rows(voices)))


@dataclass(frozen=True, slots=True)
class FirstOfTextA:
    """v_initial of verimem-a.txt, 2.3.1, as printed: tiers of sources, similarity with what is verified and believed.

    trusted: verified information (None: v_content is left out, as in `initial_veracity`). similarity: cosines of texts.
    How far the source is believed stands for conf_LLM(c), and neighbours that agree corroborate a claim.
    """

    trusted: Retriever | None = None
    similarity: Similarity = word_cosines

    def __call__(self, memory: Memory, related: Sequence[Relation]) -> tuple[float, float]:
        """v and u, both in [0, 1]."""
        believed = [one.memory for one in related if one.memory.veracity >= HIGH_VERACITY]
        hits = [] if self.trusted is None else self.trusted.retrieve([memory.content], 1)[0]
        verified = [hit.passage.text for hit in hits]
        texts = [memory.content, *verified, *(one.content for one in believed)]
        cosines = np.clip(np.asarray(self.similarity(texts), dtype=np.float64)[0], -1.0, 1.0).tolist()
        content = verimem.content_veracity(cosines[1], memory.source.reliability) if verified else None
        consistency = verimem.consistency_veracity(cosines[1 + len(verified) :], [one.veracity for one in believed])
        source = verimem.tier_veracity(memory.source, corroborated=bool(agreeing(related)))
        veracity = verimem.initial_veracity(source, content, consistency)
        return veracity, verimem.veracity_uncertainty(veracity)


def first_of_text_b(memory: Memory, related: Sequence[Relation]) -> tuple[float, float]:
    """v_0 and u of verimem-b.txt, write time, as printed: by the kind of the source alone."""
    veracity = verimem.write_time_prior(memory.source)
    return veracity, verimem.veracity_uncertainty(veracity)


def bayesian(memory: Memory, judgements: NDArray[np.floating], reliability: Sequence[float], now: float) -> float:
    """Our form (`bayesian_veracity`)."""
    return verimem.bayesian_veracity(memory.veracity, judgements, reliability)


def averaged(memory: Memory, judgements: NDArray[np.floating], reliability: Sequence[float], now: float) -> float:
    """The moving average of verimem-a.txt, 2.3.2, as printed; match_i is E + N / 2, which the paper leaves open."""
    matches = np.clip(judgements[:, 0] + judgements[:, 2] / 2, 0.0, 1.0).tolist()
    decay = half_life_decay((now - memory.created_at) / _SECONDS_PER_DAY, _HALF_LIFE_DAYS)
    return verimem.updated_veracity(memory.veracity, verimem.verification_result(matches, reliability, decay))


def bayesian_as_written(
    memory: Memory, judgements: NDArray[np.floating], reliability: Sequence[float], now: float
) -> float:
    """The score update of verimem-b.txt as printed, a piece of evidence after the other."""
    veracity = memory.veracity
    for row in np.clip(judgements, 0.0, 1.0).tolist():
        veracity = verimem.bayesian_veracity_as_written(veracity, *row)
    return veracity


def first_trust(memory: Memory, related: Sequence[Relation]) -> tuple[float, float]:
    """TS_init of the MARK paper, appendix 1, whoever says it; u as everywhere."""
    return mark.INITIAL_TRUST, verimem.recall_uncertainty(mark.INITIAL_TRUST)


def trust_after(memory: Memory, judgements: NDArray[np.floating], reliability: Sequence[float], now: float) -> float:
    """TS_t of the MARK paper, appendix 1, a validation after the other; the stored veracity is TS_{t-1}.

    What neither supports nor refutes is no validation.
    """
    trust, correct, incorrect = memory.veracity, memory.correct_count, memory.incorrect_count
    for entailed, contradicted, neutral in judgements.tolist():
        if neutral > max(entailed, contradicted):
            continue
        correct, incorrect = correct + (entailed >= contradicted), incorrect + (entailed < contradicted)
        trust = mark.trust(trust, correct, max(memory.recall_count, correct + incorrect))
    return trust


def unmoved(memory: Memory, judgements: NDArray[np.floating], reliability: Sequence[float], now: float) -> float:
    """Static scores (the papers' ablation without updates): evidence moves nothing."""
    return memory.veracity


def _rows(relations: Sequence[Relation]) -> NDArray[np.float64]:
    """The judgements, float64 [relations, 3]."""
    return np.array([relation.judgement for relation in relations], dtype=np.float64).reshape(-1, 3)
