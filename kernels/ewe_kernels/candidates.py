"""The few tokens of each row that a draw can be among, listed in two passes over the logits.

Many programs share a row, each reads a part of it. The first pass leaves, per part, what a softmax needs and how many
logits lie in each of 64 bins, whose weights fall by e^0.5 from one to the next. The counts bound the mass of what lies
behind a bin, so they tell up to which bin a draw can come; the second pass lists the logits up to there, by id. Parts
depend on the vocabulary alone and are summed in a fixed order, so a row's result depends on nothing beside the row.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.tiles import next_power_of_two

# Logits per program: 16 per thread of 8 warps. Their counts fit into 16 bits.
_MOST_LOGITS = 4096
# Candidates that are listed per row; where there are more, the logits themselves are searched.
_CAPACITY = 32768
# The last bin, which holds all that weighs less than e^-31 of the peak.
LAST = tl.constexpr(63)


class Candidates(NamedTuple):
    """What `_sample_kernel` reads.

    statistics: float32 [rows, 4, parts], as `joined` takes them, of the original logits and of the adjusted ones.
    bests: int32 [rows, parts], the first id of the greatest adjusted logit. bins: int16 [rows, parts, 64], how many
    logits lie in each, and in place of the last how many can be drawn. values, ids: float32 and int32 [rows, capacity],
    the candidates by id.
    """

    statistics: Tensor
    bests: Tensor
    bins: Tensor
    values: Tensor
    ids: Tensor


@triton.jit
def _bin(values, peak, inverse):
    """Which bin a logit lies in, counted from that of the peak; never less for a lower logit."""
    # Differences of whole floats are exact up to the last bin.
    steps = tl.floor(peak * (2.0 * inverse)) - tl.floor(values * (2.0 * inverse))
    return tl.where(steps < LAST, steps, LAST).to(tl.int32)


@triton.jit
def _finite(peak):
    """A peak to subtract, also where nothing can be drawn."""
    return tl.where(peak == float("-inf"), 0.0, peak)


@triton.jit
def joined(statistics, inverse, parts, PARTS: tl.constexpr):
    """Each part's greatest logit, the row's, and the row's sum of exp((logit - greatest) * inverse).

    statistics: the parts' greatest logits, then their sums.
    """
    part = tl.arange(0, PARTS)
    peaks = tl.load(statistics + part, mask=part < parts, other=float("-inf"))
    totals = tl.load(statistics + parts + part, mask=part < parts, other=0.0)
    peak = tl.max(peaks, 0)
    weights = tl.exp(tl.where(totals > 0, (peaks - _finite(peak)) * inverse, 0.0))
    return peaks, peak, tl.sum(totals * weights, 0)


@triton.jit
def last_bin(
    bins, peaks, peak, total, temperature, top_k, top_p, min_p, point, size, parts, PARTS: tl.constexpr
):  # fmt: skip
    """The last bin that a draw can come to, and how many logits [PARTS] of each part lie in the bins up to it."""
    inverse, peak = 1.0 / temperature, _finite(peak)
    part, bin = tl.arange(0, PARTS), tl.arange(0, LAST + 1)
    # A part counts from its own peak.
    own = bin[None, :] - _bin(peaks, peak, inverse)[:, None]
    within = (part < parts)[:, None] & (own >= 0) & (bin < LAST)[None, :]
    counts = tl.load(bins + part[:, None] * (LAST + 1) + own, mask=within, other=0).to(tl.int32)
    of_part = tl.load(bins + part * (LAST + 1) + LAST, mask=part < parts, other=0).to(tl.int32)
    of_bin = tl.sum(counts, 0)
    of_bin += tl.where(bin == LAST, tl.sum(of_part, 0) - tl.sum(of_bin, 0), 0)
    if (top_k > 0) & (top_k < size):
        is_enough = tl.cumsum(of_bin, 0) >= top_k
    elif (top_p >= 1.0) & (min_p > 0.0):
        is_enough = bin > _bin(peak + temperature * tl.log(min_p), peak, inverse)
    else:
        # The most that a logit of a bin can weigh, with what rounding may have done to its bin.
        border = (tl.floor(peak * (2.0 * inverse)) + 1.0 - bin) * 0.5 - peak * inverse
        border += (tl.abs(peak) * inverse + 32.0) * 1e-6
        mass = of_bin * tl.exp(tl.minimum(border, 0.0))
        behind = tl.cumsum(mass, 0, reverse=True) - mass
        # The rest is for rounding in the sums.
        is_enough = behind <= (1.0 - tl.where(top_p < 1.0, top_p, point) - 1e-5) * total
    last = tl.min(tl.where(is_enough, bin, LAST), 0)
    listed = tl.sum(tl.where(bin[None, :] <= last, counts, 0), 1)
    return last, tl.where(last == LAST, of_part, listed)


@triton.jit
def _peak_and_total(values, inverse):
    peak = tl.max(values, 0)
    return peak, tl.sum(tl.exp((values - _finite(peak)) * inverse), 0)


@triton.jit
def _statistics_kernel(
    original, logits, statistics, bests, bins, temperatures, size, parts, original_stride, logits_stride,
    SAME: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    temperature = tl.load(temperatures + row)
    if temperature < 0:
        return
    at = part * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(original + row * original_stride + at, mask=at < size, other=float("-inf"))
    peak, total = _peak_and_total(values, 1.0)
    statistics += row * 4 * parts + part
    tl.store(statistics, peak)
    tl.store(statistics + parts, total)
    if not SAME:
        values = tl.load(logits + row * logits_stride + at, mask=at < size, other=float("-inf"))
        peak = tl.max(values, 0)
    tl.store(statistics + 2 * parts, peak)
    tl.store(bests + row * parts + part, tl.min(tl.where((values == peak) & (at < size), at, size), 0))
    if temperature > 0:
        inverse = 1.0 / temperature
        peak, total = _peak_and_total(values, inverse)
        tl.store(statistics + 3 * parts, total)
        counts = tl.histogram(_bin(values, _finite(peak), inverse), LAST + 1)
        bin = tl.arange(0, LAST + 1)
        # The last one has room for the number of all that can be drawn: its own follows from that.
        counts = tl.where(bin == LAST, tl.sum((values > float("-inf")).to(tl.int32), 0), counts)
        tl.store(bins + (row * parts + part) * (LAST + 1) + bin, counts.to(tl.int16))


@triton.jit
def _candidates_kernel(
    logits, statistics, bins, found_values, found_ids, temperatures, top_ks, top_ps, min_ps, points,
    size, parts, logits_stride, BLOCK: tl.constexpr, PARTS: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    temperature = tl.load(temperatures + row)
    if temperature <= 0:
        return
    inverse = 1.0 / temperature
    statistics += row * 4 * parts + 2 * parts
    peaks, peak, total = joined(statistics, inverse, parts, PARTS)
    last, counts = last_bin(
        bins + row * parts * (LAST + 1), peaks, peak, total, temperature, tl.load(top_ks + row), tl.load(top_ps + row),
        tl.load(min_ps + row), tl.load(points + row), size, parts, PARTS,
    )  # fmt: skip
    parts_before = tl.arange(0, PARTS)
    own_count = tl.sum(tl.where(parts_before == part, counts, 0), 0)
    if (own_count == 0) | (tl.sum(counts, 0) > CAPACITY):
        return
    at = part * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(logits + row * logits_stride + at, mask=at < size, other=float("-inf"))
    own_peak = _finite(tl.load(statistics + part))
    bin = tl.minimum(_bin(values, own_peak, inverse) + _bin(own_peak, _finite(peak), inverse), LAST)
    is_candidate = (bin <= last) & (values > float("-inf"))
    place = tl.sum(tl.where(parts_before < part, counts, 0), 0) + tl.cumsum(is_candidate.to(tl.int32), 0) - 1
    tl.store(found_values + row * CAPACITY + place, values, mask=is_candidate & (place < CAPACITY))
    tl.store(found_ids + row * CAPACITY + place, at, mask=is_candidate & (place < CAPACITY))


def find_candidates(
    original: Tensor,
    logits: Tensor,
    temperatures: Tensor,
    top_ks: Tensor,
    top_ps: Tensor,
    min_ps: Tensor,
    points: Tensor,
) -> Candidates:
    """What each row's draw is among; arguments as `sample_tokens` has them, which checks them."""
    rows, size = logits.shape
    block = min(_MOST_LOGITS, next_power_of_two(size))
    parts = -(-size // block)
    capacity = min(_CAPACITY, next_power_of_two(size))
    found = Candidates(
        logits.new_empty(rows, 4, parts),
        logits.new_empty(rows, parts, dtype=torch.int32),
        logits.new_empty(rows, parts, LAST.value + 1, dtype=torch.int16),
        logits.new_empty(rows, capacity),
        logits.new_empty(rows, capacity, dtype=torch.int32),
    )
    _statistics_kernel[(rows, parts)](
        original, logits, found.statistics, found.bests, found.bins, temperatures,
        size, parts, original.stride(0), logits.stride(0), SAME=logits is original, BLOCK=block, num_warps=8,
    )  # fmt: skip
    _candidates_kernel[(rows, parts)](
        logits, found.statistics, found.bins, found.values, found.ids, temperatures, top_ks, top_ps, min_ps, points,
        size, parts, logits.stride(0),
        BLOCK=block, PARTS=next_power_of_two(parts), CAPACITY=capacity, num_warps=8,
    )  # fmt: skip
    return found
