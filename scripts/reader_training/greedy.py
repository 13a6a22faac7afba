"""Greedy answers for many examples at once, units read in parallel or in the prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from transformers import DynamicCache

from reader_training.attention import block_mask
from reader_training.frames import Example
from reader_training.packing import Layout, Rows

_TOKENS_AT_ONCE = {"cuda": 400_000, "cpu": 12_000}


@torch.inference_mode()
def answers(
    model: nn.Module, examples: Sequence[Example], layout_of: Callable[[Example], Layout], end: int, tokens: int
) -> list[list[int]]:
    """Up to `tokens` greedy ids per example, without the id `end` that closes an answer.

    The examples' targets are left out. Examples of like lengths share a batch; what comes back is in their order.
    """
    device = next(model.parameters()).device
    layouts = [layout_of(replace(example, target=[])) for example in examples]
    order = sorted(range(len(layouts)), key=lambda number: len(layouts[number].ids))
    found: dict[int, list[int]] = {}
    while order:
        width = len(layouts[order[-1]].ids)
        size = max(1, _TOKENS_AT_ONCE[device.type] // (width + tokens))
        batch, order = order[-size:], order[:-size]
        made = _batch(model, [layouts[number] for number in batch], end, tokens, device)
        found.update(zip(batch, made, strict=True))
    return [found[number] for number in range(len(examples))]


def _batch(model: nn.Module, layouts: Sequence[Layout], end: int, tokens: int, device: torch.device) -> list[list[int]]:
    rows = Rows(len(layouts), max(len(layout.ids) for layout in layouts))
    for row, layout in enumerate(layouts):
        rows.place(row, layout)
    packed = rows.packed().to(device)
    lengths = torch.tensor([len(layout.ids) for layout in layouts], device=device)
    cache = DynamicCache()
    last = _step(model, cache, packed.ids, packed.positions, block_mask(packed), lengths - 1)
    seen = packed.owners >= 0
    position = packed.positions.gather(1, (lengths - 1)[:, None])
    made: list[Tensor] = []
    done = torch.zeros(len(layouts), dtype=torch.bool, device=device)
    for _ in range(tokens):
        made.append(torch.where(done, end, last))
        done |= last == end
        if done.all():
            break
        position = position + 1
        seen = torch.cat((seen, seen.new_ones(len(layouts), 1)), 1)
        last = _step(model, cache, made[-1][:, None], position, seen[:, None, None], torch.zeros_like(lengths))
    lists = torch.stack(made, 1).tolist()
    return [ids[: ids.index(end)] if end in ids else ids for ids in lists]


def _step(model: nn.Module, cache: DynamicCache, ids: Tensor, positions: Tensor, mask: Tensor, at: Tensor) -> Tensor:
    """The most probable next token [rows] after the place `at` [rows] of each row."""
    output = model.get_decoder()(
        input_ids=ids, position_ids=positions, attention_mask=mask, past_key_values=cache, use_cache=True
    )
    hidden = output.last_hidden_state[torch.arange(len(ids), device=ids.device), at]
    next_ids: Tensor = model.get_output_embeddings()(hidden).argmax(-1)
    return next_ids
