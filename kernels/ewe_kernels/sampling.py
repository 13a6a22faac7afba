"""Choosing tokens from logits without sorting the vocabulary.

Tokens have an order, likeliest first and then by id; top_k, top_p and min_p each keep a beginning of it, and a draw
picks the token where the cumulative probability passes a point. Each of these places is found by bisecting over the
values of the logits, as 32-bit integers in the same order as the floats: some 13 passes over logits that lie in the L2
cache. The result is the one that sorting gives.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.tiles import next_power_of_two

# Logits per pass of a program: 8 per thread of 16 warps, whose sums of a whole row have room in registers.
_MOST_LOGITS = 4096
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
def _part_kernel(logits, temperatures, peaks, bests, totals, size, logits_stride, parts, BLOCK: tl.constexpr):
    """Of one part of one row: its greatest logit, the first id that has it, the sum of exponentials below it."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(temperatures + row) < 0:
        return
    at = part * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(logits + row * logits_stride + at, mask=at < size, other=float("-inf"))
    peak = tl.max(values, 0)
    place = row * parts + part
    tl.store(peaks + place, peak)
    tl.store(bests + place, tl.min(tl.where((values == peak) & (at < size), at, size), 0))
    tl.store(totals + place, tl.sum(tl.exp(values - tl.where(peak == float("-inf"), 0.0, peak)), 0))


@triton.jit
def _joined(peaks, bests, totals, size, row, parts, PARTS: tl.constexpr):
    """The greatest logit of a row, the first id that has it, and log of the sum of exponentials below it."""
    part = tl.arange(0, PARTS)
    place = row.to(tl.int64) * parts + part
    peak_of = tl.load(peaks + place, mask=part < parts, other=float("-inf"))
    total_of = tl.load(totals + place, mask=part < parts, other=0.0)
    best_of = tl.load(bests + place, mask=part < parts, other=0)
    peak = tl.max(peak_of, 0)
    best = tl.min(tl.where((peak_of == peak) & (part < parts), best_of, size), 0)
    safe = tl.where(peak == float("-inf"), 0.0, peak)
    return peak, best, tl.log(tl.sum(total_of * tl.exp(tl.where(total_of > 0, peak_of - safe, 0.0)), 0))


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
def _sample_kernel(
    original, logits, original_peaks, original_bests, original_totals, peaks, bests, totals,
    temperatures, top_ks, top_ps, min_ps, points, drawn, size, parts, original_stride, logits_stride,
    BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    temperature = tl.load(temperatures + row)
    if temperature < 0:
        return
    original += row.to(tl.int64) * original_stride
    logits += row.to(tl.int64) * logits_stride
    highest, chosen, log_total = _joined(original_peaks, original_bests, original_totals, size, row, parts, PARTS)
    peak, chosen, _log_total = _joined(peaks, bests, totals, size, row, parts, PARTS)
    if temperature > 0:
        inverse = 1.0 / temperature
        top_k, top_p, min_p = tl.load(top_ks + row), tl.load(top_ps + row), tl.load(min_ps + row)
        # What is kept: the tokens above the order `least`, of this mass, and the first `ties` ids that have it.
        least = tl.zeros([], tl.int32) + _IMPOSSIBLE
        ties = tl.zeros([], tl.int32)
        if (top_k > 0) & (top_k < size):
            least, count, mass = _first_bound(logits, size, least, top_k - 1, float("inf"), peak, inverse, BLOCK)
            ties = top_k - count
        else:
            _count, mass, _below, _beyond = _around(logits, size, least, peak, inverse, BLOCK)
        if top_p < 1.0:
            wanted = top_p * (mass + ties * _weight(least, peak, inverse))
            # A token is kept if what comes before it is under `wanted`, so the bound's own mass must be under it.
            wanted_above = wanted * (1.0 - 1.2e-7)
            bound, count, mass = _first_bound(logits, size, least, size, wanted_above, peak, inverse, BLOCK)
            reaching = tl.ceil((wanted - mass) / _weight(bound, peak, inverse)).to(tl.int32)
            ties = tl.where(bound == least, tl.minimum(ties, reaching), reaching)
            least = bound
        if min_p > 0.0:
            bound = _order(peak + temperature * tl.log(min_p)) - 1
            if bound >= least:
                least, ties = bound, tl.zeros([], tl.int32)
                _count, mass, _below, _beyond = _around(logits, size, least, peak, inverse, BLOCK)
        # Rounding must not reach the end, behind which there may be impossible tokens only.
        point = tl.minimum(tl.load(points + row), 1.0 - 1.2e-7) * (mass + ties * _weight(least, peak, inverse))
        order, count, mass = _first_bound(logits, size, least, size, point, peak, inverse, BLOCK)
        number = tl.floor((point - mass) / _weight(order, peak, inverse)).to(tl.int32)
        chosen = _nth_equal(logits, size, order, tl.where(order == least, tl.minimum(number, ties - 1), number), BLOCK)
    # Logits that are no numbers may lead anywhere; their log-probability is NaN, but the id must exist.
    chosen = tl.minimum(chosen, size - 1)
    logprob = (tl.load(original + chosen) - highest) - log_total
    tl.store(drawn + row * 2, chosen.to(tl.int64))
    tl.store(drawn + row * 2 + 1, logprob.to(tl.int32, bitcast=True).to(tl.int64))


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
    _check_logits(original)
    _check_logits(logits)
    if original.shape != logits.shape:
        raise ValueError(f"logits {tuple(logits.shape)} beside original ones {tuple(original.shape)}")
    rows, size = logits.shape
    _check((rows,), torch.float32, temperatures, top_ps, min_ps, points)
    _check((rows,), torch.int32, top_ks)
    _check((rows, 2), torch.int64, drawn)
    if rows:
        block = min(_MOST_LOGITS, next_power_of_two(size))
        parts = -(-size // block)
        found = _parts(original, temperatures, block, parts)
        adjusted = found if logits is original else _parts(logits, temperatures, block, parts)
        _sample_kernel[(rows,)](
            original, logits, *found, *adjusted, temperatures, top_ks, top_ps, min_ps, points, drawn,
            size, parts, original.stride(0), logits.stride(0),
            BLOCK=block, PARTS=next_power_of_two(parts), num_warps=16,
        )  # fmt: skip


def ids_and_logprobs(drawn: Tensor) -> tuple[Tensor, Tensor]:
    """Of what `sample_tokens` has written: ids int64 [rows], natural log-probabilities under `original` float32."""
    return drawn[:, 0], drawn[:, 1].to(torch.int32).view(torch.float32)


def _parts(logits: Tensor, temperatures: Tensor, block: int, parts: int) -> tuple[Tensor, Tensor, Tensor]:
    """What `_joined` takes, [rows, parts] each; several programs read a row, or one greedy row would take long."""
    rows, size = logits.shape
    peaks, totals = logits.new_empty(2, rows, parts).unbind()
    bests = torch.empty(rows, parts, dtype=torch.int32, device=logits.device)
    _part_kernel[(rows, parts)](
        logits, temperatures, peaks, bests, totals, size, logits.stride(0), parts, BLOCK=block, num_warps=8
    )
    return peaks, bests, totals


def _check_logits(logits: Tensor) -> None:
    if logits.dim() != 2 or logits.dtype != torch.float32 or logits.stride(1) != 1 or not logits.shape[1]:
        raise ValueError(f"logits must be float32 [rows, vocab], got {logits.dtype} {tuple(logits.shape)}")


def _check(shape: tuple[int, ...], dtype: torch.dtype, *tensors: Tensor) -> None:
    for tensor in tensors:
        if tensor.shape != shape or tensor.dtype != dtype or not tensor.is_contiguous():
            raise ValueError(f"expected a dense {dtype} {shape}, got {tensor.dtype} {tuple(tensor.shape)}")
