"""Choosing tokens from logits without sorting the vocabulary.

Owns: the kernels and their launchers. Tokens have an order, likeliest first and then by id; top_k, top_p and min_p each
keep a beginning of it, and a draw picks the token where the cumulative probability passes a point. Each of these places
is found by bisecting over the values of the logits, as 32-bit integers in the same order as the floats: 32 passes over
logits that lie in the L2 cache. The result is the one that sorting gives.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.tiles import next_power_of_two

# Logits per pass of a program: 16 per thread of 8 warps keep the loads wide.
_MOST_LOGITS = 4096
_LOWEST = tl.constexpr(-(1 << 31))
_HIGHEST = tl.constexpr((1 << 31) - 1)


@triton.jit
def _order(values):
    """float32 as int32 with the same order."""
    bits = values.to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def _value(order):
    """The float32 of an order."""
    return tl.where(order < 0, order ^ 0x7FFFFFFF, order).to(tl.float32, bitcast=True)


@triton.jit
def _above(logits, size, bound, peak, inverse, BLOCK: tl.constexpr):
    """How many logits lie above `bound` (int64, an order), and their sum of exp((logit - peak) * inverse)."""
    count = tl.zeros([], tl.int32)
    mass = tl.zeros([], tl.float32)
    for begin in range(0, size, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        values = tl.load(logits + at, mask=at < size, other=float("-inf"))
        inside = (_order(values).to(tl.int64) > bound) & (at < size)
        count += tl.sum(inside.to(tl.int32), 0)
        mass += tl.sum(tl.where(inside, tl.exp((values - peak) * inverse), 0.0), 0)
    return count, mass


@triton.jit
def _first_bound(logits, size, least, most_count, most_mass, peak, inverse, BLOCK: tl.constexpr):
    """The least bound, from `least` on, with at most `most_count` logits above it, of a mass of at most `most_mass`."""
    low, high = least, tl.zeros([], tl.int64) + _HIGHEST
    for _ in range(32):
        if low < high:
            middle = low + ((high - low) >> 1)
            count, mass = _above(logits, size, middle, peak, inverse, BLOCK)
            if (count <= most_count) & (mass <= most_mass):
                high = middle
            else:
                low = middle + 1
    return low


@triton.jit
def _normaliser(logits, size, BLOCK: tl.constexpr):
    """The greatest logit, the first id that has it, and log of the sum of exponentials."""
    peak = tl.full([], float("-inf"), tl.float32)
    total = tl.zeros([], tl.float32)
    best = tl.zeros([], tl.int32)
    for begin in range(0, size, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        values = tl.load(logits + at, mask=at < size, other=float("-inf"))
        block_peak = tl.max(values, 0)
        new_peak = tl.maximum(peak, block_peak)
        if block_peak > peak:
            best = tl.min(tl.where((values == block_peak) & (at < size), at, size), 0)
        safe = tl.where(new_peak == float("-inf"), 0.0, new_peak)
        total = total * tl.exp(peak - safe) + tl.sum(tl.exp(values - safe), 0)
        peak = new_peak
    return peak, best, peak + tl.log(total)


@triton.jit
def _nth_equal(logits, size, order, number, BLOCK: tl.constexpr):
    """The id of the logit of this order that has `number` others of it before it."""
    found = tl.zeros([], tl.int32)
    before = tl.zeros([], tl.int32)
    for begin in range(0, size, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        values = tl.load(logits + at, mask=at < size, other=float("-inf"))
        equal = ((_order(values).to(tl.int64) == order) & (at < size)).to(tl.int32)
        rank = before + tl.cumsum(equal, 0) - 1
        found += tl.sum(tl.where((equal == 1) & (rank == number), at, 0), 0)
        before += tl.sum(equal, 0)
    return found


@triton.jit
def _sample_kernel(
    original, logits, temperatures, top_ks, top_ps, min_ps, points, ids, logprobs,
    size, original_stride, logits_stride, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    original += row.to(tl.int64) * original_stride
    logits += row.to(tl.int64) * logits_stride
    peak, chosen, lse = _normaliser(original, size, BLOCK)
    peak, chosen, _adjusted_lse = _normaliser(logits, size, BLOCK)
    temperature = tl.load(temperatures + row)
    if temperature > 0:
        inverse = 1.0 / temperature
        # What is kept: all above the order `least`, and the first `ties` ids that have it.
        least = tl.zeros([], tl.int64) + _LOWEST
        ties = tl.zeros([], tl.int32)
        top_k, top_p, min_p = tl.load(top_ks + row), tl.load(top_ps + row), tl.load(min_ps + row)
        if (top_k > 0) & (top_k < size):
            least = _first_bound(logits, size, least, top_k - 1, float("inf"), peak, inverse, BLOCK)
            count, mass = _above(logits, size, least, peak, inverse, BLOCK)
            ties = top_k - count
        if top_p < 1.0:
            count, mass = _above(logits, size, least, peak, inverse, BLOCK)
            wanted = top_p * (mass + ties * _weight(least, peak, inverse))
            # A token is kept if what comes before it is under `wanted`, so the bound's own mass must be under it.
            bound = _first_bound(logits, size, least, size, wanted * (1.0 - 1.2e-7), peak, inverse, BLOCK)
            count, mass = _above(logits, size, bound, peak, inverse, BLOCK)
            count = tl.ceil((wanted - mass) / _weight(bound, peak, inverse)).to(tl.int32)
            ties = tl.where(bound == least, tl.minimum(ties, count), count)
            least = bound
        if min_p > 0.0:
            bound = _order(peak + temperature * tl.log(min_p)).to(tl.int64) - 1
            ties = tl.where(bound >= least, 0, ties)
            least = tl.maximum(least, bound)
        count, mass = _above(logits, size, least, peak, inverse, BLOCK)
        mass += ties * _weight(least, peak, inverse)
        # Rounding must not reach the end, behind which there may be impossible tokens only.
        point = tl.minimum(tl.load(points + row), 1.0 - 1.2e-7) * mass
        order = _first_bound(logits, size, least, size, point, peak, inverse, BLOCK)
        above, mass = _above(logits, size, order, peak, inverse, BLOCK)
        number = tl.floor((point - mass) / _weight(order, peak, inverse)).to(tl.int32)
        reached, mass = _above(logits, size, order - 1, peak, inverse, BLOCK)
        last = tl.where(order == least, ties, reached - above) - 1
        chosen = _nth_equal(logits, size, order, tl.minimum(number, last), BLOCK)
    # Logits that are no numbers may lead anywhere; their log-probability is NaN, but the id must exist.
    chosen = tl.minimum(chosen, size - 1)
    tl.store(ids + row, chosen.to(tl.int64))
    tl.store(logprobs + row, tl.load(original + chosen) - lse)


@triton.jit
def _weight(order, peak, inverse):
    """exp((logit - peak) * inverse) of an order; 0 below every float."""
    value = _value(tl.maximum(order, _LOWEST + 1).to(tl.int32))
    return tl.where(value == value, tl.exp((value - peak) * inverse), 0.0)


@triton.jit
def _penalty_kernel(
    logits, rows, tokens, counts, repetition, presence, frequency, biases, size, logits_stride, BLOCK: tl.constexpr
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    row, token = tl.load(rows + at, mask=mask, other=0), tl.load(tokens + at, mask=mask, other=0)
    count = tl.load(counts + at, mask=mask, other=0)
    place = logits + row.to(tl.int64) * logits_stride + token
    value = tl.load(place, mask=mask, other=0.0)
    factor = tl.where(count >= 0, tl.load(repetition + row, mask=mask, other=1.0), 1.0)
    value = tl.where(value > 0, value / factor, value * factor)
    value -= tl.where(count > 0, tl.load(presence + row, mask=mask, other=0.0), 0.0)
    value -= tl.maximum(count, 0).to(tl.float32) * tl.load(frequency + row, mask=mask, other=0.0)
    tl.store(place, value + tl.load(biases + at, mask=mask, other=0.0), mask=mask)


def penalise(
    logits: Tensor,
    rows: Tensor,
    tokens: Tensor,
    counts: Tensor,
    biases: Tensor,
    repetition: Tensor,
    presence: Tensor,
    frequency: Tensor,
) -> None:
    """Changes logits float32 [rows, vocab] in place at the (row, token) pairs listed, each at most once.

    rows, tokens, counts int32 [n]; counts: how often the row's output has the token, 0 if only its prompt has it, -1 if
    neither (a bias alone). biases float32 [n]: logit_bias, -inf for a banned token. repetition, presence, frequency
    float32 [rows]: positive logits are divided by repetition and others multiplied (CTRL, section 4.1), presence is
    taken off once, frequency per occurrence. Raises ValueError for shapes or dtypes that do not fit.
    """
    _check_logits(logits)
    _check((len(tokens),), torch.int32, rows, tokens, counts)
    _check((len(tokens),), torch.float32, biases)
    _check((len(logits),), torch.float32, repetition, presence, frequency)
    if len(tokens):
        _penalty_kernel[(-(-len(tokens) // 128),)](
            logits, rows, tokens, counts, repetition, presence, frequency, biases, len(tokens), logits.stride(0),
            BLOCK=128, num_warps=4,
        )  # fmt: skip


def sample_tokens(
    original: Tensor,
    logits: Tensor,
    temperatures: Tensor,
    top_ks: Tensor,
    top_ps: Tensor,
    min_ps: Tensor,
    points: Tensor,
) -> tuple[Tensor, Tensor]:
    """One token per row: (ids int64 [rows], natural log-probabilities float32 [rows] under `original`).

    original, logits: float32 [rows, vocab], last dimension dense, finite or -inf, before and after penalties (they may
    be the same tensor). temperatures float32 [rows], 0 for the likeliest token; top_ks int32 (0: off), top_ps (1: off),
    min_ps (0: off) float32; applied in this order, each to what the ones before left. points float32 in [0, 1): where
    on the cumulative distribution of what is kept, likeliest first and then by id, the token lies. Raises ValueError
    for shapes or dtypes that do not fit.
    """
    _check_logits(original)
    _check_logits(logits)
    if original.shape != logits.shape:
        raise ValueError(f"logits {tuple(logits.shape)} beside original ones {tuple(original.shape)}")
    rows, size = logits.shape
    _check((rows,), torch.float32, temperatures, top_ps, min_ps, points)
    _check((rows,), torch.int32, top_ks)
    ids = torch.empty(rows, dtype=torch.int64, device=logits.device)
    logprobs = torch.empty(rows, device=logits.device)
    if rows:
        _sample_kernel[(rows,)](
            original, logits, temperatures, top_ks, top_ps, min_ps, points, ids, logprobs,
            size, original.stride(0), logits.stride(0),
            BLOCK=min(_MOST_LOGITS, next_power_of_two(size)), num_warps=8,
        )  # fmt: skip
    return ids, logprobs


def _check_logits(logits: Tensor) -> None:
    if logits.dim() != 2 or logits.dtype != torch.float32 or logits.stride(1) != 1 or not logits.shape[1]:
        raise ValueError(f"logits must be float32 [rows, vocab], got {logits.dtype} {tuple(logits.shape)}")


def _check(shape: tuple[int, ...], dtype: torch.dtype, *tensors: Tensor) -> None:
    for tensor in tensors:
        if tensor.shape != shape or tensor.dtype != dtype or not tensor.is_contiguous():
            raise ValueError(f"expected a dense {dtype} {shape}, got {tensor.dtype} {tuple(tensor.shape)}")
