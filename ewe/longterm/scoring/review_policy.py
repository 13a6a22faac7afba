"""VeriMem: which memories are checked again, when there is time for some."""

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass

from ewe.errors import InvalidRequestError
from ewe.longterm.records import Memory
from ewe.retrieval.veracity import half_life_decay

_SECONDS_PER_DAY = 86400.0
_HALF_LIFE_DAYS = 30.0  # after which time without a change a memory is half overdue
_HALF_USE = 5.0  # the number of recalls that counts half


@dataclass(frozen=True, slots=True)
class ReviewPolicy:
    """How urgent another look at a memory is; least: the priority under which nothing is reviewed."""

    least: float = 0.1

    def priority(self, memory: Memory, now: float) -> float:
        """overdue (1 + (1 - v) + use) / 3, in [0, 1]; now: unix seconds.

        overdue = 1 - 2^(-days since the last change / 30), use = recalls / (recalls + 5): our form, as verimem-b.txt
        gives none. Age multiplies, so that a memory which stays low after a check is not checked again at once.
        """
        overdue = 1.0 - half_life_decay((now - memory.updated_at) / _SECONDS_PER_DAY, _HALF_LIFE_DAYS)
        return overdue * self._at_most(memory)

    def due_at(self, memory: Memory) -> float:
        """When a memory's priority reaches `least`, in unix seconds, if nothing changes; infinite if it never does."""
        overdue = self.least / self._at_most(memory)
        if overdue >= 1.0:
            return math.inf
        return memory.updated_at - _HALF_LIFE_DAYS * math.log2(1.0 - overdue) * _SECONDS_PER_DAY

    def plan(self, memories: Iterable[Memory], now: float, budget: int) -> list[Memory]:
        """The at most `budget` most urgent memories; equal ones by scope and id. Raises InvalidRequestError below 0."""
        if budget < 0:
            raise InvalidRequestError(f"budget must be 0 or more memories, got {budget}")
        rated = ((-self.priority(memory, now), _place(memory), memory) for memory in memories)
        chosen = heapq.nsmallest(budget, rated, key=lambda item: item[:2])
        return [memory for negative, _, memory in chosen if -negative >= self.least]

    def _at_most(self, memory: Memory) -> float:
        """The priority of a memory that is wholly overdue."""
        use = memory.recall_count / (memory.recall_count + _HALF_USE)
        return (1.0 + (1.0 - memory.veracity) + use) / 3.0


def _place(memory: Memory) -> tuple[str, str, str]:
    return memory.scope.user, memory.scope.agent, memory.id
