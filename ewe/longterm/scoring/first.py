"""How far a new memory is believed before anybody says anything of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ewe.longterm.records import Memory
from ewe.longterm.scoring.contradictions import Relation
from ewe.longterm.scoring.default import voice_of
from ewe.longterm.scoring.verimem import InitialWeights, entailed_consistency, initial_veracity
from ewe.longterm.scoring.verimem_uncertainty import evidence_conflict, recall_uncertainty

HIGH_VERACITY = 0.6
"""From here on a neighbour has a say in the first veracity of a new memory."""


First = Callable[[Memory, Sequence[Relation]], tuple[float, float]]
"""A new memory and how its neighbours stand to it, to v and u, both in [0, 1]."""


@dataclass(frozen=True, slots=True)
class FirstVeracity:
    """v_initial and u of a new memory (verimem-a.txt, 2.3.1, with our form of consistency).

    weights: alpha, beta, gamma. contradictions: whether neighbours that contradict it lower its veracity, as in the
    paper. Not by default: the default scorer weighs contradictions when memories are read, and what was told first
    would have its say twice against what was told later.
    """

    weights: InitialWeights = field(default_factory=InitialWeights)
    contradictions: bool = False

    def __call__(self, memory: Memory, found: Sequence[Relation]) -> tuple[float, float]:
        """v and u, both in [0, 1].

        Neighbours of at least 0.6 take part that say something of it; of each other voice the one that says most.
        """
        best: dict[tuple[str, str], Relation] = {}
        for relation in found:
            voice = voice_of(relation.memory)
            if voice == voice_of(memory) or relation.memory.veracity < HIGH_VERACITY or relation.judgement[2] > 0.5:
                continue
            if voice not in best or relation.judgement[2] < best[voice].judgement[2]:
                best[voice] = relation
        said = [best[voice] for voice in sorted(best)]
        heard = [one for one in said if self.contradictions or one.supports >= one.contradiction]
        consistency = entailed_consistency(_rows(heard), [one.memory.veracity for one in heard])
        veracity = initial_veracity(memory.source.reliability, None, consistency, self.weights)
        return veracity, recall_uncertainty(veracity, conflict=evidence_conflict(_rows(said)))


def _rows(relations: Sequence[Relation]) -> np.ndarray:
    """The judgements, float64 [relations, 3]."""
    return np.array([relation.judgement for relation in relations], dtype=np.float64).reshape(-1, 3)
