"""What core, scheduler and memory manager hold for one sequence: its place, its blocks, its units on their way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ewe.engine.evidence.sentence_checks import fields_of
from ewe.engine.kvcache.pool import HostBlocks
from ewe.engine.sampling.sampler import PlaceholderToken
from ewe.engine.units.unit_cache import EncodedUnit
from ewe.engine.units.unit_text import UnitText
from ewe.types import Lane, Passage


@dataclass(frozen=True, slots=True)
class SwappedContext:
    """A context's KV in host memory, and how many tokens it holds."""

    blocks: HostBlocks
    length: int


@dataclass(slots=True, eq=False)
class PendingUnit:
    """A passage on its way into memory; `encoded` holds a reference once its blocks are allocated.

    salt: units of different salts are not shared, though their contents are the same. lane: None for a passage that
    is to be copied from. score: its passage's, by the retriever that found it.
    """

    passage: Passage
    lane: Lane | None
    weight: float
    unit_text: UnitText
    salt: str
    score: float = 0.0
    encoded: EncodedUnit | None = None
    was_cached: bool = False

    def is_new_to(self, others: Iterable[PendingUnit]) -> bool:
        """Whether none of the others holds the same."""
        return all(self.unit_text.token_ids != other.unit_text.token_ids for other in others)

    def described(self, unit_id: int) -> dict[str, object]:
        """What the trace tells when it becomes this unit of a memory."""
        assert self.lane is not None
        return {
            "lane": self.lane.value,
            "unit_id": unit_id,
            "passage": fields_of(self.passage, "id", "title", "text", "source", "veracity"),
            "weight": self.weight,
            "num_tokens": len(self.unit_text.token_ids),
            "cached": self.was_cached,
            "loaded": self.encoded is not None and self.encoded.was_loaded and not self.was_cached,
            "was_cut": self.unit_text.was_cut,
        }


@dataclass(slots=True, eq=False)
class ScheduleState:
    """What core, scheduler and memory manager hold for one sequence.

    is_started: its first retrieval may be under way; is_admitted: it has had blocks; swapped: its context, while that
    is in host memory. prefix: the KV of the prompt up to its memory, held while it is admitted and not swapped out.
    placeholder: the token after the text's last, while its pass is under way (`InflightBatch`). queued_s: seconds until
    the first work was done for it.
    """

    is_started: bool = False
    is_admitted: bool = False
    swapped: SwappedContext | None = None
    prefix: EncodedUnit | None = None
    pending_units: list[PendingUnit] = field(default_factory=list)
    placeholder: PlaceholderToken | None = None
    queued_s: float = 0.0
