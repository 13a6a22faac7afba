"""Attention of runs of tokens over paged memory units and a paged context: prompts, chunks of them, units themselves.

Units are visible to every token of a run, the context causally and within a sliding window; the biases of eq. 1 of the
EWE paper are added to the logits, so one pass reads every key once.
"""

# ruff: noqa: N803, N806
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.checks import check_attention, check_indices
from ewe_kernels.device import LOG2_E, add_values, logit_factor, natural_lse, score_paged, unscaled
from ewe_kernels.tiles import dot_precision, next_power_of_two, prefill_tile

# Runs that a program looks through at once.
_RUNS = tl.constexpr(256)
# Which keys of a pass a token sees: all, those of the segment, those up to its own, of these the ones in its window.
_ALL, _OF_SEGMENT, _CAUSAL, _IN_WINDOW = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)


@triton.jit
def _run_of(place, runs, num_runs, TOKENS: tl.constexpr):
    """The last run whose tiles begin at `place` or before: those of run r at (its first token) // TOKENS + r."""
    found = tl.full([], -1, tl.int32)
    for start in range(0, num_runs, _RUNS):
        run = start + tl.arange(0, _RUNS)
        begin = tl.load(runs + run * 4, mask=run < num_runs, other=0)
        found += tl.sum(((run < num_runs) & (begin // TOKENS + run <= place)).to(tl.int32), 0)
    return tl.maximum(found, 0)


@triton.jit
def _accumulate(
    acc, total, peak, part, q, pool_key, pool_value, key_scales, value_scales, table, begin, end, bias, position,
    window, kv_head, num_kv_heads, scale, softcap,
    key_stride_slot, key_stride_head, value_stride_slot, value_stride_head,
    D: tl.constexpr, DV: tl.constexpr, D_PADDED: tl.constexpr, DV_PADDED: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    KEYS: tl.constexpr, SOFTCAP: tl.constexpr, PRECISION: tl.constexpr, SEEN: tl.constexpr,
):  # fmt: skip
    """Takes the keys begin .. end of a segment into the running softmax; `part` is the segment's own part of total.

    SEEN: one of _ALL (whole passes only), _OF_SEGMENT, _CAUSAL and _IN_WINDOW.
    """
    factor = logit_factor(scale, softcap, SOFTCAP)
    bias *= LOG2_E
    for start in range(begin, end, KEYS):
        at = start + tl.arange(0, KEYS)
        seen = at < end
        scores, v, slots = score_paged(
            q, pool_key, pool_value, key_scales, table, at, seen, kv_head, num_kv_heads, scale, softcap,
            key_stride_slot, key_stride_head, value_stride_slot, value_stride_head,
            D, DV, D_PADDED, DV_PADDED, BLOCK_SIZE, SOFTCAP, PRECISION,
        )  # fmt: skip
        if SEEN == _OF_SEGMENT:
            scores = tl.where(seen[None, :], scores, float("-inf"))
        elif SEEN == _CAUSAL:
            scores = tl.where(position[:, None] >= at[None, :], scores, float("-inf"))
        elif SEEN == _IN_WINDOW:
            behind = position[:, None] - at[None, :]
            scores = tl.where((behind >= 0) & (behind < window), scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1) * factor + bias)
        # A token may see no key yet (window): a finite peak keeps -inf - -inf from giving NaN.
        safe = tl.where(new_peak == float("-inf"), 0.0, new_peak)
        shrink = tl.exp2(peak - safe)
        p = tl.exp2(tl.fma(scores, factor, (bias - safe)[:, None]))
        mass = tl.sum(p, 1)
        total = total * shrink + mass
        part = part * shrink + mass
        acc = add_values(
            acc * shrink[:, None], p, v, value_scales, slots, seen, kv_head, num_kv_heads, PRECISION
        )  # fmt: skip
        peak = new_peak
    return acc, total, peak, part


@triton.jit
def _store_rows(
    acc, total, value_scales, output, token, head, real, stride_token, stride_head,
    DV: tl.constexpr, DV_PADDED: tl.constexpr,
):  # fmt: skip
    """Writes what a tile's rows attended to: the softmax's weighted values over its total."""
    acc = unscaled(acc, value_scales) / tl.where(total == 0.0, 1.0, total)[:, None]
    column = tl.arange(0, DV_PADDED)
    place = output + token[:, None] * stride_token + head[:, None] * stride_head + column[None, :]
    tl.store(place, acc.to(output.dtype.element_ty), mask=real[:, None] & (column < DV)[None, :])


@triton.jit(do_not_specialize=["num_runs"])
def _prefill_kernel(
    query, pool_key, pool_value, key_scales, value_scales, tables, runs, segments, biases, output, shares_lse,
    num_runs, scale, softcap, window,
    query_stride_head, query_stride_token, key_stride_slot, key_stride_head, value_stride_slot, value_stride_head,
    output_stride_token, output_stride_head, lse_stride_token, lse_stride_head,
    HEADS: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, D_PADDED: tl.constexpr, DV_PADDED: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, SOFTCAP: tl.constexpr, PRECISION: tl.constexpr,
    WINDOW: tl.constexpr, LSE: tl.constexpr,
):  # fmt: skip
    # A run's last tiles see the most context, so they start first.
    place, kv_head = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1)
    TOKENS: tl.constexpr = ROWS // HEADS
    index = _run_of(place, runs, num_runs, TOKENS)
    run = runs + index * 4
    token_begin, count = tl.load(run), tl.load(run + 1)
    first_segment, num_units = tl.load(run + 2), tl.load(run + 3)
    tile = place - index - token_begin // TOKENS
    if (tile < 0) | (tile * TOKENS >= count):
        return
    row = tl.arange(0, ROWS)
    number = tile * TOKENS + row // HEADS
    real = (number < count) & (row < TOKENS * HEADS)
    token = (token_begin + number).to(tl.int64)
    head = kv_head * HEADS + row % HEADS
    column = tl.arange(0, D_PADDED)
    q_at = query + head[:, None] * query_stride_head + token[:, None] * query_stride_token
    q = tl.load(q_at + column[None, :], mask=real[:, None] & (column < D)[None, :], other=0.0)

    peak = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, DV_PADDED], tl.float32)
    lse_at = shares_lse + token * lse_stride_token + head * lse_stride_head
    for unit in range(0, num_units):
        segment = segments + (first_segment + unit) * 2
        part = tl.zeros([ROWS], tl.float32)
        acc, total, peak, part = _accumulate(
            acc, total, peak, part, q, pool_key, pool_value, key_scales, value_scales, tables + tl.load(segment), 0,
            tl.load(segment + 1), tl.load(biases + first_segment + unit), number, window, kv_head, tl.num_programs(1),
            scale, softcap, key_stride_slot, key_stride_head, value_stride_slot, value_stride_head,
            D, DV, D_PADDED, DV_PADDED, BLOCK_SIZE, KEYS, SOFTCAP, PRECISION, _OF_SEGMENT,
        )  # fmt: skip
        if LSE:
            tl.store(lse_at + unit, natural_lse(peak, part), mask=real)

    segment = segments + (first_segment + num_units) * 2
    length = tl.load(segment + 1)
    # The run's tokens are the context's last ones.
    first = length - count + tile * TOKENS
    begin, position = 0, length - count + number
    if WINDOW:
        begin = tl.maximum(first - window + 1, 0) // KEYS * KEYS
    context, bias = tables + tl.load(segment), tl.load(biases + first_segment + num_units)
    part = tl.zeros([ROWS], tl.float32)
    if not WINDOW:
        # Up to its first token all of the tile sees whole passes of keys, and nothing need be masked.
        begin = tl.maximum(first + 1, 0) // KEYS * KEYS
        acc, total, peak, part = _accumulate(
            acc, total, peak, part, q, pool_key, pool_value, key_scales, value_scales, context, 0, begin, bias,
            position, window, kv_head, tl.num_programs(1), scale, softcap,
            key_stride_slot, key_stride_head, value_stride_slot, value_stride_head,
            D, DV, D_PADDED, DV_PADDED, BLOCK_SIZE, KEYS, SOFTCAP, PRECISION, _ALL,
        )  # fmt: skip
    acc, total, peak, part = _accumulate(
        acc, total, peak, part, q, pool_key, pool_value, key_scales, value_scales, context, begin,
        tl.minimum(first + TOKENS, length), bias, position, window, kv_head, tl.num_programs(1), scale, softcap,
        key_stride_slot, key_stride_head, value_stride_slot, value_stride_head,
        D, DV, D_PADDED, DV_PADDED, BLOCK_SIZE, KEYS, SOFTCAP, PRECISION, _IN_WINDOW if WINDOW else _CAUSAL,
    )  # fmt: skip
    if LSE:
        tl.store(lse_at + num_units, natural_lse(peak, part), mask=real)
    _store_rows(
        acc, total, value_scales, output, token, head, real, output_stride_token, output_stride_head, DV, DV_PADDED
    )  # fmt: skip


def attend_runs(
    query: Tensor,
    pool_key: Tensor,
    pool_value: Tensor,
    block_size: int,
    tables: Tensor,
    runs: Tensor,
    segments: Tensor,
    biases: Tensor,
    output: Tensor,
    scale: float,
    softcap: float | None,
    window: int | None,
    lses: Tensor | None = None,
    key_scales: Tensor | None = None,
    value_scales: Tensor | None = None,
) -> None:
    """Writes the attention of every run's tokens into output, and into lses, if given, the LSE of each segment.

    query [Hq, T, D], pool_key, pool_value, their scales and tables as in `attend_pieces`. runs int32 [n, 4]: the run's
    first token in query; its tokens; its first segment; its number of units. Runs follow each other in query, and may
    be empty. A run's segments are its units, then its context, whose last tokens are the run's own; with an empty
    context it sees nothing, and gets zeros. segments int32 [m, 2]: where the segment's list of
    blocks begins in tables; its length in tokens, 0 for an empty unit. biases float32 [m], added to the segment's
    logits (natural).
    output [T, Hq, Dv] in the query's dtype; window: a token sees itself and the window - 1 tokens of context before it
    (None: all of it), and all units. lses float32 [T, Hq, segments of the run with most], natural log, biases included;
    what a run has no segment for is left as it is. Raises ValueError for shapes or dtypes that do not fit.
    """
    heads = check_attention(query, pool_key, pool_value, key_scales, value_scales, scale)
    dim, value_dim = pool_key.shape[2], pool_value.shape[2]
    check_indices(tables=(tables, None), runs=(runs, 4), segments=(segments, 2))
    if output.shape != (query.shape[1], query.shape[0], value_dim) or output.stride(2) != 1:
        raise ValueError(f"output of shape {tuple(output.shape)} for queries of shape {tuple(query.shape)}")
    if biases.dtype != torch.float32 or biases.shape != segments.shape[:1]:
        raise ValueError(f"biases must be float32, one per segment, got {biases.dtype} {tuple(biases.shape)}")
    if not len(runs):
        return
    tile = prefill_tile(heads, max(dim, value_dim), query.dtype)
    # As many tiles as runs of these tokens can have, wherever they begin: the launch depends on sizes alone.
    _prefill_kernel[(query.shape[1] // (tile.rows // heads) + len(runs), pool_key.shape[1])](
        query, pool_key, pool_value, key_scales, value_scales, tables, runs, segments, biases, output,
        output if lses is None else lses,
        len(runs), scale, softcap or 1.0, window or (1 << 30),
        query.stride(0), query.stride(1), *pool_key.stride()[:2], *pool_value.stride()[:2], *output.stride()[:2],
        *(lses.stride()[:2] if lses is not None else (0, 0)),
        HEADS=heads, D=dim, DV=value_dim,
        D_PADDED=max(16, next_power_of_two(dim)), DV_PADDED=max(16, next_power_of_two(value_dim)),
        BLOCK_SIZE=block_size, ROWS=tile.rows, KEYS=tile.keys, SOFTCAP=softcap is not None,
        PRECISION=dot_precision(query.dtype), WINDOW=window is not None, LSE=lses is not None,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
