"""Runs of tokens over units and context, against literal eq. 1 of the paper in float64."""

from __future__ import annotations

import pytest
import torch
from ewe_kernels.prefill import attend_runs
from ewe_kernels.references import attention_state
from kernel_parts import BLOCK, PRECISIONS, int32, make_pool
from parity.oracle import literal_attention
from tolerances import ATTENTION

from ewe.engine.attention.merge import merge_biases

VALUE_DIM = 16
# Query heads, key heads, width of keys, cap, window.
SHAPES = [(6, 1, 16, None, None), (2, 2, 24, 3.0, 6), (6, 1, 16, None, 6)]
# (unit lengths, cached context, new tokens); the last has more tokens than a tile, and the two before it have contexts
# that whole passes of keys are taken of: all up to the first token, and one less than a pass more.
RUNS = [((5, 70), 12, 3), ((), 0, 9), ((4, 0, 17), 6, 5), ((1,), 0, 2), ((), 63, 3), ((2,), 126, 3), ((), 3, 24)]
WEIGHTS = (0.3, 1.2, 2.1)
# Tokens before those of the runs: as many as several tiles hold, and left alone.
FIRST = 7


def make_runs(pool):
    """The kernel's index tensors as lists, and per run its units' slots, its context's slots, its first token."""
    runs, segments, biases, held, begin = [], [], [], [], FIRST
    for lengths, cached, new in RUNS:
        runs.append((begin, new, len(segments), len(lengths)))
        parts = [pool.segment(length) for length in (*lengths, cached + new)]
        segments += [(table, len(slots)) for table, slots in parts]
        unit_biases, context_bias = merge_biases(WEIGHTS[: len(lengths)], "paper")
        biases += [*unit_biases, context_bias]
        *units, context = [slots for _, slots in parts]
        held.append((units, context, begin))
        begin += new
    return runs, segments, biases, held, begin


def select(pool, slots, head):
    return pool.keys[slots, head].cpu(), pool.values[slots, head].cpu()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_equals_literal_attention(device, dtype, shape):
    heads, kv_heads, dim, softcap, window = shape
    pool = make_pool(device, dtype, kv_heads, dim, VALUE_DIM, blocks=150)
    runs, segments, biases, held, tokens = make_runs(pool)
    query = (torch.randn(tokens, heads, dim, device=device) * 2).to(dtype).transpose(0, 1)
    output = torch.full((tokens, heads, VALUE_DIM), torch.nan, dtype=dtype, device=device)
    lses = torch.full((tokens, heads, 4), torch.nan, device=device)
    attend_runs(
        query, pool.keys, pool.values, BLOCK, int32(pool.tables, device), int32(runs, device),
        int32(segments, device), torch.tensor(biases, device=device), output,
        dim**-0.5, softcap, window, lses,
    )  # fmt: skip
    assert output[:FIRST].isnan().all()
    output, lses = output[FIRST:], lses[FIRST:]
    expected, expected_lses = output.cpu().double(), lses.cpu().double()
    for (units, context, begin), (_, new, first, _) in zip(held, runs, strict=True):
        for number in range(new):
            last = len(context) - new + number
            visible = context[max(0, last + 1 - (window or last + 1)) : last + 1]
            for head in range(heads):
                kv_head, row = head * kv_heads // heads, query[head, begin + number].cpu()
                parts = [select(pool, slots, kv_head) for slots in (*units, visible)]
                expected[begin - FIRST + number, head] = literal_attention(
                    row, parts[:-1], parts[-1], WEIGHTS[: len(units)], "paper", dim**-0.5, softcap
                )
                for place, (keys, values) in enumerate(parts):
                    lse = attention_state(row[None], keys[:, None], values[:, None], dim**-0.5, softcap)[1]
                    expected_lses[begin - FIRST + number, head, place] = lse[0] + biases[first + place]
    tolerance = ATTENTION[dtype]
    torch.testing.assert_close(output.cpu().double(), expected, atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(lses.cpu().double(), expected_lses, atol=tolerance, rtol=tolerance, equal_nan=True)


def test_what_does_not_fit_is_refused():
    pool = make_pool("cpu", torch.float32, 1, 16, 16)
    table, _ = pool.segment(3)
    query = torch.randn(2, 3, 16)

    def attend(output, biases):
        attend_runs(
            query, pool.keys, pool.values, BLOCK, int32(pool.tables, "cpu"), int32([(0, 3, 0, 0)], "cpu"),
            int32([(table, 3)], "cpu"), biases, output, 0.25, None, None,
        )  # fmt: skip

    attend(torch.empty(3, 2, 16), torch.zeros(1))
    with pytest.raises(ValueError, match="output of shape"):
        attend(torch.empty(2, 3, 16), torch.zeros(1))
    with pytest.raises(ValueError, match="one per segment"):
        attend(torch.empty(3, 2, 16), torch.zeros(2))
    with pytest.raises(ValueError, match="float32"):
        attend(torch.empty(3, 2, 16), torch.zeros(1).double())
