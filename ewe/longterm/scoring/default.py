"""The engine's own scorer: stored veracity, and what contradicts it.

Owns: how memories that contradict each other share the belief in them. Knows the records and VeriMem's log odds; no
store, no model and no clock. docs/longterm_scoring.md argues it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ewe.longterm.records import Memory
from ewe.longterm.scoring.checks import check_positive
from ewe.longterm.scoring.protocol import Candidate, Score
from ewe.longterm.scoring.verimem import from_log_odds, log_odds
from ewe.retrieval.veracity import half_life_decay

_SECONDS_PER_DAY = 86400.0


class DefaultScorer:
    """Belief = stored veracity against the best contradiction of each other source, newer ones in full.

    log odds(belief_i) = log odds(v_i) - sum over sources s of max over s's memories j that contradict i of
                         max(0, log odds(v_j)) * 2^(-lead_ij / half_life)

    where lead_ij is by how many days i is newer than j (0 if it is not). So what is believed less than 1/2 speaks
    against nobody, a source has one voice however often it says a thing, and an old statement loses its say against a
    newer one while it keeps it against older ones. Against its own source only what is newer counts: a correction.
    A memory that nothing contradicts does not fade: facts do not become false by being old. Contradictions are those
    that were found on write (`Memory.contradicts`). Ranked by similarity times belief.
    """

    name = "default"

    def __init__(self, half_life_days: float = 30.0) -> None:
        check_positive(half_life_days=half_life_days)
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
        if not any(voices.values()):
            return memory.veracity
        against = sum(voices[voice] for voice in sorted(voices))  # sorted: sums of floats depend on their order
        return min(memory.veracity, from_log_odds(log_odds(memory.veracity) - against))

    def _against(self, memory: Memory, other: Memory) -> float:
        """What `other` takes off the log odds of `memory`, at least 0."""
        lead = (memory.created_at - other.created_at) / _SECONDS_PER_DAY
        if lead >= 0 and voice_of(memory) == voice_of(other):
            return 0.0
        return max(0.0, log_odds(other.veracity)) * half_life_decay(lead, self._half_life_days)


def voice_of(memory: Memory) -> tuple[str, str]:
    """Who says it: the kind and id of its source; without an id, of its user."""
    return memory.source.kind, memory.source.id or memory.scope.user


def contradict(one: Memory, other: Memory) -> bool:
    """Whether either of two memories is marked as contradicting the other one."""
    return (one.id, one.scope) != (other.id, other.scope) and (
        other.id in one.contradicts or one.id in other.contradicts
    )
