"""The engine's own scorer: stored veracity, and what contradicts it."""

import math
from collections.abc import Sequence

from ewe.longterm.records import Memory
from ewe.longterm.scoring.protocol import Candidate, Score
from ewe.longterm.scoring.verimem import log_odds
from ewe.retrieval.veracity import half_life_decay

_SECONDS_PER_DAY = 86400.0


class DefaultScorer:
    """Belief = the odds of what is stored, among those of the best contradiction of each other source.

    belief_i = o_i / (1 + o_i + sum over sources s of max over s's memories j that contradict i of
                                max(1, o_j)^(2^(-lead_ij / half_life)) - 1)

    where o are the odds v / (1 - v), and lead_ij is by how many days i was said or confirmed later than j (0 if it was
    not). Of one rival this is Bayes' rule between the two. Against its own source only what was said later counts: a
    correction. Contradictions are those found on write (`Memory.contradicts`). Ranked by similarity times belief.
    """

    name = "default"

    def __init__(self, half_life_days: float = 30.0) -> None:
        self._half_life_days = half_life_days

    def score(self, candidates: Sequence[Candidate], now: float) -> list[Score]:
        """The beliefs; of memories that stand in no candidate's `contradicts` the stored veracity."""
        memories = [candidate.memory for candidate in candidates]
        beliefs = [self._belief(memory, memories) for memory in memories]
        return [
            Score(belief, candidate.similarity * belief) for candidate, belief in zip(candidates, beliefs, strict=True)
        ]

    def _belief(self, memory: Memory, others: Sequence[Memory]) -> float:
        voices: dict[tuple[str, str], float] = {}
        for other in others:
            if contradict(memory, other):
                voice = voice_of(other)
                voices[voice] = max(voices.get(voice, 0.0), self._against(memory, other))
        rivals = sum(voices[voice] for voice in sorted(voices))  # sorted: sums of floats depend on their order
        if not rivals:
            return memory.veracity
        own = math.exp(log_odds(memory.veracity))
        return min(memory.veracity, own / (1.0 + own + rivals))

    def _against(self, memory: Memory, other: Memory) -> float:
        """What `other` weighs beside the odds of `memory`, at least 0."""
        if voice_of(memory) == voice_of(other) and memory.created_at >= other.created_at:
            return 0.0
        lead = (memory.last_said_at - other.last_said_at) / _SECONDS_PER_DAY
        return math.expm1(max(0.0, log_odds(other.veracity)) * half_life_decay(lead, self._half_life_days))


def voice_of(memory: Memory) -> tuple[str, str]:
    """Who says it: the kind and id of its source; without an id, of its user."""
    return memory.source.kind, memory.source.id or memory.scope.user


def contradict(one: Memory, other: Memory) -> bool:
    """Whether either of two memories is marked as contradicting the other one."""
    return (one.id, one.scope) != (other.id, other.scope) and (
        other.id in one.contradicts or one.id in other.contradicts
    )
