"""The Triton backend against literal eq. 1 in float64, over rows of every kind in one batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from kernel_parts import BLOCK, PRECISIONS
from parity.oracle import literal_attention, literal_in_prompt
from tolerances import ATTENTION, SHARES

from ewe.engine.attention.backend import LayerCall
from ewe.engine.attention.metadata import ForwardRow, place_rows
from ewe.engine.attention.packed import Packed
from ewe.engine.attention.static_plan import PlanSizes
from ewe.engine.attention.torch_backend import TorchBackend
from ewe.engine.attention.triton_backend import TritonBackend

KV_HEADS, GROUPS, DIM, BLOCKS = 2, 3, 16, 120
SCALE = DIM**-0.5
# (units by number, own context before, new tokens). Units 0 and 1 are seen by several rows; unit 2 is empty.
UNIT_LENGTHS = (9, 140, 0, 3)
ROWS = [((0, 1), 12, 1), ((), 0, 1), ((0, 2, 1), 6, 5), ((), 0, 8), ((1, 3), 0, 1), ((2,), 135, 1)]


def make_rows(rng):
    """Rows over blocks in no order; block 0 stays out."""
    free = list(rng.permutation(np.arange(1, BLOCKS)))

    def take(length):
        blocks = np.array([free.pop() for _ in range(-(-length // BLOCK))], np.int64)
        return (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()[:length]

    units = [take(length) for length in UNIT_LENGTHS]
    return [
        ForwardRow(
            [1] * new,
            0,
            take(cached + new),
            tuple(units[number] for number in numbers),
            tuple(0.3 + 0.9 * place for place in range(len(numbers))),
        )
        for numbers, cached, new in ROWS
    ]


def rows_in_prompts(rng):
    """The same rows, but the first, third and fifth follow a prefix: what was unit 3; and a unit after it."""
    rows = make_rows(rng)
    prefix, own = rows[4].unit_slots[1], rows[3].context_slots
    for number in (0, 2, 4):
        row = rows[number]
        units = tuple(slots for slots in row.unit_slots if slots is not prefix)
        rows[number] = replace(row, unit_slots=units, unit_weights=row.unit_weights[: len(units)], prefix_slots=prefix)
    rows[3] = ForwardRow([1] * len(own), len(prefix), own, prefix_slots=prefix)
    return rows


def make_call(batch, rng, device, dtype, softcap=None, spread=1.0):
    def random(*shape):
        return torch.from_numpy(rng.standard_normal(shape)).to(device, dtype)

    pool_key, pool_value = random(BLOCKS * BLOCK, KV_HEADS, DIM), random(BLOCKS * BLOCK, KV_HEADS, DIM)
    query = (random(len(batch.token_ids), KV_HEADS * GROUPS, DIM) * spread).transpose(0, 1)
    own = torch.from_numpy(batch.write_slots)
    key, value = pool_key[own].transpose(0, 1), pool_value[own].transpose(0, 1)
    return LayerCall(query, key, value, pool_key, pool_value, SCALE, softcap)


def expected_outputs(batch, call, merge, window):
    """[T, Hq, D] in float64, query by query."""
    query, keys, values = (item.cpu() for item in (call.query, call.pool_key, call.pool_value))
    output = torch.empty(len(batch.token_ids), KV_HEADS * GROUPS, DIM, dtype=torch.float64)
    for item in batch.rows:
        for token in range(item.begin, item.end):
            last = len(item.row.context_slots) - (item.end - token)
            visible = item.row.context_slots[0 if window is None else max(0, last - window + 1) : last + 1]
            for head in range(KV_HEADS * GROUPS):
                *memory, context = [
                    (keys[slots, head // GROUPS], values[slots, head // GROUPS])
                    for slots in (*item.row.memory_slots, visible)
                ]
                literal, seen = literal_attention, [memory]
                if item.row.prefix_slots is not None:
                    literal, seen = literal_in_prompt, [memory[0], memory[1:]]
                output[token, head] = literal(
                    query[head, token], *seen, context, item.row.unit_weights, merge, SCALE, call.softcap
                )
    return output


@pytest.mark.parametrize("make", [make_rows, rows_in_prompts])
@pytest.mark.parametrize(("merge", "window", "softcap"), [("paper", None, None), ("plain", 6, None), ("paper", 6, 2.0)])
@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_equals_literal_attention(device, dtype, merge, window, softcap, make):
    rng = np.random.default_rng(5)
    batch = place_rows(make(rng), merge)
    call = make_call(batch, rng, device, dtype, softcap)
    backend = TritonBackend(torch.device(device), BLOCK, KV_HEADS)
    plan = backend.plan(batch, window, attribution=False)
    assert plan.decode.most_sharing == 2, "nothing is shared"
    found = backend.attend(call, plan)
    assert found.dtype == dtype
    expected = expected_outputs(batch, call, merge, window)
    torch.testing.assert_close(found.cpu().double(), expected, atol=ATTENTION[dtype], rtol=ATTENTION[dtype])


# The interpreter is slow, and which sizes a plan has is nothing of its precision: one on a CPU.
@pytest.mark.parametrize("window", [None, 6])
@pytest.mark.parametrize(("device", "dtype"), [PRECISIONS[0], *PRECISIONS[2:]])
def test_a_plan_of_fixed_sizes_gives_the_same_and_zeros_to_what_pads_it(device, dtype, window):
    """Whatever was in its tensors before: here all rows, then some of them."""
    rng = np.random.default_rng(5)
    rows = make_rows(rng)
    backend = TritonBackend(torch.device(device), BLOCK, KV_HEADS)
    sizes = PlanSizes.of(8, 3, backend.target_pieces, BLOCKS, longer=24)
    packed = Packed(sizes.layout(), torch.device(device))
    plan = sizes.plan(packed.device, window)
    for some in (rows, rows[2:4], rows[:2]):
        batch = place_rows(some, "paper")
        call = make_call(batch, rng, device, dtype)
        expected = backend.attend(call, backend.plan(batch, window, False))
        arranged = backend.arrange(batch, window, sizes.states)
        assert sizes.hold(arranged)
        packed.wait()
        sizes.fill(packed.host, arranged, len(batch.token_ids))
        packed.upload()
        padding = call.query.new_full((KV_HEADS * GROUPS, sizes.tokens - len(batch.token_ids), DIM), torch.nan)
        found = backend.attend(replace(call, query=torch.cat([call.query, padding], 1)), plan)
        torch.testing.assert_close(found[: len(expected)], expected, atol=ATTENTION[dtype], rtol=ATTENTION[dtype])
        assert not found[len(expected) :].any()


def test_large_logits_stay_finite_and_right():
    rng = np.random.default_rng(7)
    batch = place_rows(make_rows(rng), "paper")
    call = make_call(batch, rng, "cpu", torch.float32, spread=100.0)
    backend = TritonBackend(torch.device("cpu"), BLOCK, KV_HEADS)
    found = backend.attend(call, backend.plan(batch, None, False))
    # The reference holds logits up to 700; one of a few hundred is off by about 1e-5 in float32.
    torch.testing.assert_close(found.double(), expected_outputs(batch, call, "paper", None), atol=1e-3, rtol=0)


@pytest.mark.parametrize("make", [make_rows, rows_in_prompts])
def test_shares_equal_those_of_the_torch_backend(make):
    rng = np.random.default_rng(8)
    batch = place_rows(make(rng), "paper")
    call = make_call(batch, rng, "cpu", torch.float32)
    results = []
    for backend in (TritonBackend(torch.device("cpu"), BLOCK, KV_HEADS), TorchBackend(torch.device("cpu"), 1024)):
        results.append(torch.zeros(len(ROWS), 5))
        backend.shares(call, backend.plan(batch, 6, True), results[-1])
    torch.testing.assert_close(results[0], results[1], atol=SHARES, rtol=0)


def test_a_shared_unit_is_cut_into_pieces_once():
    batch = place_rows(make_rows(np.random.default_rng(9)), "paper")
    plan = TritonBackend(torch.device("cpu"), BLOCK, KV_HEADS).plan(batch, None, False).decode
    # The three rows of one token with units: unit 1 (two pieces, two readers), the rest alone.
    assert plan.shared[:, 4].tolist() == [2, 2]
    assert (plan.shared[:, 2] - plan.shared[:, 1]).sum() == UNIT_LENGTHS[1]
    # Unit 0, unit 3, and the contexts of four rows, of which one is long enough for two pieces.
    assert len(plan.alone) == 2 + 5
    assert plan.num_states == len(plan.alone) + 2 * len(plan.shared)
