"""What one forward pass is to hold.

Decides nothing: the scheduler fills it.
"""

from dataclasses import dataclass, field

from ewe.attention.metadata import ForwardRow
from ewe.engine.sequence import Sequence
from ewe.memory.unit_cache import EncodedUnit, UnitCache


@dataclass(slots=True)
class SchedulerOutput:
    """The rows of one forward pass, units before contexts, with what each belongs to.

    A layer writes the keys of all rows before any of them attends, so a context may be in the pass of its own units.
    sequences: those whose contexts are in it; encoded: those whose pending units are all there with this pass.
    held: references of the plan's own on each unit and its prefix, lest their blocks are given to others before the
    pass. budget: tokens that still fit; busy: sequences that must keep their blocks until the pass is over; progressed:
    whether a sequence came back or got its units, so that there is something to do even without rows.
    """

    units: list[EncodedUnit] = field(default_factory=list)
    held: list[EncodedUnit] = field(default_factory=list)
    sequences: list[Sequence] = field(default_factory=list)
    encoded: list[Sequence] = field(default_factory=list)
    rows: list[ForwardRow] = field(default_factory=list)
    budget: int = 0
    busy: dict[Sequence, None] = field(default_factory=dict)
    progressed: bool = False

    def add_unit(self, unit: EncodedUnit, prefix: EncodedUnit | None, limit: int, cache: UnitCache) -> int:
        """Adds those of a unit's tokens that are in no pass yet, at most `limit`; returns how many.

        prefix: what the unit follows. The unit is ready with its last token: for all that comes after it, in this pass
        and later.
        """
        begin = unit.num_planned
        tokens = unit.token_ids[begin : begin + max(limit, 0)]
        if not tokens:
            return 0
        unit.num_planned += len(tokens)
        unit.ready = unit.num_planned == len(unit.token_ids)
        row = ForwardRow(
            token_ids=tokens,
            start_position=len(unit.prefix_ids) + begin,
            context_slots=unit.table.slots()[: unit.num_planned],
            wants_logits=False,
            prefix_slots=None if prefix is None else prefix.table.slots(),
            adapter=unit.adapter,
        )
        self.rows.insert(len(self.units), row)
        self.units.append(unit)
        for held in (unit,) if prefix is None else (unit, prefix):
            cache.share(held)
            self.held.append(held)
        self.budget -= len(tokens)
        return len(tokens)
