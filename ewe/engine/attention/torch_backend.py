"""Attention in plain torch: right everywhere, fast on CPUs."""

from dataclasses import replace

import torch
from torch.nn.functional import scaled_dot_product_attention

from ewe.engine.attention.attribution import segment_lse, segment_shares
from ewe.engine.attention.backend import LayerCall
from ewe.engine.attention.metadata import FlatBatch
from ewe.engine.attention.torch_plan import DecodeGroup, PrefillRow, SharedUnits, TorchPlan, make_plan
from ewe.engine.kvcache.fp8 import FP8, dequantise, quantise

# What a decode group gathers on a CPU is read at once: it should still lie in the second cache, of any processor.
_GROUP_BYTES = 1024 * 1024
# Attribution holds the logits of this many tokens of a row at a time.
_SHARE_TOKENS = 256


class TorchBackend:
    """The backend for CPUs, and the fallback elsewhere; slot_bytes: key and value bytes of one slot in one layer.

    scaled: whether the pool is in fp8.
    """

    def __init__(self, device: torch.device, slot_bytes: int, scaled: bool = False) -> None:
        self._device, self._scaled = device, scaled
        self._most_slots = _GROUP_BYTES // slot_bytes if device.type == "cpu" else None
        self._buffers: dict[tuple[str, torch.Size], torch.Tensor] = {}

    def plan(self, batch: FlatBatch, window: int | None, attribution: bool) -> TorchPlan:
        """See AttentionBackend.plan."""
        return make_plan(batch, window, attribution, self._device, self._most_slots, self._scaled)

    def write(self, call: LayerCall, slots: torch.Tensor) -> None:
        """See AttentionBackend.write."""
        _write(call.key, slots, call.pool_key, call.key_scales)
        _write(call.value, slots, call.pool_value, call.value_scales)

    def attend(self, call: LayerCall, plan: TorchPlan) -> torch.Tensor:
        """See AttentionBackend.attend."""
        if plan.order is not None:
            call = replace(call, query=call.query.index_select(1, plan.order))
        parts = [self._decode(call, group) for group in plan.decodes]
        parts += [self._prefill(call, row) for row in plan.prefills]
        output = parts[0] if len(parts) == 1 else torch.cat(parts)
        return output if plan.back is None else output.index_select(0, plan.back)

    def shares(self, call: LayerCall, plan: TorchPlan, into: torch.Tensor) -> None:
        """See AttentionBackend.shares."""
        for group in plan.decodes:
            assert group.segments is not None
            logits = _logits(call, _group_queries(call, group), self._group_keys(call, group, "k"))
            shares = segment_shares(segment_lse(_biased(logits, group.bias), group.segments, group.num_segments))
            into[:, : group.num_segments].index_add_(0, group.indices, shares.mean((1, 2)))
        for row in plan.prefills:
            if row.segments is None:
                into[row.index, 0] += 1.0
            else:
                into[row.index, : row.num_segments] += self._row_shares(call, row)

    def _decode(self, call: LayerCall, group: DecodeGroup) -> torch.Tensor:
        """[rows, Hq, Dv]; the query heads that share a key head become the query length, so nothing is repeated."""
        if group.units is not None:
            return self._decode_sharing(call, group, group.units)
        keys, values = self._group_keys(call, group, "k"), self._group_keys(call, group, "v")
        output = _attention(call, _group_queries(call, group), keys, values, group.bias)
        return output.reshape(len(output), call.query.shape[0], -1)

    def _decode_sharing(self, call: LayerCall, group: DecodeGroup, units: SharedUnits) -> torch.Tensor:
        """[rows, Hq, Dv]; the units are gathered once, and the queries of all rows see them together."""
        queries = _group_queries(call, group)
        together = queries.transpose(0, 1)  # [Hkv, rows, Hq / Hkv, Dk]
        shape = together.shape[:3]
        # A gather ends the life of the one before.
        unit_logits = _logits(call, together.flatten(1, 2), self._gather(call, units.slots, "k").transpose(0, 1))
        context_logits = _biased(_logits(call, queries, self._group_keys(call, group, "k")), group.bias)
        logits = [_biased(unit_logits.view(*shape, -1), units.bias), context_logits.transpose(0, 1)]
        lengths = [len(units.slots), context_logits.shape[-1]]
        of_units, of_context = torch.split(torch.cat(logits, -1).softmax(-1), lengths, -1)
        values = self._gather(call, units.slots, "v").transpose(0, 1).float()
        output: torch.Tensor = (of_units.flatten(1, 2) @ values).view(*shape, -1).transpose(0, 1)
        output = output + of_context.transpose(0, 1) @ self._group_keys(call, group, "v").float()
        return output.reshape(shape[1], call.query.shape[0], -1).to(call.query.dtype)

    def _prefill(self, call: LayerCall, row: PrefillRow) -> torch.Tensor:
        """[tokens, Hq, Dv]; key heads are the batch, and the query heads of each see its keys through a view."""
        if row.slots is None:
            keys, values = call.key[:, row.begin : row.end], call.value[:, row.begin : row.end]
        else:
            keys = self._gather(call, row.slots, "k").transpose(0, 1)
            values = self._gather(call, row.slots, "v").transpose(0, 1)
        queries = _row_queries(call, row)
        shared = (-1, queries.shape[1], -1, -1)
        keys, values = keys.unsqueeze(1).expand(shared), values.unsqueeze(1).expand(shared)
        output = _attention(call, queries, keys, values, row.bias, causal=row.bias is None)
        return output.permute(2, 0, 1, 3).flatten(1, 2)

    def _row_shares(self, call: LayerCall, row: PrefillRow) -> torch.Tensor:
        """[segments], mean over the row's tokens and all heads."""
        assert row.slots is not None
        assert row.bias is not None
        assert row.segments is not None
        keys = self._gather(call, row.slots, "k").transpose(0, 1).unsqueeze(1)
        total = torch.zeros(row.num_segments, device=self._device)
        queries = _row_queries(call, row)
        for start in range(0, row.end - row.begin, _SHARE_TOKENS):
            part = slice(start, start + _SHARE_TOKENS)
            logits = _biased(_logits(call, queries[:, :, part], keys), row.bias[part])
            lse = segment_lse(logits, row.segments, row.num_segments)
            total += segment_shares(lse).mean((0, 1)).sum(0)
        return total / (row.end - row.begin)

    def _group_keys(self, call: LayerCall, group: DecodeGroup, kind: str) -> torch.Tensor:
        """[rows, Hkv, keys, D], the group's keys ("k") or values ("v")."""
        gathered = self._gather(call, group.slots, kind)
        return gathered.view(group.end - group.begin, -1, *gathered.shape[1:]).transpose(1, 2)

    def _gather(self, call: LayerCall, slots: torch.Tensor, kind: str) -> torch.Tensor:
        """[slots, Hkv, D], valid until the next gather of this kind; from fp8 in the query's precision."""
        pool, scales = (call.pool_key, call.key_scales) if kind == "k" else (call.pool_value, call.value_scales)
        if scales is None:
            return self._select(pool, slots, kind)
        codes = self._select(pool.view(torch.uint8), slots, kind).view(FP8)
        return dequantise(codes, scales.index_select(0, slots), call.query.dtype)

    def _select(self, pool: torch.Tensor, slots: torch.Tensor, kind: str) -> torch.Tensor:
        """The slots of the pool; on a CPU in a buffer that is kept.

        Fresh memory costs more in page faults than the gather itself.
        """
        if self._device.type != "cpu":
            return pool.index_select(0, slots)
        name = (kind, pool.shape[1:])
        buffer = self._buffers.get(name)
        if buffer is None or buffer.shape[0] < slots.shape[0]:
            self._buffers[name] = buffer = pool.new_empty(slots.shape[0] * 5 // 4 + 64, *pool.shape[1:])
        return torch.index_select(pool, 0, slots, out=buffer[: slots.shape[0]])


def _write(states: torch.Tensor, slots: torch.Tensor, pool: torch.Tensor, scales: torch.Tensor | None) -> None:
    """Brings states [Hkv, T, D] to their slots of the pool."""
    states = states.transpose(0, 1)
    if scales is None:
        pool.index_copy_(0, slots, states)
        return
    codes, new_scales = quantise(states)
    pool.view(torch.uint8).index_copy_(0, slots, codes.view(torch.uint8))
    scales.index_copy_(0, slots, new_scales)


def _group_queries(call: LayerCall, group: DecodeGroup) -> torch.Tensor:
    """[rows, Hkv, Hq / Hkv, Dk]."""
    rows = call.query[:, group.begin : group.end].transpose(0, 1)
    return rows.reshape(len(rows), call.pool_key.shape[1], -1, rows.shape[-1])


def _row_queries(call: LayerCall, row: PrefillRow) -> torch.Tensor:
    """[Hkv, Hq / Hkv, tokens, Dk]."""
    tokens = call.query[:, row.begin : row.end]
    return tokens.reshape(call.pool_key.shape[1], -1, *tokens.shape[1:])


def _attention(
    call: LayerCall,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor | None,
    causal: bool = False,
) -> torch.Tensor:
    """[N, H, Tq, Dv] of query [N, H, Tq, Dk], key [N, H, L, Dk], value [N, H, L, Dv]; bias float32, broadcast."""
    dtype = query.dtype
    if call.softcap is not None:
        if causal:
            bias = torch.full((query.shape[2], key.shape[2]), -torch.inf, device=query.device).triu_(1)
        return (_biased(_logits(call, query, key), bias).softmax(-1) @ value.float()).to(dtype)
    # Beside 16-bit queries, torch's GPU kernels refuse a float32 bias or (cuDNN) misread it; its CPU kernel takes it.
    if bias is not None and dtype != torch.float32 and query.device.type != "cpu":
        query, key, value = query.float(), key.float(), value.float()
    return scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=causal, scale=call.scale).to(dtype)


def _logits(call: LayerCall, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Logits in float32, [N, H, Tq, L], before the bias."""
    logits = (query.float() * call.scale) @ key.float().transpose(-1, -2)
    return logits if call.softcap is None else torch.tanh(logits / call.softcap) * call.softcap


def _biased(logits: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return logits if bias is None else logits + bias
