"""Choosing tokens from logits without sorting the vocabulary.

Tokens have an order, likeliest first and then by id; top_k, top_p and min_p each keep a beginning of it, and a draw
picks the token where the cumulative probability passes a point. `candidates` lists the few tokens that these places can
be among; there each is found by bisecting over the values of the logits, as 32-bit integers in the same order as the
floats. The result is the one that sorting gives.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.candidates import LAST, find_candidates, joined, last_bin
from ewe_kernels.checks import check_dense, check_logits
from ewe_kernels.tiles import next_power_of_two

# Candidates per step of a program: 8 per thread of 8 warps.
_BLOCK = 2048
_LOWEST = tl.constexpr(-(1 << 31))
_HIGHEST = tl.constexpr((1 << 31) - 1)
# The order of -inf: tokens above it can be drawn.
_IMPOSSIBLE = tl.constexpr(-0x7F800001)


@triton.jit
def _order(values):
    """float32 as int32 with the same order; the sum makes one zero of two."""
    bits = (values + 0.0).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def _weight(order, peak, inverse):
    """exp((logit - peak) * inverse) of an order."""
    value = tl.where(order < 0, order ^ 0x7FFFFFFF, order).to(tl.float32, bitcast=True)
    return tl.exp((value - peak) * inverse)


@triton.jit
def _around(logits, size, bound, peak, inverse, BLOCK: tl.constexpr):
    """How many logits lie above the order `bound`, their sum of exp((logit - peak) * inverse), and the nearest orders.

    These are the greatest that a logit has at or below the bound, and the least above it.
    """
    count = tl.zeros([BLOCK], tl.int32)
    mass = tl.zeros([BLOCK], tl.float32)
    below = tl.full([BLOCK], _LOWEST, tl.int32)
    beyond = tl.full([BLOCK], _HIGHEST, tl.int32)
    for begin in tl.range(0, size, BLOCK, num_stages=3):
        at = begin + tl.arange(0, BLOCK)
        values = tl.load(logits + at, mask=at < size, other=float("-inf"))
        order = _order(values)
        above = order > bound
        count += above.to(tl.int32)
        mass += tl.where(above, tl.exp((values - peak) * inverse), 0.0)
        below = tl.maximum(below, tl.where(above, _LOWEST, order))
        beyond = tl.minimum(beyond, tl.where(above, order, _HIGHEST))
    return tl.sum(count, 0), tl.sum(mass, 0), tl.max(below, 0), tl.min(beyond, 0)


@triton.jit
def _first_bound(logits, size, least, most_count, most_mass, peak, inverse, BLOCK: tl.constexpr):
    """The least bound, from `least` on, with at most `most_count` logits above it, of a mass of at most `most_mass`.

    And their number and mass. Bisects the orders between two that logits have, so the passes are those that tell the
    logits apart: about 13 where they came from 16 bits.
    """
    low, high = least, tl.maximum(_order(peak), least)
    count = tl.zeros([], tl.int32)
    mass = tl.zeros([], tl.float32)
    for _ in range(33):
        if low < high:
            middle = (low & high) + ((low ^ high) >> 1)  # their sum has no room in 32 bits
            new_count, new_mass, below, beyond = _around(logits, size, middle, peak, inverse, BLOCK)
            if (new_count <= most_count) & (new_mass <= most_mass):
                high, count, mass = tl.maximum(below, low), new_count, new_mass
            else:
                low = tl.minimum(beyond, high)
    return low, count, mass


@triton.jit
def _nth_equal(logits, size, order, number, BLOCK: tl.constexpr):
    """The id of the logit of this order that has `number` others of it before it, or of the last of them."""
    found = tl.zeros([], tl.int32)
    before = tl.zeros([], tl.int32)
    for begin in range(0, size, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        values = tl.load(logits + at, mask=at < size, other=float("-inf"))
        equal = ((_order(values) == order) & (at < size)).to(tl.int32)
        rank = before + tl.cumsum(equal, 0) - 1
        found = tl.maximum(found, tl.max(tl.where((equal == 1) & (rank <= number), at, 0), 0))
        before += tl.sum(equal, 0)
    return found


@triton.jit
def _drawn(
    values, size, is_whole, peak, total, temperature, top_k, top_p, min_p, point, vocab, BLOCK: tl.constexpr
):  # fmt: skip
    """Where among the candidates the token is that lies at `point`; is_whole: whether no other token can be drawn.

    total: the sum of exp((logit - peak) / temperature) over the whole row.
    """
    inverse = 1.0 / temperature
    # What is kept: the tokens above the order `least`, of this mass, and the first `ties` ids that have it.
    least = tl.zeros([], tl.int32) + _IMPOSSIBLE
    ties = tl.zeros([], tl.int32)
    mass = total
    if (top_k > 0) & (top_k < vocab):
        least, count, mass = _first_bound(values, size, least, top_k - 1, float("inf"), peak, inverse, BLOCK)
        ties = top_k - count
    elif is_whole:
        # The very sum that is searched, or rounding could put a place beyond its end.
        _count, mass, _below, _beyond = _around(values, size, least, peak, inverse, BLOCK)
    if top_p < 1.0:
        wanted = top_p * (mass + ties * _weight(least, peak, inverse))
        # A token is kept if what comes before it is under `wanted`, so the bound's own mass must be under it.
        wanted_above = wanted * (1.0 - 1.2e-7)
        bound, count, mass = _first_bound(values, size, least, size, wanted_above, peak, inverse, BLOCK)
        reaching = tl.ceil((wanted - mass) / _weight(bound, peak, inverse)).to(tl.int32)
        ties = tl.where(bound == least, tl.minimum(ties, reaching), reaching)
        least = bound
    if min_p > 0.0:
        bound = _order(peak + temperature * tl.log(min_p)) - 1
        if bound >= least:
            least, ties = bound, tl.zeros([], tl.int32)
            _count, mass, _below, _beyond = _around(values, size, least, peak, inverse, BLOCK)
    # Rounding must not reach the end, behind which there may be impossible tokens only.
    point = tl.minimum(point, 1.0 - 1.2e-7) * (mass + ties * _weight(least, peak, inverse))
    order, count, mass = _first_bound(values, size, least, size, point, peak, inverse, BLOCK)
    number = tl.floor((point - mass) / _weight(order, peak, inverse)).to(tl.int32)
    return _nth_equal(values, size, order, tl.where(order == least, tl.minimum(number, ties - 1), number), BLOCK)


@triton.jit
def _sample_kernel(
    original, logits, statistics, bests, bins, found_values, found_ids,
    temperatures, top_ks, top_ps, min_ps, points, drawn, size, parts, original_stride, logits_stride,
    BLOCK: tl.constexpr, PARTS: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    temperature = tl.load(temperatures + row)
    if temperature < 0:
        return
    statistics += row * 4 * parts
    _peaks, highest, original_total = joined(statistics, 1.0, parts, PARTS)
    statistics += 2 * parts
    if temperature == 0:
        part = tl.arange(0, PARTS)
        peaks = tl.load(statistics + part, mask=part < parts, other=float("-inf"))
        best = tl.load(bests + row * parts + part, mask=part < parts, other=size)
        chosen = tl.min(tl.where(peaks == tl.max(peaks, 0), best, size), 0)
    else:
        peaks, peak, total = joined(statistics, 1.0 / temperature, parts, PARTS)
        top_k, top_p = tl.load(top_ks + row), tl.load(top_ps + row)
        min_p, point = tl.load(min_ps + row), tl.load(points + row)
        last, counts = last_bin(
            bins + row * parts * (LAST + 1), peaks, peak, total, temperature, top_k, top_p, min_p, point, size,
            parts, PARTS,
        )  # fmt: skip
        count = tl.sum(counts, 0)
        is_listed = count <= CAPACITY
        if is_listed:
            values = found_values + row * CAPACITY
        else:
            count, values = size, logits + row * logits_stride
        is_whole = (last == LAST) | (not is_listed)
        chosen = _drawn(
            values, count, is_whole, peak, total, temperature, top_k, top_p, min_p, point, size, BLOCK
        )  # fmt: skip
        if is_listed:
            chosen = tl.load(found_ids + row * CAPACITY + chosen)
    # Logits that are no numbers may lead anywhere; their log-probability is NaN, but the id must exist.
    chosen = tl.maximum(tl.minimum(chosen, size - 1), 0)
    logprob = (tl.load(original + row * original_stride + chosen) - highest) - tl.log(original_total)
    tl.store(drawn + row * 2, chosen.to(tl.int64))
    tl.store(drawn + row * 2 + 1, logprob.to(tl.int32, bitcast=True).to(tl.int64))


def sample_tokens(
    original: Tensor,
    logits: Tensor,
    drawn: Tensor,
    temperatures: Tensor,
    top_ks: Tensor,
    top_ps: Tensor,
    min_ps: Tensor,
    points: Tensor,
) -> None:
    """Writes one token per row to drawn int64 [rows, 2], dense; `ids_and_logprobs` takes it apart.

    original, logits: float32 [rows, vocab], last dimension dense, finite or -inf, before and after penalties (they may
    be the same tensor). temperatures float32 [rows], 0 for the likeliest token, negative for none: what `drawn` has for
    such a row stays there. top_ks int32 (0: off), top_ps (1: off),
    min_ps (0: off) float32; applied in this order, each to what the ones before left. points float32 in [0, 1): where
    on the cumulative distribution of what is kept, likeliest first and then by id, the token lies. Raises ValueError
    for shapes or dtypes that do not fit.
    """
    check_logits(original)
    check_logits(logits)
    if original.shape != logits.shape:
        raise ValueError(f"logits {tuple(logits.shape)} beside original ones {tuple(original.shape)}")
    rows, size = logits.shape
    check_dense((rows,), torch.float32, temperatures, top_ps, min_ps, points)
    check_dense((rows,), torch.int32, top_ks)
    check_dense((rows, 2), torch.int64, drawn)
    if rows:
        draws = temperatures, top_ks, top_ps, min_ps, points
        found = find_candidates(original, logits, *draws)
        parts = found.bests.shape[1]
        _sample_kernel[(rows,)](
            original, logits, *found, *draws, drawn,
            size, parts, original.stride(0), logits.stride(0),
            BLOCK=_BLOCK, PARTS=next_power_of_two(parts), CAPACITY=found.ids.shape[1], num_warps=8,
        )  # fmt: skip


def ids_and_logprobs(drawn: Tensor) -> tuple[Tensor, Tensor]:
    """Of what `sample_tokens` has written: ids int64 [rows], natural log-probabilities under `original` float32."""
    return drawn[:, 0], drawn[:, 1].to(torch.int32).view(torch.float32)
