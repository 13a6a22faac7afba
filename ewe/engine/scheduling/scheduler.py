"""Which rows the next forward pass holds.

Tenants take turns where sequences wait to be let in, each tenant's in order of arrival. Blocks go by arrival alone
(`ewe.engine.scheduling.swapping`).
"""

from collections import abc
from dataclasses import dataclass, field

from ewe.config import SchedulerConfig
from ewe.engine.kvcache.pool import KVPool
from ewe.engine.memory_manager import MemoryManager
from ewe.engine.model_executor.model_runner import ForwardRow
from ewe.engine.policy_runtime.next_action import Action
from ewe.engine.scheduling.inflight_batch import SchedulerOutput
from ewe.engine.scheduling.swapping import ContextSwapper
from ewe.engine.scheduling.turns import Turns
from ewe.engine.sequence import Sequence
from ewe.engine.units.precomputed import Load, PrecomputedUnits
from ewe.engine.units.unit_cache import EncodedUnit

_UNKNOWN = (0,)  # stands for the token that a placeholder tells
_MOST_SCORED = 256  # tokens of one prompt in one pass that scores them: each has logits of its own


@dataclass(eq=False)
class Scheduler:
    """Plans forward passes over one pool.

    swapper: finds the blocks. precomputed: units that need not be encoded. unit_temperature: divides the logits on
    units that follow a prefix.
    """

    swapper: ContextSwapper
    pool: KVPool
    memory_manager: MemoryManager
    config: SchedulerConfig
    precomputed: PrecomputedUnits | None
    unit_temperature: float
    _turns: Turns = field(default_factory=Turns, init=False)
    _failures: int = field(default=0, init=False)

    def schedule(self, actions: abc.Sequence[tuple[Sequence, Action]]) -> SchedulerOutput:
        """The next pass for unfinished sequences in order of arrival, each with the action that it is up to.

        Decoding sequences come first, then units and prompts, those that wait to be let in by turns; prompts that are
        only scored take no place of a sequence, but enter where the pass has room. Blocks are allocated, and contexts
        swapped for them; memories and texts stay as they are. `launched` or `failed` must follow.
        """
        candidates = [sequence for sequence, _ in actions]
        plan = SchedulerOutput(budget=self.config.max_num_batched_tokens, candidates=candidates)
        running = [pair for pair in actions if pair[1] not in ("wait", "complete") and not pair[0].is_full]
        here = [pair for pair in running if pair[0].schedule.is_admitted and pair[0].schedule.swapped is None]
        for sequence, action in here:
            if action == "run" and sequence.schedule.swapped is None:  # an older one may have taken its blocks
                self._add_decoding(plan, sequence)
        if len(plan.busy) < len(running):
            self._add_others(plan, running, len(here))
        return plan

    def _add_decoding(self, plan: SchedulerOutput, sequence: Sequence) -> None:
        """Adds a context of which only the last token is to be run."""
        num_tokens = sequence.num_tokens
        if num_tokens - sequence.table.length == 1 and not self._missing(sequence):
            self._add_tokens(plan, sequence, num_tokens)

    def _add_others(self, plan: SchedulerOutput, running: list[tuple[Sequence, Action]], admitted: int) -> None:
        """Adds prompts and units, and lets in those whose turn it is; admitted: how many are in and not swapped out."""
        may_enter = True  # nobody overtakes: whose turn it is comes in next
        for sequence, action in self._by_turns(running):
            if sequence in plan.busy:
                continue
            if not sequence.schedule.is_admitted or sequence.schedule.swapped is not None:
                has_place = plan.budget > 0 if sequence.is_scored else admitted < self.config.places
                may_enter = may_enter and has_place and self._admit(plan, sequence)
                if not may_enter:
                    continue
                admitted += 1
            if action == "run":
                self._add_context(plan, sequence)
            elif action == "encode" and self._add_pending(plan, sequence):
                plan.encoded.append(sequence)

    def _by_turns(self, running: list[tuple[Sequence, Action]]) -> list[tuple[Sequence, Action]]:
        """The same, where the places of those that were never let in are given to them by turns."""
        actions = {sequence: action for sequence, action in running if not sequence.schedule.is_admitted}
        if not actions:
            return running
        admitted = [sequence for sequence, _ in running if sequence.schedule.is_admitted]
        turns = iter(self._turns.order(actions, admitted))
        return [pair if pair[0].schedule.is_admitted else (first := next(turns), actions[first]) for pair in running]

    def add_contexts(self, plan: SchedulerOutput, running: abc.Sequence[Sequence]) -> None:
        """Adds the contexts of sequences whose units are in the pass and, by now, in memory."""
        for sequence in running:
            self._add_context(plan, sequence)

    def launched(self, plan: SchedulerOutput) -> None:
        """The pass is on its way: what it holds of its units is given back."""
        for unit in plan.units:
            if unit.num_planned:
                self._scale_keys(unit)
        for unit in plan.held:
            self.memory_manager.cache.release(unit)

    def failed(self, plan: SchedulerOutput) -> None:
        """The pass has not run, and nobody is to use its units."""
        self._failures += 1
        for unit in plan.units:
            unit.ready, unit.num_planned = False, 0
        self.launched(plan)

    def _add_context(self, plan: SchedulerOutput, sequence: Sequence) -> None:
        """Adds the next tokens of a context, or what it sees and was evicted while it was swapped out."""
        missing = self._missing(sequence)
        if not missing or self._add_units(plan, sequence, missing):
            self._add_tokens(plan, sequence, sequence.num_tokens)

    def _missing(self, sequence: Sequence) -> list[EncodedUnit]:
        """What a context attends to beside itself and is not encoded, of its prefix and the units of its memory."""
        prefix, seen, missing = sequence.schedule.prefix, sequence.memory.seen, []
        if seen.ready_after != self._failures:  # only a pass that failed takes a unit back
            missing = [unit for unit in seen.encoded if not unit.ready]
            seen.ready_after = None if missing else self._failures
        return missing if prefix is None or prefix.ready else [prefix, *missing]

    def _add_tokens(self, plan: SchedulerOutput, sequence: Sequence, num_tokens: int) -> None:
        """Adds the next of a context's tokens, so many in all; it sees nothing but what is encoded or in the pass."""
        is_full = len(plan.sequences) >= self.config.places and not sequence.is_scored
        if plan.budget <= 0 or is_full:
            return
        request, table, begin = sequence.request, sequence.table, sequence.table.length
        scored = begin < len(request.prompt_ids) and request.original.params.prompt_logprobs is not None
        count = num_tokens - begin
        if count > 1:
            count = min(count, plan.budget, _MOST_SCORED if scored else count)
        if not (count == 1 and table.extend_in_place()) and not self._extend(plan, sequence, count):
            return
        end = begin + count
        schedule, seen, is_whole = sequence.schedule, sequence.memory.seen, end == num_tokens
        placeholder, position = schedule.placeholder if is_whole else None, request.start_position + begin
        tokens = sequence.tokens(begin, end) if placeholder is None or count > 1 else _UNKNOWN
        prefix_slots = None if schedule.prefix is None else schedule.prefix.table.slots()
        adapter = request.original.adapter
        # By place, because names take Python longer than all the rest.
        row = ForwardRow(
            tokens, position, table.slots(), seen.slots, seen.weights, is_whole, scored, placeholder, prefix_slots,
            adapter,
        )  # fmt: skip
        plan.rows.append(row)
        plan.sequences.append(sequence)
        plan.busy[sequence] = None
        plan.budget -= count

    def _extend(self, plan: SchedulerOutput, sequence: Sequence, num_tokens: int) -> bool:
        """Makes room for so many tokens of a context, at the cost of younger ones; returns whether there was any."""
        if not self.swapper.make_room(sequence.table.blocks_needed(num_tokens), sequence, plan):
            return False
        copies = sequence.table.extend(num_tokens)
        if copies:
            self.pool.copy_blocks(copies)
        return True

    def _add_pending(self, plan: SchedulerOutput, sequence: Sequence) -> bool:
        """Allocates a sequence's new units, all or none, and adds those that nobody has encoded.

        Returns whether all of them are encoded or in the pass, and the sequence need not wait for what it computes.
        """
        if not self.swapper.acquire(self.memory_manager.acquire, sequence, plan):
            return False
        prefix = [] if sequence.schedule.prefix is None else [sequence.schedule.prefix]
        pending = [item.encoded for item in sequence.schedule.pending_units if item.encoded is not None]
        encoded = self._add_units(plan, sequence, prefix + pending)
        plan.progressed |= encoded
        # Hidden states are there only when the pass has run.
        return encoded and all(item.lane is not None for item in sequence.schedule.pending_units)

    def _add_units(self, plan: SchedulerOutput, sequence: Sequence, units: abc.Sequence[EncodedUnit]) -> bool:
        """Adds the units that are not encoded, as far as there is room; returns whether they all are now.

        The prefix that units follow comes before them, in several passes if it is long.
        """
        cache = self.memory_manager.cache
        plan.busy[sequence] = None
        for unit in units:
            size = len(unit.token_ids)
            if unit.ready or unit.num_planned == size or self._is_precomputed(plan, sequence, unit):
                continue
            if unit is sequence.schedule.prefix:
                sequence.stats.prefix_tokens_encoded += plan.add_unit(unit, None, plan.budget, cache)
                if not unit.ready:
                    break
            elif size <= plan.budget or not plan.rows:
                sequence.stats.unit_tokens_encoded += plan.add_unit(unit, sequence.schedule.prefix, size, cache)
                sequence.stats.units_encoded += 1
                unit.ready = self.unit_temperature == 1 or not unit.prefix_ids  # else when its keys are scaled
        return all(unit.ready for unit in units)

    def _is_precomputed(self, plan: SchedulerOutput, sequence: Sequence, unit: EncodedUnit) -> bool:
        """Whether a unit need not be encoded: it is in the pool now, or it is being read."""
        if self.precomputed is None:
            return False
        state = self.precomputed.load(unit)
        if state is Load.DONE:
            self._scale_keys(unit)
            plan.progressed = True
            sequence.stats.units_loaded += 1
            self.memory_manager.cache.loads += 1
        return state is not Load.ABSENT

    def _scale_keys(self, unit: EncodedUnit) -> None:
        """Divides a unit's keys by its temperature, and so the logits of all that attends to it from now on."""
        if self.unit_temperature != 1 and unit.prefix_ids:
            self.pool.scale_keys(unit.table.slots(), 1 / self.unit_temperature)
            unit.ready = True

    def _admit(self, plan: SchedulerOutput, sequence: Sequence) -> bool:
        """Lets a waiting sequence in or swaps one back in; returns whether there was room."""
        if sequence.schedule.swapped is not None:
            return self.swapper.swap_in(sequence, plan)
        sequence.schedule.is_admitted = self.swapper.acquire(self.memory_manager.acquire_prefix, sequence, plan)
        if sequence.schedule.is_admitted:
            self._turns.take(sequence)
        return sequence.schedule.is_admitted
