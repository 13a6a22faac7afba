"""Bringing passages into working memory, and every reference to an encoded unit that a sequence holds."""

from __future__ import annotations

from collections import abc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ewe.config import MemoryConfig
from ewe.engine.schedule_state import PendingUnit
from ewe.engine.sequence import Sequence
from ewe.engine.units.unit_cache import EncodedUnit, UnitCache
from ewe.engine.units.unit_text import UnitTokenizer, unit_weight
from ewe.engine.units.working_memory import MemoryUnit
from ewe.errors import InvalidRequestError, OutOfBlocksError
from ewe.types import Lane, ScoredPassage

if TYPE_CHECKING:
    from ewe.engine.scheduling.nearest_neighbours import NearestNeighbours


@dataclass(eq=False)
class MemoryManager:
    """Fills and refreshes the memories of all sequences.

    One reference on an encoded unit is held per memory place, per snapshot place and per pending unit; and one on its
    prefix per sequence, longer than on any unit that follows it. copies: takes the hidden states of passages that are
    copied from.
    """

    cache: UnitCache
    unit_tokenizer: UnitTokenizer | None
    config: MemoryConfig
    copies: NearestNeighbours | None

    def plan(
        self,
        sequence: Sequence,
        hits: abc.Sequence[ScoredPassage],
        lane: Lane,
        required: bool = False,
    ) -> None:
        """Queues the passages that are new to the memory, oldest first; those already there become the newest.

        Of more passages than the lane has room for (beside those queued before) the last ones count. Left out, with a
        note in the trace: veracity 0, and texts that no unit can hold; these raise InvalidRequestError if `required`.
        A passage with an owner makes a unit that is shared with nobody else.
        """
        config = self.config
        capacity = config.retrieval_units if lane is Lane.RETRIEVAL else config.verification_units
        room = capacity - sum(pending.lane is lane for pending in sequence.schedule.pending_units)
        chosen: list[PendingUnit] = []
        for hit in reversed(hits):
            if len(chosen) == room:
                break
            unit = self._prepare(sequence, hit, lane, required)
            if unit is not None and unit.is_new_to(sequence.schedule.pending_units + chosen):
                chosen.append(unit)
        for unit in reversed(chosen):
            if not sequence.memory.renew(unit.unit_text.token_ids, lane):
                sequence.schedule.pending_units.append(unit)

    def add_retrieved(self, sequence: Sequence, hits: abc.Sequence[ScoredPassage]) -> None:
        """Queues what was found, best first: the best becomes the newest unit, or the first to be copied from."""
        if self.copies is None:
            self.plan(sequence, hits[::-1], Lane.RETRIEVAL)
            return
        for hit in hits:
            unit = self._prepare(sequence, hit, None)
            if unit is not None and unit.is_new_to(sequence.schedule.pending_units):
                sequence.schedule.pending_units.append(unit)

    def acquire_prefix(self, sequence: Sequence) -> None:
        """Allocates blocks for the prefix that the sequence's units follow, if it has one; raises OutOfBlocksError."""
        if sequence.request.prefix_ids:
            prefix_ids, original = sequence.request.prefix_ids, sequence.request.original
            sequence.schedule.prefix = self.cache.acquire(prefix_ids, original.salt, (), original.adapter)

    def acquire(self, sequence: Sequence) -> None:
        """Allocates blocks for all pending units; raises OutOfBlocksError, and then holds none of them."""
        prefix_ids, adapter = sequence.request.prefix_ids, sequence.request.original.adapter
        try:
            for pending in sequence.schedule.pending_units:
                if pending.encoded is None:
                    token_ids = pending.unit_text.token_ids
                    pending.encoded = self.cache.acquire(token_ids, pending.salt, prefix_ids, adapter)
                    pending.was_cached = pending.encoded.ready
        except OutOfBlocksError:
            self._release_pending(sequence)
            raise

    def is_encoded(self, sequence: Sequence) -> bool:
        """Whether every pending unit has its KV."""
        return all(pending.encoded is not None and pending.encoded.ready for pending in sequence.schedule.pending_units)

    def commit(self, sequence: Sequence) -> None:
        """Moves the pending units into memory, in place of others; of those to copy from, the hidden states."""
        if self.copies is not None:
            self.copies.collect(sequence)
        for pending in sequence.schedule.pending_units:
            assert pending.encoded is not None
            sequence.sources[pending.passage.id] = pending.passage
            num_tokens = len(pending.unit_text.token_ids)
            sequence.stats.unit_tokens += num_tokens
            sequence.stats.unit_tokens_cached += num_tokens if pending.was_cached else 0
            if pending.lane is None:
                self.cache.release(pending.encoded)
                continue
            unit, evicted = sequence.memory.add(
                pending.encoded, pending.passage, pending.weight, pending.lane, pending.score
            )
            if evicted is not None:
                sequence.record("evict", lane=evicted.lane.value, unit_id=evicted.unit_id)
                self.cache.release(evicted.encoded)
            sequence.record("refresh", **pending.described(unit.unit_id))
            sequence.stats.refreshes += 1
        sequence.schedule.pending_units.clear()

    def clear(self, sequence: Sequence) -> None:
        """Empties the memory."""
        for unit in sequence.memory.clear():
            sequence.record("evict", lane=unit.lane.value, unit_id=unit.unit_id)
            self.cache.release(unit.encoded)

    def take_snapshots(self, sequence: Sequence) -> None:
        """Gives every check that has none the memory as it is now."""
        for check in sequence.policy.checks:
            if check.snapshot is None:
                check.snapshot = sequence.memory.units
                for unit in check.snapshot:
                    self.cache.share(unit.encoded)

    def drop_snapshot(self, snapshot: tuple[MemoryUnit, ...] | None) -> None:
        """Gives a snapshot's references back."""
        for unit in snapshot or ():
            self.cache.release(unit.encoded)

    def restore(self, sequence: Sequence, snapshot: tuple[MemoryUnit, ...]) -> None:
        """Returns to a snapshot; its references become the memory's."""
        current = sequence.memory.units
        sequence.memory.restore(snapshot)
        kept, was_there = ({unit.unit_id for unit in units} for units in (snapshot, current))
        for unit in current:
            if unit.unit_id not in kept:
                sequence.record("evict", lane=unit.lane.value, unit_id=unit.unit_id)
            self.cache.release(unit.encoded)
        for unit in snapshot:
            if unit.unit_id not in was_there:
                sequence.record("restore", lane=unit.lane.value, unit_id=unit.unit_id)

    def drop_pending(self, sequence: Sequence) -> None:
        """Forgets the units that are not in memory yet."""
        self._release_pending(sequence)
        sequence.schedule.pending_units.clear()

    def release_all(self, sequence: Sequence) -> None:
        """Gives back every reference when the sequence ends."""
        self.suspend(sequence)
        sequence.schedule.pending_units.clear()
        sequence.policy.checks.clear()
        sequence.memory.clear()

    def suspend(self, sequence: Sequence) -> None:
        """Gives back every reference while the sequence is swapped out; the units may be evicted meanwhile."""
        self._release_pending(sequence)
        for unit in self._held(sequence):
            self.cache.release(unit)
        self._release_prefix(sequence)

    def resume(self, sequence: Sequence) -> None:
        """Takes the references back; what was evicted meanwhile comes back unencoded (its KV depends on nothing else).

        Raises OutOfBlocksError, and then holds none.
        """
        self.acquire_prefix(sequence)
        taken: list[EncodedUnit] = []
        try:
            for unit in self._held(sequence):
                taken.append(self.cache.acquire(unit.token_ids, unit.salt, unit.prefix_ids, unit.adapter))
        except OutOfBlocksError:
            for unit in taken:
                self.cache.release(unit)
            self._release_prefix(sequence)
            raise
        fresh = iter(taken)
        sequence.memory.restore(_with_encoded(sequence.memory.units, fresh))
        for check in sequence.policy.checks:
            check.snapshot = None if check.snapshot is None else _with_encoded(check.snapshot, fresh)

    def fork(self, source: Sequence, target: Sequence) -> None:
        """Gives `target`, whose memory is empty, the memory and the prefix of `source`."""
        target.schedule.prefix = source.schedule.prefix
        if target.schedule.prefix is not None:
            self.cache.share(target.schedule.prefix)
        target.memory.restore(source.memory.units)
        for unit in target.memory.units:
            self.cache.share(unit.encoded)
        target.sources.update(source.sources)
        target.neighbours = source.neighbours and source.neighbours.fork()

    def _held(self, sequence: Sequence) -> Iterator[EncodedUnit]:
        for unit in sequence.memory.units:
            yield unit.encoded
        for check in sequence.policy.checks:
            for unit in check.snapshot or ():
                yield unit.encoded

    def _release_pending(self, sequence: Sequence) -> None:
        for pending in sequence.schedule.pending_units:
            if pending.encoded is not None:
                self.cache.release(pending.encoded)
                pending.encoded = None

    def _release_prefix(self, sequence: Sequence) -> None:
        if sequence.schedule.prefix is not None:
            self.cache.release(sequence.schedule.prefix)
            sequence.schedule.prefix = None

    def _prepare(
        self, sequence: Sequence, hit: ScoredPassage, lane: Lane | None, required: bool = False
    ) -> PendingUnit | None:
        """The unit of a passage; None, with an event, for one that is left out, unless it is `required`."""
        passage = hit.passage
        weight = unit_weight(passage.veracity, self.config.veracity_weighting, self.config.veracity_power)
        assert self.unit_tokenizer is not None
        salt = sequence.request.original.salt
        salt = f"{salt}\0{hit.owner}" if hit.owner else salt  # what has an owner is shared with nobody else
        reason = "its veracity is 0"
        if weight is not None:
            tokenizer = self.unit_tokenizer.in_prompt if sequence.request.prefix_ids else self.unit_tokenizer
            try:
                return PendingUnit(passage, lane, weight, tokenizer.encode(passage), salt, hit.score)
            except InvalidRequestError as error:
                if required:
                    raise
                reason = str(error)
        sequence.record("skip", lane="copies" if lane is None else lane.value, id=passage.id, reason=reason)
        return None


def _with_encoded(units: tuple[MemoryUnit, ...], encoded: Iterator[EncodedUnit]) -> tuple[MemoryUnit, ...]:
    return tuple(replace(unit, encoded=next(encoded)) for unit in units)
