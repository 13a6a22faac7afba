"""Pieces of paged segments and their merge, against float64."""

from __future__ import annotations

import math

import pytest
import torch
from ewe_kernels.decode import attend_pieces
from ewe_kernels.merge import merge_states
from ewe_kernels.references import attention_state, merged_state
from ewe_kernels.tiles import narrow_tile, wide_tile
from kernel_parts import BLOCK, PRECISIONS, int32, make_pool
from tolerances import ATTENTION

# Query heads, key heads, width of keys, of values, cap: packed heads that fill no tile, odd widths, one key head.
SHAPES = [(6, 2, 16, 16, None), (2, 2, 24, 16, 3.0), (20, 1, 16, 40, None)]


def states(count, heads, value_dim, device):
    """Places for states, filled with what must be written over."""
    outputs = torch.full((count, heads, value_dim), torch.nan, device=device)
    return outputs, torch.full((count, heads), torch.nan, device=device)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_each_piece_gives_the_state_of_its_keys(device, dtype, shape):
    heads, kv_heads, dim, value_dim, softcap = shape
    pool = make_pool(device, dtype, kv_heads, dim, value_dim)
    query = (torch.randn(5, heads, dim, device=device) * 2).to(dtype).transpose(0, 1)
    (one, one_slots), (other, other_slots) = pool.segment(75), pool.segment(7)
    # (table, first key, last key, slots, readers): a whole segment, an inner part, an empty one, a shared one.
    wanted = [
        (one, 0, 75, one_slots, [0]),
        (one, 5, 70, one_slots, [3]),
        (one, 8, 8, one_slots, [2]),
        (other, 0, 7, other_slots, [4, 1, 0]),
    ]
    entries = [(token, 0) for *_, readers in wanted for token in readers]
    # States lie in another order than pieces.
    entries = [(token, len(entries) - 1 - number) for number, (token, _) in enumerate(entries)]
    outputs, lses = states(len(entries), heads, value_dim, device)
    firsts = [0, 1, 2, 3]
    pieces = [
        (table, begin, end, first, len(r)) for (table, begin, end, _, r), first in zip(wanted, firsts, strict=True)
    ]
    arguments = (query, pool.keys, pool.values, BLOCK, int32(pool.tables, device))
    group = heads // kv_heads
    for part, tile, most in ((pieces[:3], narrow_tile, 1), (pieces[3:], wide_tile, 3)):
        attend_pieces(
            *arguments, int32(part, device), int32(entries, device), outputs, lses,
            dim**-0.5, softcap, tile(group, dim, dtype), most,
        )  # fmt: skip
    tolerance = ATTENTION[dtype]
    for (_, begin, end, slots, readers), first in zip(wanted, firsts, strict=True):
        for number, token in enumerate(readers):
            keys, values = pool.keys[slots[begin:end]].cpu(), pool.values[slots[begin:end]].cpu()
            expected = attention_state(query[:, token].cpu(), keys, values, dim**-0.5, softcap)
            place = entries[first + number][1]
            found = outputs[place].cpu().double(), lses[place].cpu().double()
            torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_several_batches_share_one_piece(device, dtype):
    """More rows than one tile holds."""
    heads = 16
    pool = make_pool(device, dtype, 1, 16, 16)
    query = torch.randn(heads, 9, 16, device=device).to(dtype)
    table, slots = pool.segment(10)
    outputs, lses = states(9, heads, 16, device)
    tile = narrow_tile(heads, 16, dtype)
    assert tile.rows // heads == 1
    attend_pieces(
        query, pool.keys, pool.values, BLOCK, int32(pool.tables, device), int32([(table, 0, 10, 0, 9)], device),
        int32([(token, token) for token in range(9)], device), outputs, lses, 0.25, None, tile, 9,
    )  # fmt: skip
    for token in range(9):
        expected = attention_state(query[:, token].cpu(), pool.keys[slots].cpu(), pool.values[slots].cpu(), 0.25)[0]
        torch.testing.assert_close(
            outputs[token].cpu().double(), expected, atol=ATTENTION[dtype], rtol=ATTENTION[dtype]
        )


@pytest.mark.parametrize("sinks", [False, True])
@pytest.mark.parametrize("counts", [(1, 3, 20), (0, 2, 0)], ids=str)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_merge_weighs_states_by_their_normalisers(device, counts, sinks):
    torch.manual_seed(1)
    heads, value_dim, total = 3, 24, sum(counts)
    outputs, lses = torch.randn(total, heads, value_dim), torch.randn(total, heads) * 30
    # An empty segment, and one of two empty ones in a row.
    lses[0], outputs[0] = -math.inf, 0.0
    lses[1:2, 1], outputs[1:2, 1] = -math.inf, 0.0
    biases = torch.randn(total)
    sink_logits, sink_biases = (torch.randn(heads), torch.randn(len(counts))) if sinks else (None, None)
    begins = [sum(counts[:i]) for i in range(len(counts) + 1)]
    merged = torch.full((len(counts), heads, value_dim), torch.nan, device=device)
    optional = (None, None) if sink_logits is None else (sink_logits.to(device), sink_biases.to(device))
    found = merge_states(
        outputs.to(device), lses.to(device), biases.to(device), int32(begins, device), merged, *optional
    )
    for row in range(len(counts)):
        part = slice(begins[row], begins[row + 1])
        bias = 0.0 if sink_biases is None else float(sink_biases[row])
        expected = merged_state(outputs[part], lses[part], biases[part], sink_logits, bias)
        result = merged[row].cpu().double(), found[row].cpu().double()
        torch.testing.assert_close(result, expected, atol=ATTENTION[torch.float32], rtol=ATTENTION[torch.float32])


def test_what_does_not_fit_is_refused():
    pool = make_pool("cpu", torch.float32, 2, 16, 16)
    table, _ = pool.segment(4)
    outputs, lses = states(1, 4, 16, "cpu")
    tile = narrow_tile(2, 16, torch.float32)

    def attend(query, entries=((0, 0),), keys=pool.keys, tile=tile, outputs=outputs, scale=0.25):
        attend_pieces(
            query, keys, pool.values, BLOCK, int32(pool.tables, "cpu"), int32([(table, 0, 4, 0, 1)], "cpu"),
            torch.tensor(entries, dtype=torch.int32), outputs, lses, scale, None, tile, 1,
        )  # fmt: skip

    query = torch.randn(4, 1, 16)
    attend(query)
    with pytest.raises(ValueError, match=r"must be over 0, got -0\.25"):
        attend(query, scale=-0.25)
    with pytest.raises(ValueError, match="do not fit together"):
        attend(torch.randn(5, 1, 16))
    with pytest.raises(ValueError, match="must agree"):
        attend(query.half())
    with pytest.raises(ValueError, match="dense"):
        attend(query.transpose(0, 2).contiguous().transpose(0, 2))
    with pytest.raises(ValueError, match="entries must be dense int32"):
        attend(query, entries=((0, 0, 0),))
    with pytest.raises(ValueError, match="states of shape"):
        attend(query, outputs=outputs[:, :3])
    with pytest.raises(ValueError, match="sink_biases"):
        merge_states(outputs, lses, torch.zeros(1), int32([0, 1], "cpu"), outputs.clone(), torch.zeros(4))
    with pytest.raises(ValueError, match="begins"):
        merge_states(outputs, lses, torch.zeros(1), int32([0, 1, 1], "cpu"), outputs.clone())
