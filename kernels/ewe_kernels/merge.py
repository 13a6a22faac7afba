"""Joining states of attention by their LSE: the second half of split-KV decoding.

A state is an output and its LSE (natural log, float32) over some of the keys; states over disjoint keys join to the
attention over all of them, with weights exp(lse + bias).
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.checks import check_indices
from ewe_kernels.device import LOG2_E, natural_lse
from ewe_kernels.tiles import next_power_of_two

# States that one pass takes together; a row has about a dozen.
_STATES = 16


@triton.jit
def _merge_kernel(
    outputs, lses, biases, begins, sinks, sink_biases, merged, merged_lse,
    merged_stride_row, merged_stride_head,
    DV: tl.constexpr, DV_PADDED: tl.constexpr, STATES: tl.constexpr, SINKS: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    num_heads = tl.num_programs(1)
    begin, end = tl.load(begins + row), tl.load(begins + row + 1)
    column = tl.arange(0, DV_PADDED)
    # Starting from a finite peak keeps empty states from giving NaN; below -1e30 nothing counts.
    peak = tl.full([], -1.0e30, tl.float32)
    total = tl.zeros([], tl.float32)
    if SINKS:
        # A sink is a logit without a value: it takes its share and gives nothing.
        peak = tl.maximum(peak, (tl.load(sinks + head) + tl.load(sink_biases + row)) * LOG2_E)
        total += 1.0
    acc = tl.zeros([DV_PADDED], tl.float32)
    for start in range(begin, end, STATES):
        state = start + tl.arange(0, STATES)
        real = state < end
        at = state.to(tl.int64) * num_heads + head
        lse = tl.load(lses + at, mask=real, other=float("-inf")) + tl.load(biases + state, mask=real, other=0.0)
        new_peak = tl.maximum(peak, tl.max(lse * LOG2_E, 0))
        weight = tl.exp2(lse * LOG2_E - new_peak)
        shrink = tl.exp2(peak - new_peak)
        mask = real[:, None] & (column < DV)[None, :]
        values = tl.load(outputs + at[:, None] * DV + column[None, :], mask=mask, other=0.0)
        acc = acc * shrink + tl.sum(values * weight[:, None], 0)
        total = total * shrink + tl.sum(weight, 0)
        peak = new_peak
    acc = acc / tl.where(total == 0.0, 1.0, total)
    place = merged + row.to(tl.int64) * merged_stride_row + head * merged_stride_head
    tl.store(place + column, acc.to(merged.dtype.element_ty), mask=column < DV)
    tl.store(merged_lse + row * num_heads + head, natural_lse(peak, total))


def merge_states(
    outputs: Tensor,
    lses: Tensor,
    biases: Tensor,
    begins: Tensor,
    merged: Tensor,
    sinks: Tensor | None = None,
    sink_biases: Tensor | None = None,
) -> Tensor:
    """Joins the states begins[r] .. begins[r + 1] of every row r into merged[r]; returns the LSE of each row and head.

    outputs float32 [states, Hq, Dv] and lses float32 [states, Hq], dense; biases float32 [states], added to the LSE
    (eq. 1 of the EWE paper, folded: log w_i on units, log(1 + sum w) on the context); begins int32 [rows + 1]; merged
    [rows, Hq, Dv] of any float dtype, last dimension dense. sinks float32 [Hq]: one more logit per head that has no
    value, with sink_biases float32 [rows] added (the context's, because the paper's k + 1 attentions each have the
    sink). Returned: float32 [rows, Hq], natural log. Without any state, or with empty ones only, the output is 0 and
    the LSE -inf. Raises ValueError for shapes or dtypes that do not fit.
    """
    rows, heads, value_dim = merged.shape
    if outputs.shape[1:] != (heads, value_dim) or lses.shape != outputs.shape[:2] or biases.shape != lses.shape[:1]:
        raise ValueError(f"states {tuple(outputs.shape)}, {tuple(lses.shape)} do not fit {tuple(merged.shape)}")
    if any(item.dtype != torch.float32 or not item.is_contiguous() for item in (outputs, lses, biases)):
        raise ValueError("states and biases must be dense float32")
    if (sinks is None) != (sink_biases is None):
        raise ValueError("sinks need sink_biases, and the other way round")
    check_indices(begins=(begins, None))
    if begins.shape != (rows + 1,):
        raise ValueError(f"{len(begins)} begins for {rows} rows; one more than rows is needed")
    merged_lse = torch.empty(rows, heads, device=merged.device)
    if rows:
        _merge_kernel[(rows, heads)](
            outputs, lses, biases, begins, sinks, sink_biases, merged, merged_lse,
            merged.stride(0), merged.stride(1),
            DV=value_dim, DV_PADDED=next_power_of_two(value_dim), STATES=_STATES, SINKS=sinks is not None,
            num_warps=4,
        )  # fmt: skip
    return merged_lse
