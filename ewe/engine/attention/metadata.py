"""What one forward pass holds: rows of many sequences laid out as one flat run of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ewe.engine.attention.merge import Merge, merge_biases

# Distinct weights of memories whose biases are remembered.
_MOST_BIASES = 1024

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]


# Rows and what they are made of are not to be changed, but not frozen either: some are made for every row of every
# step, and a frozen one takes three times as long to make.


@dataclass(slots=True, eq=False)
class TokenOnDevice:
    """ids[index] is the token; ids: int64 [tokens drawn together], on the device of the model."""

    ids: Tensor
    index: int


@dataclass(slots=True)
class ForwardRow:
    """Tokens of one sequence (or of one unit) to run now, and everything that they attend to.

    start_position: rotary position of the first token. context_slots: int64 [context length]; this row's own tokens are
    its last len(token_ids). unit_slots: int64 [unit length] per unit; unit_weights: one positive number per unit.
    prefix_slots: int64 [prefix length], what the units were encoded after; None where they are bare.
    wants_logits: False for unit encoding and unfinished prefill chunks; all_logits: at every token instead of the last.
    placeholder: where the last token is, if the host does not know it yet; token_ids then holds any id in its place.
    adapter: the name of the LoRA adapter that its tokens are computed with; empty for none.
    """

    token_ids: Sequence[int]
    start_position: int
    context_slots: IntArray
    unit_slots: tuple[IntArray, ...] = ()
    unit_weights: tuple[float, ...] = ()
    wants_logits: bool = True
    all_logits: bool = False
    placeholder: TokenOnDevice | None = None
    prefix_slots: IntArray | None = None
    adapter: str = ""

    @property
    def memory_slots(self) -> tuple[IntArray, ...]:
        """All that the row sees beside its own context: the prefix, if there is one, and the units."""
        return self.unit_slots if self.prefix_slots is None else (self.prefix_slots, *self.unit_slots)


@dataclass(slots=True)
class PlacedRow:
    """A row at its place in the flat batch: tokens begin..end (exclusive), and the biases of its segments (nats).

    index: the row's place in the caller's order. memory_biases: one per `memory_slots`; a prefix has the context's.
    """

    row: ForwardRow
    index: int
    begin: int
    end: int
    memory_biases: list[float]
    context_bias: float

    @property
    def num_new(self) -> int:
        """Tokens that run now."""
        return self.end - self.begin

    def segments(self, window: int | None) -> list[IntArray]:
        """Slots of the memory, then of the part of the context that any of the row's tokens may see under `window`."""
        context = self.row.context_slots
        if window is not None:
            context = context[max(0, len(context) - self.num_new - window + 1) :]
        return [*self.row.memory_slots, context]

    def num_keys(self, window: int | None) -> int:
        """Total length of `segments(window)`."""
        context = len(self.row.context_slots)
        if window is not None:
            context = min(context, window + self.num_new - 1)
        return sum(map(len, self.row.memory_slots)) + context


@dataclass(frozen=True, slots=True)
class FlatBatch:
    """All rows of one step in flat order: rows of a single token first, by rising length, then the longer ones.

    num_single: rows (= tokens) of the first kind. token_ids, positions, write_slots: int64 [num_tokens]; write_slots is
    where each token's key and value go. logit_tokens: int64, the flat tokens whose logits are wanted, in the order of
    the caller's rows.
    """

    rows: list[PlacedRow]
    num_single: int
    token_ids: IntArray
    positions: IntArray
    write_slots: IntArray
    logit_tokens: IntArray


def place_rows(rows: Sequence[ForwardRow], merge: Merge, keep_order: bool = False) -> FlatBatch:
    """Lays rows out flat; raises ValueError for a row without tokens, or with fewer context slots than tokens.

    keep_order: for rows of a single token each, whose order then stays the caller's.
    """
    order: Sequence[int] = range(len(rows))
    if not keep_order:
        order = sorted(order, key=lambda index: _sort_key(rows[index]))
    placed: list[PlacedRow] = []
    counts: list[int] = []
    begin = 0
    for index in order:
        row = rows[index]
        count, weights = len(row.token_ids), row.unit_weights
        if not 0 < count <= len(row.context_slots):
            raise ValueError(f"row {index}: {count} tokens to run, {len(row.context_slots)} context slots")
        if len(row.unit_slots) != len(weights):
            raise ValueError(f"row {index}: {len(row.unit_slots)} units, {len(weights)} weights")
        memory_biases, context_bias = _biases(weights, row.prefix_slots is not None, merge)
        end = begin + count
        placed.append(PlacedRow(row, index, begin, end, memory_biases, context_bias))
        counts.append(count)
        begin = end
    ordered = [item.row for item in placed]
    shifts = [item.row.start_position - item.begin for item in placed]
    return FlatBatch(
        rows=placed,
        num_single=counts.count(1),
        token_ids=np.fromiter(chain.from_iterable([row.token_ids for row in ordered]), np.int64, begin),
        positions=np.repeat(shifts, counts) + np.arange(begin),
        write_slots=_write_slots(ordered, counts),
        logit_tokens=_logit_tokens(placed, keep_order),
    )


def _write_slots(rows: Sequence[ForwardRow], counts: Sequence[int]) -> IntArray:
    if max(counts) == 1:
        return np.array([row.context_slots.item(-1) for row in rows], np.int64)
    return np.concatenate([row.context_slots[-count:] for row, count in zip(rows, counts, strict=True)])


@lru_cache(_MOST_BIASES)
def _biases(unit_weights: tuple[float, ...], in_prompt: bool, merge: Merge) -> tuple[list[float], float]:
    """The biases of the memory and of the context: of equal weights the same objects."""
    units, context = merge_biases(unit_weights, merge, in_prompt)
    return [context, *units] if in_prompt else units, context


def _sort_key(row: ForwardRow) -> tuple[bool, int]:
    if len(row.token_ids) > 1:
        return True, 0
    return False, len(row.context_slots) + sum(map(len, row.memory_slots))


def _logit_tokens(placed: Sequence[PlacedRow], keeps_order: bool) -> IntArray:
    in_order = placed if keeps_order else sorted(placed, key=attrgetter("index"))
    tokens = [
        range(item.begin if item.row.all_logits else item.end - 1, item.end)
        for item in in_order
        if item.row.wants_logits or item.row.all_logits
    ]
    return np.fromiter(chain.from_iterable(tokens), np.int64)
