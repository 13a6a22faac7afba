"""The working memory of one sequence: two lanes of weighted units, first in, first out (design 2.3)."""

import math
from dataclasses import dataclass

from ewe.memory.unit_cache import EncodedUnit, UnitKey
from ewe.types import Lane, Passage


@dataclass(frozen=True, slots=True)
class MemoryUnit:
    """One unit in a lane; unit_id is unique within its working memory, weight > 0 is its `w` in the merge.

    score: its passage's, by the retriever that found it.
    """

    unit_id: int
    encoded: EncodedUnit
    passage: Passage
    weight: float
    lane: Lane
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """The contents of a working memory at one moment, each lane oldest first; holds no references of its own."""

    retrieval: tuple[MemoryUnit, ...]
    verification: tuple[MemoryUnit, ...]

    @property
    def units(self) -> tuple[MemoryUnit, ...]:
        """All units, in the order of `WorkingMemory.units`."""
        return (*self.retrieval, *self.verification)


class WorkingMemory:
    """Lanes of at most `retrieval_units` and `verification_units` units; raises ValueError for a negative number.

    `units` is always the retrieval lane, oldest first, and then the verification lane, oldest first. by_score: a full
    lane gives up the unit with the lowest score (the oldest of several) instead of its oldest one.
    """

    def __init__(self, retrieval_units: int, verification_units: int, by_score: bool = False) -> None:
        if min(retrieval_units, verification_units) < 0:
            raise ValueError(f"lanes cannot hold {retrieval_units} and {verification_units} units")
        self.units: tuple[MemoryUnit, ...] = ()
        self._capacity = {Lane.RETRIEVAL: retrieval_units, Lane.VERIFICATION: verification_units}
        self._next_id = 0
        self._by_score = by_score

    def contains(self, key: UnitKey) -> bool:
        """Whether a unit with this content is in either lane."""
        return any(unit.encoded.key == key for unit in self.units)

    def add(
        self, encoded: EncodedUnit, passage: Passage, weight: float, lane: Lane, score: float = 0.0
    ) -> tuple[MemoryUnit, MemoryUnit | None]:
        """Append a unit to its lane; returns it and the unit of the lane that had to go, if one had.

        Raises ValueError for a lane without room, a content that is in memory already, or a weight that is not a
        positive number.
        """
        if not self._capacity[lane]:
            raise ValueError(f"the {lane} lane holds no units")
        if self.contains(encoded.key):
            raise ValueError("this unit is in memory already")
        if not (math.isfinite(weight) and weight > 0):
            raise ValueError(f"a unit's weight must be a positive number, got {weight}")
        unit = MemoryUnit(self._next_id, encoded, passage, weight, lane, score)
        self._next_id += 1
        lanes = {name: self._lane(name) for name in Lane}
        held, evicted = lanes[lane], None
        if len(held) == self._capacity[lane]:
            evicted = min(held, key=lambda other: other.score) if self._by_score else held[0]
            held.remove(evicted)
        held.append(unit)
        self.units = (*lanes[Lane.RETRIEVAL], *lanes[Lane.VERIFICATION])
        return unit, evicted

    def renew(self, key: UnitKey, lane: Lane) -> bool:
        """Make a unit of this lane its newest; returns whether the content is in memory at all."""
        unit = next((unit for unit in self.units if unit.encoded.key == key), None)
        if unit is not None and unit.lane is lane:
            rest = [other for other in self.units if other is not unit]
            last = sum(other.lane is Lane.RETRIEVAL for other in rest) if lane is Lane.RETRIEVAL else len(rest)
            self.units = (*rest[:last], unit, *rest[last:])
        return unit is not None

    def snapshot(self) -> MemorySnapshot:
        """The present contents, to be restored here or in another working memory of the same capacity."""
        return MemorySnapshot(tuple(self._lane(Lane.RETRIEVAL)), tuple(self._lane(Lane.VERIFICATION)))

    def restore(self, snapshot: MemorySnapshot) -> None:
        """Hold exactly what the snapshot holds; raises ValueError if its lanes do not fit.

        Unit ids given out since the snapshot are not used again.
        """
        for lane, stored in ((Lane.RETRIEVAL, snapshot.retrieval), (Lane.VERIFICATION, snapshot.verification)):
            if len(stored) > self._capacity[lane]:
                raise ValueError(f"the snapshot's {lane} lane holds {len(stored)} units, {self._capacity[lane]} fit")
        self.units = (*snapshot.retrieval, *snapshot.verification)
        self._next_id = max([self._next_id, *(unit.unit_id + 1 for unit in self.units)])

    def clear(self) -> tuple[MemoryUnit, ...]:
        """Empty both lanes and return what they held."""
        units, self.units = self.units, ()
        return units

    def _lane(self, lane: Lane) -> list[MemoryUnit]:
        return [unit for unit in self.units if unit.lane is lane]
