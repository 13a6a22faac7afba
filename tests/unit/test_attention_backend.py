"""The torch backend against literal eq. 1 in float64, in all precisions, over paged slots."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from parity.oracle import literal_attention, literal_in_prompt
from tolerances import ATTENTION

from ewe.engine.attention.backend import LayerCall
from ewe.engine.attention.metadata import ForwardRow, place_rows
from ewe.engine.attention.torch_backend import TorchBackend
from ewe.engine.attention.torch_plan import make_plan

KV_HEADS, GROUPS, DIM, SLOTS = 2, 3, 16, 400
SCALE = DIM**-0.5
# (unit lengths, cached context, new tokens); the decodes' lengths differ enough to fall into several groups.
SHAPES = [
    ((5, 9), 12, 1),
    ((), 0, 1),
    ((), 70, 1),
    ((4, 0, 17), 6, 5),
    ((), 0, 8),
    ((), 9, 7),
    ((3,), 0, 1),
    ((20, 20, 20), 40, 1),
]
PRECISIONS = [torch.float32, torch.float16, torch.bfloat16]
# All that a call may be in one precision, and one of each of the others; the rest in the slow tier.
CALLS = [
    pytest.param(
        dtype,
        *call,
        id=f"{dtype}-{'-'.join(map(str, call))}",
        marks=[] if dtype == torch.float32 or call == ["paper", 6, 2.0] else pytest.mark.slow,
    )
    for dtype, *call in product(PRECISIONS, ("paper", "plain"), (None, 6), (None, 2.0))
]


def make_rows(rng):
    """Rows over slots drawn without order or overlap; slot 0 stays out."""
    free = list(rng.permutation(np.arange(1, SLOTS)))

    def take(count):
        return np.array([free.pop() for _ in range(count)], np.int64)

    return [
        ForwardRow(
            [1] * new,
            0,
            take(cached + new),
            tuple(take(length) for length in units),
            tuple(0.3 + 0.9 * number for number in range(len(units))),
        )
        for units, cached, new in SHAPES
    ]


def make_call(batch, rng, dtype, softcap=None, spread=1.0):
    """Random queries, keys and values; the step's own keys are in the pool already, as the registry sees to."""

    def random(*shape):
        return torch.from_numpy(rng.standard_normal(shape)).to(dtype)

    pool_key, pool_value = random(SLOTS, KV_HEADS, DIM), random(SLOTS, KV_HEADS, DIM)
    pool_key[0] = pool_value[0] = 0
    query = random(KV_HEADS * GROUPS, len(batch.token_ids), DIM) * spread
    own = torch.from_numpy(batch.write_slots)
    key, value = pool_key[own].transpose(0, 1), pool_value[own].transpose(0, 1)
    return LayerCall(query, key, value, pool_key, pool_value, SCALE, softcap)


def expected_outputs(batch, call, merge, window):
    """[T, Hq, D] in float64, query by query."""
    output = torch.empty(len(batch.token_ids), KV_HEADS * GROUPS, DIM, dtype=torch.float64)
    for item in batch.rows:
        row = item.row
        for token in range(item.begin, item.end):
            last = len(row.context_slots) - (item.end - token)
            first = 0 if window is None else max(0, last - window + 1)
            visible = row.context_slots[first : last + 1]
            for head in range(KV_HEADS * GROUPS):
                *memory, context = [
                    (call.pool_key[s, head // GROUPS], call.pool_value[s, head // GROUPS])
                    for s in (*row.memory_slots, visible)
                ]
                literal, seen = literal_attention, [memory]
                if row.prefix_slots is not None:
                    literal, seen = literal_in_prompt, [memory[0], memory[1:]]
                output[token, head] = literal(
                    call.query[head, token], *seen, context, row.unit_weights, merge, SCALE, call.softcap
                )
    return output


def rows_in_prompts(rng):
    """The rows that share, half of them after one of two prefixes; and two units after a prefix, one of one token."""
    rows = rows_that_share(rng)
    taken = {int(slot) for row in rows for part in (*row.unit_slots, row.context_slots) for slot in part}
    free = sorted({*range(1, SLOTS)} - taken)
    prefixes = [np.array(free[:21]), np.array(free[21:25])]
    placed = [(prefixes[0], 0), (prefixes[0], 3), (prefixes[1], 1), (prefixes[1], 6), (prefixes[1], 2)]
    for prefix, number in placed:
        rows[number] = replace(rows[number], prefix_slots=prefix)
    units = [np.array(free[25:34]), np.array(free[34:35])]
    return rows + [ForwardRow([1] * len(unit), 21, unit, prefix_slots=prefixes[0]) for unit in units]


def rows_that_share(rng):
    """Two memories that several rows have, in between rows without and of several tokens; their weights differ."""
    slots = rng.permutation(np.arange(1, SLOTS))
    units = [slots[:9], slots[9:40], slots[40:44], slots[44:60]]
    memories = [(0, 1), (2,), (), (0, 1), (3, 1), (2,), (0, 1), (1, 0)]
    lengths = [(31, 1), (8, 1), (12, 1), (2, 1), (5, 1), (30, 1), (17, 6), (40, 1)]
    ends = 60 + np.cumsum([length for length, _ in lengths])
    return [
        ForwardRow(
            [1] * new,
            0,
            slots[end - length : end],
            tuple(units[number] for number in memory),
            tuple(0.5 + index + number for number in range(len(memory))),
        )
        for index, (memory, (length, new), end) in enumerate(zip(memories, lengths, ends, strict=True))
    ]


@pytest.mark.parametrize(("dtype", "merge", "window", "softcap"), CALLS)
@pytest.mark.parametrize(
    ("make", "slot_bytes"), [(make_rows, 64 * 1024), (rows_that_share, 16 * 1024), (rows_in_prompts, 16 * 1024)]
)
def test_equals_literal_attention(make, slot_bytes, dtype, merge, window, softcap):
    rng = np.random.default_rng(5)
    batch = place_rows(make(rng), merge)
    call = make_call(batch, rng, dtype, softcap)
    backend = TorchBackend(torch.device("cpu"), slot_bytes)
    plan = backend.plan(batch, window, attribution=False)
    assert len(plan.decodes) > 1
    found = backend.attend(call, plan)
    assert found.dtype == dtype
    tolerance = ATTENTION[dtype]
    torch.testing.assert_close(
        found.double(), expected_outputs(batch, call, merge, window), atol=tolerance, rtol=tolerance
    )


@pytest.mark.parametrize(("window", "expected"), [(None, [(2, 40)]), (2, [(2, 4), (2, 40)])])
def test_units_that_rows_share_are_gathered_once(window, expected):
    """Where they are little of what the rows see, they are not."""
    batch = place_rows(rows_that_share(np.random.default_rng(9)), "paper")
    plan = TorchBackend(torch.device("cpu"), slot_bytes=16 * 1024).plan(batch, window, attribution=False)
    assert [(group.end - group.begin, len(group.units.slots)) for group in plan.decodes if group.units] == expected
    with_shares = TorchBackend(torch.device("cpu"), slot_bytes=16 * 1024).plan(batch, window, attribution=True)
    assert not any(group.units for group in with_shares.decodes)


def test_one_group_gives_what_several_give():
    rng = np.random.default_rng(6)
    batch = place_rows(make_rows(rng), "paper")
    call = make_call(batch, rng, torch.float32)
    few, many = (TorchBackend(torch.device("cpu"), 10**9) for _ in range(2))
    few._most_slots = None
    plans = few.plan(batch, None, False), many.plan(batch, None, False)
    assert [len(plan.decodes) for plan in plans] == [1, batch.num_single]
    torch.testing.assert_close(
        few.attend(call, plans[0]), many.attend(call, plans[1]), atol=ATTENTION[torch.float32], rtol=0
    )


@pytest.mark.parametrize(
    ("most_slots", "expected"),
    [
        (10**6, [[10, 11, 12, 14], [100, 104, 108, 112, 116], [300]]),
        (250, [[10, 11, 12, 14], [100, 104], [108, 112], [116], [300]]),
        (None, [[10, 11, 12, 14, 100, 104, 108, 112, 116, 300]]),
    ],
)
def test_groups_keep_to_their_limits(most_slots, expected):
    rows = [ForwardRow([1], 0, np.arange(1, 1 + length)) for length in (300, 10, 12, 14, 100, 104, 108, 112, 116, 11)]
    plan = make_plan(place_rows(rows, "paper"), None, False, torch.device("cpu"), most_slots)
    lengths = sorted(len(row.context_slots) for row in rows)
    assert [lengths[group.begin : group.end] for group in plan.decodes] == expected


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_biases_are_not_rounded_to_the_precision_of_the_query(dtype):
    """Eight units and a context that weigh exactly the same together; log 9 rounded to bfloat16 would be 0.6% off."""
    units = tuple(np.arange(8 + 9 * number, 17 + 9 * number) for number in range(8))
    context = np.arange(100, 108)
    batch = place_rows([ForwardRow([1], 0, context, units, (1.0,) * 8)], "paper")
    pool_key = torch.zeros(SLOTS, KV_HEADS, DIM, dtype=dtype)
    pool_value = torch.ones(SLOTS, KV_HEADS, DIM, dtype=dtype)
    pool_value[context] = -1.0
    query = torch.zeros(KV_HEADS * GROUPS, 1, DIM, dtype=dtype)
    own = torch.zeros(KV_HEADS, 1, DIM, dtype=dtype)
    backend = TorchBackend(torch.device("cpu"), 1024)
    plan = backend.plan(batch, None, False)
    found = backend.attend(LayerCall(query, own, own, pool_key, pool_value, SCALE, None), plan)
    assert found.abs().max() < 1e-3


def test_large_logits_stay_finite():
    rng = np.random.default_rng(7)
    batch = place_rows(make_rows(rng), "paper")
    call = make_call(batch, rng, torch.float32, spread=200.0)
    backend = TorchBackend(torch.device("cpu"), 1024)
    assert backend.attend(call, backend.plan(batch, None, False)).isfinite().all()


def test_shares_sum_to_one_in_every_kind_of_row():
    rng = np.random.default_rng(8)
    batch = place_rows(make_rows(rng), "paper")
    call = make_call(batch, rng, torch.float32)
    backend = TorchBackend(torch.device("cpu"), 16 * 1024)
    shares = torch.zeros(len(SHAPES), 4)
    backend.shares(call, backend.plan(batch, None, True), shares)
    torch.testing.assert_close(shares.sum(1), torch.ones(len(SHAPES)))
    empty_unit = shares[3, 1]
    assert empty_unit == 0.0
    assert all(shares[number, len(units) + 1 :].eq(0).all() for number, (units, _, _) in enumerate(SHAPES))
