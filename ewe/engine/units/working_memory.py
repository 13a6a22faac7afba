"""The working memory of one sequence: two lanes of weighted units, first in, first out."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ewe.engine.units.unit_cache import EncodedUnit, UnitKey
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


@dataclass(slots=True, eq=False)
class SeenUnits:
    """What passes are told of a memory: its units, their slots (int64 [unit length] each) and their weights.

    ready_after: after how many failed passes the scheduler has found all of them encoded; None: it has not.
    """

    units: tuple[MemoryUnit, ...]
    encoded: tuple[EncodedUnit, ...]
    slots: tuple[npt.NDArray[np.int64], ...]
    weights: tuple[float, ...]
    ready_after: int | None = None


class WorkingMemory:
    """Lanes of at most `retrieval_units` and `verification_units` units; raises ValueError for a negative number.

    `units` is always the retrieval lane, oldest first, and then the verification lane, oldest first; the tuple itself
    never changes, so it is a snapshot, too. by_score: a full lane gives up the unit with the lowest score (the oldest
    of several) instead of its oldest one.
    """

    def __init__(self, retrieval_units: int, verification_units: int, by_score: bool = False) -> None:
        if min(retrieval_units, verification_units) < 0:
            raise ValueError(f"lanes cannot hold {retrieval_units} and {verification_units} units")
        self.units: tuple[MemoryUnit, ...] = ()
        self._capacity = {Lane.RETRIEVAL: retrieval_units, Lane.VERIFICATION: verification_units}
        self._next_id = 0
        self._by_score = by_score
        self._seen: SeenUnits | None = None

    @property
    def seen(self) -> SeenUnits:
        """The units as passes see them, whose blocks must have been allocated; made anew only for other units."""
        if self._seen is None or self._seen.units is not self.units:
            encoded = tuple(unit.encoded for unit in self.units)
            slots = tuple(unit.table.slots() for unit in encoded)
            self._seen = SeenUnits(self.units, encoded, slots, tuple(unit.weight for unit in self.units))
        return self._seen

    def contains(self, token_ids: UnitKey) -> bool:
        """Whether a unit with this content is in either lane."""
        return any(unit.encoded.token_ids == token_ids for unit in self.units)

    def add(
        self, encoded: EncodedUnit, passage: Passage, weight: float, lane: Lane, score: float = 0.0
    ) -> tuple[MemoryUnit, MemoryUnit | None]:
        """Append a unit to its lane; returns it and the unit of the lane that had to go, if one had.

        Raises ValueError for a lane without room, a content that is in memory already, or a weight that is not a
        positive number.
        """
        if not self._capacity[lane]:
            raise ValueError(f"the {lane} lane holds no units")
        if self.contains(encoded.token_ids):
            raise ValueError("this unit is in memory already")
        if not (math.isfinite(weight) and weight > 0):
            raise ValueError(f"a unit's weight must be a positive number, got {weight}")
        unit = MemoryUnit(self._next_id, encoded, passage, weight, lane, score)
        self._next_id += 1
        held, evicted = [other for other in self.units if other.lane is lane], None
        if len(held) == self._capacity[lane]:
            evicted = min(held, key=lambda other: other.score) if self._by_score else held[0]
        self._append(unit, evicted)
        return unit, evicted

    def renew(self, token_ids: UnitKey, lane: Lane) -> bool:
        """Make a unit of this lane its newest; returns whether the content is in memory at all."""
        unit = next((unit for unit in self.units if unit.encoded.token_ids == token_ids), None)
        if unit is not None and unit.lane is lane:
            self._append(unit, unit)
        return unit is not None

    def restore(self, units: tuple[MemoryUnit, ...]) -> None:
        """Hold exactly what `units` was at an earlier moment, here or elsewhere; raises ValueError if it does not fit.

        Unit ids given out since then are not used again.
        """
        for lane, capacity in self._capacity.items():
            count = sum(unit.lane is lane for unit in units)
            if count > capacity:
                raise ValueError(f"the snapshot's {lane} lane holds {count} units, {capacity} fit")
        self.units = units
        self._next_id = max([self._next_id, *(unit.unit_id + 1 for unit in units)])

    def clear(self) -> tuple[MemoryUnit, ...]:
        """Empty both lanes and return what they held."""
        units, self.units = self.units, ()
        return units

    def _append(self, unit: MemoryUnit, without: MemoryUnit | None) -> None:
        """Make a unit the newest of its lane, in place of another one or of itself."""
        rest = [other for other in self.units if other is not without]
        self.units = tuple(sorted((*rest, unit), key=lambda other: other.lane is Lane.VERIFICATION))
