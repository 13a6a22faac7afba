"""What the attention kernels share on the device: a pass over paged keys and values, the cap on logits, constants."""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)
E4M3_LARGEST = tl.constexpr(448.0)


@triton.jit
def _tanh(number, factor):
    """tanh(number * factor), factor > 0; neither overflows nor needs the device's own library."""
    shrunk = tl.exp2(tl.abs(number) * (-2.0 * LOG2_E * factor))
    size = (1.0 - shrunk) / (1.0 + shrunk)
    return tl.where(number < 0, -size, size)


@triton.jit
def load_paged(
    pool, slots, head, stride_slot, stride_head, seen, D: tl.constexpr, D_PADDED: tl.constexpr, DTYPE: tl.constexpr
):  # fmt: skip
    """One head's keys or values [slots, D_PADDED] as DTYPE; zero where `seen` is false and beyond D."""
    column = tl.arange(0, D_PADDED)
    mask = seen[:, None]
    if D != D_PADDED:
        mask = mask & (column < D)[None, :]
    states = tl.load(pool + slots[:, None] * stride_slot + head * stride_head + column[None, :], mask=mask, other=0.0)
    return states.to(DTYPE)


@triton.jit
def paged_slots(table, at, seen, BLOCK_SIZE: tl.constexpr):
    """The pool slots (int64) of a segment's tokens `at`, whose blocks are listed from `table` on."""
    block = tl.load(table + at // BLOCK_SIZE, mask=seen, other=0)
    return block.to(tl.int64) * BLOCK_SIZE + at % BLOCK_SIZE


@triton.jit
def score_paged(
    q, pool_key, pool_value, key_scales, table, at, seen, kv_head, num_kv_heads, scale, softcap,
    key_stride_slot, key_stride_head, value_stride_slot, value_stride_head,
    D: tl.constexpr, DV: tl.constexpr, D_PADDED: tl.constexpr, DV_PADDED: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    SOFTCAP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Scores of the queries over the segment's tokens `at`, the tokens' values and slots.

    Scores times `logit_factor` are logits in base 2, so that one multiplication with an addition makes them exponents.
    What stands where `seen` is false is for the caller to mask. key_scales: None, or [slots, num_kv_heads] of a pool in
    e4m3; then a key's scale acts on its scores, which are fewer than its numbers, and values are in units of theirs.
    """
    slots = paged_slots(table, at, seen, BLOCK_SIZE)
    k = load_paged(pool_key, slots, kv_head, key_stride_slot, key_stride_head, seen, D, D_PADDED, q.dtype)
    v = load_paged(pool_value, slots, kv_head, value_stride_slot, value_stride_head, seen, DV, DV_PADDED, q.dtype)
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION)
    if key_scales is not None:
        scores *= tl.load(key_scales + slots * num_kv_heads + kv_head, mask=seen, other=0.0)[None, :]
    if SOFTCAP:
        scores = _tanh(scores, scale / softcap)
    return scores, v, slots


@triton.jit
def logit_factor(scale, softcap, SOFTCAP: tl.constexpr):
    """What turns scores of `score_paged` into logits in base 2, scaled and capped; positive as `scale` is."""
    return (softcap if SOFTCAP else scale) * LOG2_E


@triton.jit
def add_values(acc, p, v, value_scales, slots, seen, kv_head, num_kv_heads, PRECISION: tl.constexpr):
    """acc plus the values weighted by p [rows, keys]; with scales 448 times that, which `unscaled` takes back.

    A scale times 448 is the largest of its values, so weights scaled by it stay within float16 where the values did.
    """
    if value_scales is not None:
        scale = tl.load(value_scales + slots * num_kv_heads + kv_head, mask=seen, other=0.0)
        p = p * (scale * E4M3_LARGEST)[None, :]
    return acc + tl.dot(p.to(v.dtype), v, input_precision=PRECISION)


@triton.jit
def unscaled(acc, value_scales):
    """What `add_values` summed up, in units of the values."""
    if value_scales is not None:
        acc = acc / E4M3_LARGEST
    return acc


@triton.jit
def natural_lse(peak, total):
    """The natural LSE of a softmax in base 2 with this peak and sum; -inf where the sum is 0."""
    return tl.where(total > 0.0, (peak + tl.log2(tl.where(total > 0.0, total, 1.0))) * LN_2, float("-inf"))
