"""Attention in plain torch: right everywhere, fast on CPUs.

Owns: gathering keys and values by slot, the masks, and the call of torch's fused attention. Knows the flat batch; knows
nothing of transformers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from ewe.attention.metadata import FlatBatch, PlacedRow


@dataclass(frozen=True, slots=True)
class DecodeGroup:
    """Rows begin..end of one token each, gathered together, padded to the longest of them.

    slots: int64 [rows * keys]; bias: float32 [rows, 1, 1, keys], or None if no logit is biased or padded.
    segments: int64 [rows, keys], the segment of each key (-1: padding), only for attribution.
    """

    begin: int
    end: int
    slots: torch.Tensor
    bias: torch.Tensor | None
    indices: torch.Tensor | None
    segments: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class PrefillRow:
    """One row of several tokens begin..end.

    slots: int64 [keys], or None where the row's own new keys are all it sees; bias: float32 [tokens, keys], or None for
    plain causal attention.
    """

    begin: int
    end: int
    slots: torch.Tensor | None
    bias: torch.Tensor | None
    index: int
    segments: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class TorchPlan:
    """One step's work for layers with one sliding window."""

    decodes: list[DecodeGroup]
    prefills: list[PrefillRow]


class TorchBackend:
    """The backend for CPUs, and the fallback elsewhere."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def plan(self, batch: FlatBatch, window: int | None, attribution: bool) -> TorchPlan:
        """See AttentionBackend.plan."""
        singles, longer = batch.rows[: batch.num_single], batch.rows[batch.num_single :]
        decodes = [self._decode_group(singles, window, attribution)] if singles else []
        return TorchPlan(decodes, [self._prefill_row(item, window, attribution) for item in longer])

    def attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        pool_key: torch.Tensor,
        pool_value: torch.Tensor,
        plan: TorchPlan,
        scale: float,
        softcap: float | None,
    ) -> torch.Tensor:
        """See AttentionBackend.attend."""
        parts = [_decode(query, pool_key, pool_value, group, scale, softcap) for group in plan.decodes]
        parts += [_prefill(query, key, value, pool_key, pool_value, row, scale, softcap) for row in plan.prefills]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def shares(
        self,
        query: torch.Tensor,
        pool_key: torch.Tensor,
        plan: TorchPlan,
        scale: float,
        softcap: float | None,
        into: torch.Tensor,
    ) -> None:
        """See AttentionBackend.shares."""
        raise NotImplementedError

    def _decode_group(self, rows: list[PlacedRow], window: int | None, attribution: bool) -> DecodeGroup:
        num_keys = max(item.num_keys(window) for item in rows)
        slots = np.zeros((len(rows), num_keys), np.int64)
        bias = np.full((len(rows), num_keys), -np.inf, np.float32)
        for number, item in enumerate(rows):
            begin = 0
            for segment, segment_bias in zip(
                item.segments(window), [*item.unit_biases, item.context_bias], strict=True
            ):
                end = begin + len(segment)
                slots[number, begin:end] = segment
                bias[number, begin:end] = segment_bias
                begin = end
        return DecodeGroup(
            rows[0].begin,
            rows[-1].end,
            torch.from_numpy(slots.ravel()).to(self.device),
            torch.from_numpy(bias[:, None, None]).to(self.device) if bias.any() else None,
            None,
            None,
        )

    def _prefill_row(self, item: PlacedRow, window: int | None, attribution: bool) -> PrefillRow:
        fresh = not item.row.unit_slots and len(item.row.context_slots) == item.num_new
        if fresh and (window is None or item.num_new <= window):
            return PrefillRow(item.begin, item.end, None, None, item.index, None)
        segments = item.segments(window)
        slots = None if fresh else torch.from_numpy(np.concatenate(segments)).to(self.device)
        return PrefillRow(item.begin, item.end, slots, self._prefill_bias(item, window), item.index, None)

    def _prefill_bias(self, item: PlacedRow, window: int | None) -> torch.Tensor:
        *units, context = map(len, item.segments(window))
        query = torch.arange(item.num_new, device=self.device)[:, None] + (context - item.num_new)
        behind = query - torch.arange(context, device=self.device)
        hidden = behind < 0 if window is None else (behind < 0) | (behind >= window)
        context_bias = torch.zeros_like(behind, dtype=torch.float32).add_(item.context_bias)
        context_bias.masked_fill_(hidden, -torch.inf)
        unit_bias = torch.tensor(item.unit_biases, dtype=torch.float32, device=self.device)
        unit_bias = unit_bias.repeat_interleave(torch.tensor(units, device=self.device, dtype=torch.int64))
        return torch.cat([unit_bias.expand(item.num_new, -1), context_bias], dim=1)


def _decode(
    query: torch.Tensor,
    pool_key: torch.Tensor,
    pool_value: torch.Tensor,
    group: DecodeGroup,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """[rows, Hq, Dv]; the query heads that share a key head become the query length, so nothing is repeated."""
    rows, kv_heads = group.end - group.begin, pool_key.shape[1]
    grouped = query[:, group.begin : group.end].transpose(0, 1).reshape(rows, kv_heads, -1, query.shape[-1])
    key = pool_key.index_select(0, group.slots).view(rows, -1, kv_heads, pool_key.shape[-1]).transpose(1, 2)
    value = pool_value.index_select(0, group.slots).view(rows, -1, kv_heads, pool_value.shape[-1]).transpose(1, 2)
    return _attention(grouped, key, value, group.bias, False, scale, softcap).reshape(rows, query.shape[0], -1)


def _prefill(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    pool_key: torch.Tensor,
    pool_value: torch.Tensor,
    row: PrefillRow,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """[tokens, Hq, Dv]; key heads are the batch, the query heads of each share it by a view."""
    kv_heads = pool_key.shape[1]
    groups = query.shape[0] // kv_heads
    if row.slots is None:
        keys, values = key[:, row.begin : row.end], value[:, row.begin : row.end]
    else:
        keys = pool_key.index_select(0, row.slots).transpose(0, 1)
        values = pool_value.index_select(0, row.slots).transpose(0, 1)
    grouped = query[:, row.begin : row.end].view(kv_heads, groups, -1, query.shape[-1])
    keys = keys.unsqueeze(1).expand(-1, groups, -1, -1)
    values = values.unsqueeze(1).expand(-1, groups, -1, -1)
    output = _attention(grouped, keys, values, row.bias, row.bias is None, scale, softcap)
    return output.flatten(0, 1).transpose(0, 1)


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor | None,
    causal: bool,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """[N, H, Tq, Dv] of query [N, H, Tq, Dk], key [N, H, L, Dk], value [N, H, L, Dv]; bias float32, broadcast."""
    if softcap is None:
        return scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=causal, scale=scale)
    logits = attention_logits(query, key, bias, causal, scale, softcap)
    return (logits.softmax(-1) @ value.float()).to(query.dtype)


def attention_logits(
    query: torch.Tensor,
    key: torch.Tensor,
    bias: torch.Tensor | None,
    causal: bool,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """Biased logits, float32 [N, H, Tq, L]."""
    logits = (query.float() * scale) @ key.float().transpose(-1, -2)
    if softcap is not None:
        logits = torch.tanh(logits / softcap) * softcap
    if causal:
        hidden = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).triu(1)
        logits = logits.masked_fill(hidden, -torch.inf)
    return logits if bias is None else logits + bias
