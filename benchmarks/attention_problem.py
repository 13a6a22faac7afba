"""A batch of rows, each with k units of M tokens and a context of L tokens, over several layers' keys and values.

Enough layers take turns that none finds its keys in the cache, as in a model, and blocks lie in no order in the pool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch

from ewe.engine.attention.backend import LayerCall
from ewe.engine.attention.choose import choose_backend
from ewe.engine.attention.metadata import ForwardRow, IntArray, place_rows
from ewe.engine.attention.packed import Packed
from ewe.engine.kvcache.fp8 import FP8, quantise
from ewe.engine.kvcache.pool import KVPool, LayerShape

BLOCK = 16
# Several times the largest cache of a GPU.
_TURN_BYTES = 256 << 20
_LEAST_LAYERS, _MOST_LAYERS = 4, 16

Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Shape:
    """One layer of a model: query heads, key heads, their width, the precision and the device."""

    heads: int
    kv_heads: int
    dim: int
    dtype: torch.dtype
    device: torch.device


class Problem:
    """batch rows; units, unit_tokens, context: k, M and L, multiples of BLOCK; shared: one memory for all rows."""

    def __init__(
        self, shape: Shape, batch: int, units: int, unit_tokens: int, context: int, shared: bool = False
    ) -> None:
        if unit_tokens % BLOCK or context % BLOCK:
            raise ValueError(f"lengths must be multiples of {BLOCK} tokens")
        self.heads, self.kv_heads, self.dim = shape.heads, shape.kv_heads, shape.dim
        self.dtype, self.device, self.batch, self.shared = shape.dtype, shape.device, batch, shared
        memories = 1 if shared else batch
        num_blocks = (memories * units * unit_tokens + batch * context) // BLOCK
        self._blocks = iter(np.random.default_rng(0).permutation(num_blocks) + 1)
        memory = self._memory(units, unit_tokens)
        self.rows: list[ForwardRow] = []
        for number in range(batch):
            if number and not shared:
                memory = self._memory(units, unit_tokens)
            self.rows.append(ForwardRow([0], 0, self._take(context), memory, (1.0,) * units))
        self.keys_per_row = units * unit_tokens + context
        one = [LayerShape(shape.kv_heads, shape.dim, shape.dim)]
        per_layer = KVPool.bytes_per_block(one, BLOCK, shape.dtype) * num_blocks
        turns = min(max(-(-_TURN_BYTES // per_layer), _LEAST_LAYERS), _MOST_LAYERS)
        if shape.device.type != "cuda":
            turns = 1
        self.pool = KVPool(one * turns, num_blocks + 1, BLOCK, shape.dtype, shape.device)
        for tensor in (*self.pool.keys, *self.pool.values):
            tensor.normal_()
        self.query = torch.randn(batch, shape.heads, shape.dim, dtype=shape.dtype, device=shape.device)

    @property
    def num_bytes(self) -> int:
        """Bytes of keys and values that the rows attend to, in one layer, each row's own counted apart."""
        return 2 * self.batch * self.keys_per_row * self.kv_heads * self.dim * self.dtype.itemsize

    @property
    def distinct_bytes(self) -> int:
        """The same, with what all rows share counted once."""
        row, *others = self.rows
        again = len(others) * sum(map(len, row.unit_slots)) if self.shared else 0
        return self.num_bytes * (self.batch * self.keys_per_row - again) // (self.batch * self.keys_per_row)

    def engine(self) -> list[Callable[[], object]]:
        """The engine's attention, one call per layer."""
        return self._calls(self.rows, self.pool)

    def in_fp8(self) -> list[Callable[[], object]]:
        """The same over the same keys and values in e4m3."""
        pool = KVPool(self.pool.layer_shapes, self.pool.num_blocks, BLOCK, FP8, self.device)
        for exact, kept, scales in (
            *zip(self.pool.keys, pool.keys, pool.key_scales, strict=True),
            *zip(self.pool.values, pool.values, pool.value_scales, strict=True),
        ):
            codes, sizes = quantise(exact)
            kept.copy_(codes)
            assert scales is not None
            scales.copy_(sizes)
        return self._calls(self.rows, pool)

    def literal(self) -> list[Callable[[], object]]:
        """Eq. 1 of the EWE paper as written: k + 1 attentions per row, whose average is left out of the account."""
        rows = []
        for row in self.rows:
            parts = [np.concatenate([unit, row.context_slots]) for unit in row.unit_slots]
            rows += [ForwardRow([0], 0, slots) for slots in (*parts, row.context_slots)]
        return self._calls(rows, self.pool)

    def dense(self) -> list[Triple]:
        """Per layer the query [B, Hq, 1, D] and every row's keys and values [B, Hkv, keys, D], gathered."""
        slots = torch.from_numpy(np.stack([_slots(row) for row in self.rows])).to(self.device)
        query = self.query.unsqueeze(2)
        return [
            (query, *(tensor[slots].transpose(1, 2).contiguous() for tensor in layer))  # type: ignore[misc]
            for layer in zip(self.pool.keys, self.pool.values, strict=True)
        ]

    def biases(self) -> torch.Tensor:
        """Float32 [B, keys]: what eq. 1 adds to each logit, in the order of `dense`."""
        placed = place_rows(self.rows, "paper", keep_order=True).rows
        rows = [
            np.repeat(
                [*item.memory_biases, item.context_bias], [*map(len, item.row.unit_slots), len(item.row.context_slots)]
            )
            for item in placed
        ]
        return torch.from_numpy(np.stack(rows).astype(np.float32)).to(self.device)

    def paged(self) -> list[tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]]:
        """Per layer the query [B, Hq, D] and the pool as pages [pages, BLOCK, Hkv, D] of keys and of values."""
        shape = (-1, BLOCK, self.kv_heads, self.dim)
        layers = zip(self.pool.keys, self.pool.values, strict=True)
        return [(self.query, (key.view(shape), value.view(shape))) for key, value in layers]

    def pages(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The pages of all rows, and where each row's begin (int32)."""
        return self._pages([_slots(row) for row in self.rows])

    def shared_pages(self) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
        """The same of the memory, which all rows share, and of the contexts."""
        memory = np.concatenate(self.rows[0].unit_slots)
        return self._pages([memory]), self._pages([row.context_slots for row in self.rows])

    def _pages(self, segments: list[IntArray]) -> tuple[torch.Tensor, torch.Tensor]:
        pages = [slots[::BLOCK] // BLOCK for slots in segments]
        begins = np.cumsum([0, *map(len, pages)])
        index, indptr = (torch.from_numpy(item.astype(np.int32)) for item in (np.concatenate(pages), begins))
        return index.to(self.device), indptr.to(self.device)

    def _calls(self, rows: list[ForwardRow], pool: KVPool) -> list[Callable[[], object]]:
        backend = choose_backend(self.device, pool)
        plan = _plan(backend, rows, pool)
        query = self.query.repeat(len(rows) // self.batch, 1, 1).transpose(0, 1)
        new = query[: self.kv_heads]
        calls = (
            LayerCall(query, new, new, key, value, self.dim**-0.5, None, key_scales, value_scales)
            for key, value, key_scales, value_scales in zip(
                pool.keys, pool.values, pool.key_scales, pool.value_scales, strict=True
            )
        )
        return [partial(backend.attend, call, plan) for call in calls]

    def _memory(self, units: int, unit_tokens: int) -> tuple[IntArray, ...]:
        return tuple(self._take(unit_tokens) for _ in range(units))

    def _take(self, length: int) -> IntArray:
        blocks = np.array(list(islice(self._blocks, length // BLOCK)), np.int64)
        return (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()


def prefill(
    shape: Shape, runs: int, tokens: int, units: int, unit_tokens: int
) -> tuple[Callable[[], object], LayerCall, float]:
    """Runs of so many tokens under k units in one call, what it is over, and its floating-point operations."""
    size = runs * tokens + units * unit_tokens
    pool = KVPool(
        [LayerShape(shape.kv_heads, shape.dim, shape.dim)], size // BLOCK + 1, BLOCK, shape.dtype, shape.device
    )
    for tensor in (*pool.keys, *pool.values):
        tensor.normal_()
    slots = np.arange(BLOCK, BLOCK + size)
    memory = [slots[number * unit_tokens : (number + 1) * unit_tokens] for number in range(units)]
    contexts = np.split(slots[units * unit_tokens :], runs)
    rows = [ForwardRow([0] * tokens, 0, context, tuple(memory), (1.0,) * units) for context in contexts]
    backend = choose_backend(shape.device, pool)
    query = torch.randn(shape.heads, runs * tokens, shape.dim, dtype=shape.dtype, device=shape.device)
    new = torch.from_numpy(slots[units * unit_tokens :]).to(shape.device)
    key, value = (tensor[0][new].transpose(0, 1) for tensor in (pool.keys, pool.values))
    call = LayerCall(query, key, value, pool.keys[0], pool.values[0], shape.dim**-0.5, None)
    # Two products of two operations each, over every pair of a token and a key that it sees.
    pairs = runs * tokens * (units * unit_tokens + (tokens + 1) / 2)
    attend = partial(backend.attend, call, backend.plan(place_rows(rows, "paper"), None, False))
    return attend, call, 4 * shape.heads * shape.dim * pairs


def _plan(backend: Any, rows: list[ForwardRow], pool: KVPool) -> Any:
    """As the engine plans a step: on a GPU over tensors of fixed sizes, where they have room."""
    batch = place_rows(rows, "paper", keep_order=True)
    if pool.device.type == "cuda" and hasattr(backend, "arrange"):
        from ewe.engine.attention.static_plan import PlanSizes

        sizes = PlanSizes.of(len(rows), len(rows[0].unit_slots), backend.target_pieces, pool.num_blocks)
        arranged = backend.arrange(batch, None, sizes.states)
        if sizes.hold(arranged):
            packed = Packed(sizes.layout(), pool.device)
            sizes.fill(packed.host, arranged, len(rows))
            packed.upload()
            return sizes.plan(packed.device, None)
    return backend.plan(batch, None, False)


def _slots(row: ForwardRow) -> IntArray:
    return np.concatenate([*row.unit_slots, row.context_slots])
