"""A model with a pool of its own, for the parity tests: rows are made, run, and their logits come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from ewe.engine.attention.probe import attention_layers
from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.kvcache.block_table import BlockTable
from ewe.engine.kvcache.pool import KVPool
from ewe.engine.model_executor.model_runner import ForwardResult, ForwardRow, ModelRunner, layer_shapes
from ewe.engine.model_executor.token_states import token_states


@dataclass
class Context:
    """One sequence: its table, its first position, the units that it sees, and the prefix that they follow."""

    table: BlockTable
    start: int = 0
    units: tuple[BlockTable, ...] = ()
    weights: tuple[float, ...] = ()
    prefix: BlockTable | None = None


class PagedModel:
    """Rows in, logits out."""

    def __init__(
        self,
        model: Any,
        merge: str = "paper",
        attribution: bool = False,
        block_size: int = 4,
        cache_dtype: torch.dtype | None = None,
        keeps: Literal["hidden", "queries"] | None = None,
    ) -> None:
        shapes = layer_shapes(model)
        kept = None if keeps is None else token_states(keeps, model, attention_layers(model))
        self.manager = BlockManager(400, block_size)
        self.pool = KVPool(shapes, 400, block_size, cache_dtype or model.dtype, model.device, kept)
        self.runner = ModelRunner(model, self.pool, merge, attribution)

    def context(
        self,
        start: int = 0,
        units: Sequence[BlockTable] = (),
        weights: Sequence[float] = (),
        prefix: BlockTable | None = None,
    ) -> Context:
        return Context(BlockTable(self.manager), start, tuple(units), tuple(weights or [1.0] * len(units)), prefix)

    def row(self, context: Context, tokens: Sequence[int], **flags: bool) -> ForwardRow:
        """The row that runs `tokens` at the end of the context."""
        position = context.start + context.table.length
        context.table.extend(len(tokens))
        slots = tuple(unit.slots() for unit in context.units)
        prefix = None if context.prefix is None else context.prefix.slots()
        own = context.table.slots()
        return ForwardRow(list(tokens), position, own, slots, context.weights, prefix_slots=prefix, **flags)

    def run(self, *rows: ForwardRow) -> ForwardResult:
        return self.runner.forward(rows)

    def logits(self, context: Context, tokens: Sequence[int]) -> torch.Tensor:
        """[tokens, vocab] of one context's next tokens."""
        return self.run(self.row(context, tokens, all_logits=True)).logits

    def encode(self, units: Sequence[Sequence[int]], prefix: BlockTable | None = None) -> list[BlockTable]:
        """All units in one packed pass, each after the prefix."""
        start = 0 if prefix is None else prefix.length
        contexts = [self.context(start, prefix=prefix) for _ in units]
        rows = [self.row(item, tokens, wants_logits=False) for item, tokens in zip(contexts, units, strict=True)]
        if rows:
            assert self.run(*rows).logits.shape[0] == 0
        return [item.table for item in contexts]
