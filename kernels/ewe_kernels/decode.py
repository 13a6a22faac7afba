"""Attention of single tokens over pieces of paged segments: the first half of split-KV decoding.

A piece is a run of keys of one segment (a memory unit, a context) with the rows that see it: one row for what belongs
to one sequence, many for a unit that sequences of the batch share, whose keys are then read once for all of them. Each
(piece, row) leaves a state, an output and its LSE, which `merge_states` joins; the weights of eq. 1 of the EWE paper
act there, because a bias on all logits of a segment only shifts its LSE.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.checks import check_attention, check_indices
from ewe_kernels.device import add_values, logit_factor, natural_lse, score_paged, unscaled
from ewe_kernels.tiles import Tile, dot_precision, next_power_of_two


@triton.jit
def _attend(
    query, pool_key, pool_value, key_scales, value_scales, table, begin, end, entries, count, outputs, lses, kv_head,
    scale, softcap,
    query_stride_head, query_stride_token, key_stride_slot, key_stride_head, value_stride_slot, value_stride_head,
    KV_HEADS: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, D_PADDED: tl.constexpr,
    DV_PADDED: tl.constexpr, BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, SOFTCAP: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The states of one key head of one piece, for as many of `count` entries as fill the tile."""
    # Row r of the tile is head r % HEADS of this key head, of the entry r // HEADS.
    row = tl.arange(0, ROWS)
    number = row // HEADS
    real = (number < count) & (row < ROWS // HEADS * HEADS)
    entry = entries + number * 2
    head = kv_head * HEADS + row % HEADS
    token = tl.load(entry, mask=real, other=0)
    column = tl.arange(0, D_PADDED)
    q_at = query + head[:, None] * query_stride_head + token[:, None].to(tl.int64) * query_stride_token
    q = tl.load(q_at + column[None, :], mask=real[:, None] & (column < D)[None, :], other=0.0)

    peak = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, DV_PADDED], tl.float32)
    factor = logit_factor(scale, softcap, SOFTCAP)
    for start in range(begin, end, KEYS):
        at = start + tl.arange(0, KEYS)
        seen = at < end
        scores, v, slots = score_paged(
            q, pool_key, pool_value, key_scales, table, at, seen, kv_head, KV_HEADS, scale, softcap,
            key_stride_slot, key_stride_head, value_stride_slot, value_stride_head,
            D, DV, D_PADDED, DV_PADDED, BLOCK_SIZE, SOFTCAP, PRECISION,
        )  # fmt: skip
        scores = tl.where(seen[None, :], scores, float("-inf"))
        # Every pass has at least one key, so the new peak is finite.
        new_peak = tl.maximum(peak, tl.max(scores, 1) * factor)
        shrink = tl.exp2(peak - new_peak)
        p = tl.exp2(tl.fma(scores, factor, -new_peak[:, None]))
        total = total * shrink + tl.sum(p, 1)
        acc = add_values(acc * shrink[:, None], p, v, value_scales, slots, seen, kv_head, KV_HEADS, PRECISION)
        peak = new_peak

    state = tl.load(entry + 1, mask=real, other=0).to(tl.int64) * (KV_HEADS * HEADS) + head
    tl.store(lses + state, natural_lse(peak, total), mask=real)
    acc = unscaled(acc, value_scales) / tl.where(total == 0.0, 1.0, total)[:, None]
    column = tl.arange(0, DV_PADDED)
    tl.store(outputs + state[:, None] * DV + column[None, :], acc, mask=real[:, None] & (column < DV)[None, :])


@triton.jit
def _piece_kernel(
    query, pool_key, pool_value, key_scales, value_scales, tables, pieces, num_pieces, entries, outputs, lses,
    most_entries, scale, softcap,
    query_stride_head, query_stride_token, key_stride_slot, key_stride_head, value_stride_slot, value_stride_head,
    KV_HEADS: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, D_PADDED: tl.constexpr,
    DV_PADDED: tl.constexpr, BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, SOFTCAP: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    # Programs take the work in turns: pieces in their order, of each its batches of entries, of each its key heads,
    # which lie beside each other in memory.
    per_batch: tl.constexpr = ROWS // HEADS
    batches = tl.cdiv(most_entries, per_batch)
    for item in range(tl.program_id(0), tl.load(num_pieces) * batches * KV_HEADS, tl.num_programs(0)):
        piece, batch = item // KV_HEADS // batches, item // KV_HEADS % batches
        table = tables + tl.load(pieces + piece * 5)
        begin, end = tl.load(pieces + piece * 5 + 1), tl.load(pieces + piece * 5 + 2)
        first_entry, count = tl.load(pieces + piece * 5 + 3), tl.load(pieces + piece * 5 + 4)
        if batch * per_batch < count:
            _attend(
                query, pool_key, pool_value, key_scales, value_scales, table, begin, end,
                entries + (first_entry + batch * per_batch) * 2, count - batch * per_batch, outputs, lses,
                item % KV_HEADS, scale, softcap, query_stride_head, query_stride_token, key_stride_slot,
                key_stride_head, value_stride_slot, value_stride_head, KV_HEADS, HEADS, D, DV, D_PADDED, DV_PADDED,
                BLOCK_SIZE, ROWS, KEYS, SOFTCAP, PRECISION,
            )  # fmt: skip


def attend_pieces(
    query: Tensor,
    pool_key: Tensor,
    pool_value: Tensor,
    block_size: int,
    tables: Tensor,
    pieces: Tensor,
    entries: Tensor,
    outputs: Tensor,
    lses: Tensor,
    scale: float,
    softcap: float | None,
    tile: Tile,
    most_entries: int,
    key_scales: Tensor | None = None,
    value_scales: Tensor | None = None,
    num_pieces: Tensor | None = None,
    programs: int | None = None,
) -> None:
    """Writes the state of every (piece, row) into outputs and lses.

    query [Hq, T, D] in the pool's dtype; pool_key [slots, Hkv, D]; pool_value [slots, Hkv, Dv]; any strides, but the
    last dimension dense. tables int32: lists of blocks of `block_size` slots, one list per segment, in a row.
    key_scales, value_scales float32 [slots, Hkv], dense: the pool is float8_e4m3fn then, in units of its scales.
    pieces int32 [n, 5]: where the segment's list begins in tables; its first and last token (exclusive); the first of
    the piece's entries; their number (at most `most_entries`). A program reads the keys of one key head of a piece for
    up to tile.rows // (Hq / Hkv) entries; further ones find them in the L2 cache. num_pieces int32 [1], on the device:
    how many of the pieces count (None: all). programs: how many are launched (None: one per piece, key head and batch
    of entries); they take turns, so long pieces should come first.
    entries int32 [m, 2]: the row's token in query, and its state's place. outputs float32 [states, Hq, Dv], dense;
    lses float32 [states, Hq], dense, natural log, -inf for an empty piece. Logits are query.key * scale, capped as
    softcap * tanh(logits / softcap) if softcap is given. Raises ValueError for shapes or dtypes that do not fit, and
    for a scale that is not over 0.
    """
    heads = check_attention(query, pool_key, pool_value, key_scales, value_scales, scale)
    num_kv_heads, dim, value_dim = pool_key.shape[1], pool_key.shape[2], pool_value.shape[2]
    if tile.rows < heads:
        raise ValueError(f"a tile of {tile.rows} rows cannot hold {heads} query heads per key head")
    if outputs.shape != (len(lses), query.shape[0], value_dim) or lses.shape[1] != query.shape[0]:
        raise ValueError(f"states of shape {tuple(outputs.shape)} and {tuple(lses.shape)} for {query.shape[0]} heads")
    counted = {} if num_pieces is None else {"num_pieces": (num_pieces, None)}
    check_indices(tables=(tables, None), pieces=(pieces, 5), entries=(entries, 2), **counted)
    if not len(pieces):
        return
    if num_pieces is None:
        num_pieces = torch.full((1,), len(pieces), dtype=torch.int32, device=query.device)
    work = len(pieces) * num_kv_heads * -(-most_entries // (tile.rows // heads))
    _piece_kernel[(work if programs is None else min(work, programs),)](
        query, pool_key, pool_value, key_scales, value_scales, tables, pieces, num_pieces, entries, outputs, lses,
        most_entries, scale, softcap or 1.0,
        query.stride(0), query.stride(1), *pool_key.stride()[:2], *pool_value.stride()[:2],
        KV_HEADS=num_kv_heads, HEADS=heads, D=dim, DV=value_dim,
        D_PADDED=max(16, next_power_of_two(dim)), DV_PADDED=max(16, next_power_of_two(value_dim)),
        BLOCK_SIZE=block_size, ROWS=tile.rows, KEYS=tile.keys,
        SOFTCAP=softcap is not None, PRECISION=dot_precision(query.dtype),
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
