"""The folded biases against eq. 1 as it is written, in float64; normalisers per segment."""

from __future__ import annotations

import math

import pytest
import torch
from parity.oracle import literal_attention, literal_shares
from tolerances import ATTENTION, SHARES

from ewe.engine.attention.attribution import segment_lse, segment_shares
from ewe.engine.attention.merge import merge_biases

DIM = 8
SCALE = DIM**-0.5


def random_segments(lengths, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [tuple(torch.randn(2, length, DIM, generator=generator, dtype=torch.float64) * 2) for length in lengths]


def folded(query, units, context, weights, merge, softcap=None):
    """One softmax over everything, with the engine's biases."""
    unit_biases, context_bias = merge_biases(weights, merge)
    logits = []
    for (keys, _), bias in zip([*units, context], [*unit_biases, context_bias], strict=True):
        raw = keys @ query * SCALE
        logits.append((raw if softcap is None else softcap * torch.tanh(raw / softcap)) + bias)
    return torch.cat(logits).softmax(0) @ torch.cat([values for _, values in [*units, context]])


@pytest.mark.parametrize("softcap", [None, 3.0])
@pytest.mark.parametrize("merge", ["paper", "plain"])
@pytest.mark.parametrize("lengths", [[], [5], [3, 0, 7], [0], [0, 0], [1, 2, 30, 4, 5, 6, 7, 8]])
def test_folded_equals_literal(lengths, merge, softcap):
    *units, context = random_segments([*lengths, 11])
    query = torch.randn(DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for weights in ([1.0] * len(units), [0.1 + 0.7 * number for number in range(len(units))]):
        expected = literal_attention(query, units, context, weights, merge, SCALE, softcap)
        found = folded(query, units, context, weights, merge, softcap)
        torch.testing.assert_close(found, expected, atol=ATTENTION[torch.float64], rtol=0)


def test_biases():
    assert merge_biases([], "paper") == ([], 0.0)
    assert merge_biases([1.0, 1.0], "paper") == ([0.0, 0.0], pytest.approx(math.log(3)))
    assert merge_biases([0.5, 2.0], "paper") == (
        [pytest.approx(math.log(0.5)), pytest.approx(math.log(2))],
        pytest.approx(math.log(3.5)),
    )
    assert merge_biases([0.5, 2.0], "plain") == ([0.0, 0.0], 0.0)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("merge", ["paper", "plain"])
def test_weights_must_be_positive_numbers(weight, merge):
    with pytest.raises(ValueError, match="positive"):
        merge_biases([1.0, weight], merge)


def test_segment_lse_is_the_natural_log_of_each_normaliser():
    logits = torch.tensor([[0.0, 1.0, 2.0, -3.0, 500.0, 501.0], [0.5, 0.5, 0.5, 0.5, -900.0, -901.0]])
    segments = torch.tensor([0, 0, 2, -1, 3, 3])
    found = segment_lse(logits, segments, 5)
    expected = torch.stack(
        [
            torch.logsumexp(logits[:, :2], -1),
            torch.full((2,), -torch.inf),
            logits[:, 2],
            torch.logsumexp(logits[:, 4:], -1),
            torch.full((2,), -torch.inf),
        ],
        dim=-1,
    )
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=0, rtol=SHARES)


def test_masked_and_empty_segments_have_no_share_and_no_nan():
    logits = torch.tensor([[-torch.inf, -torch.inf, 1.0], [-torch.inf, -torch.inf, -torch.inf]])
    lse = segment_lse(logits, torch.tensor([0, 1, 2]), 4)
    assert torch.equal(lse[0], torch.tensor([-torch.inf, -torch.inf, 1.0, -torch.inf]))
    assert torch.equal(segment_shares(lse), torch.tensor([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))


@pytest.mark.parametrize("lengths", [[], [4, 9], [3, 0, 7]])
def test_shares_equal_the_formula(lengths):
    *units, context = random_segments([*lengths, 11], seed=3)
    weights = [0.5 + number for number in range(len(units))]
    query = torch.randn(DIM, dtype=torch.float64)
    unit_biases, context_bias = merge_biases(weights, "paper")
    sizes = torch.tensor([*lengths, 11])
    segments = torch.arange(len(sizes)).repeat_interleave(sizes)
    biases = torch.tensor([*unit_biases, context_bias], dtype=torch.float64)[segments]
    logits = torch.cat([keys for keys, _ in [*units, context]]) @ query * SCALE + biases
    found = segment_shares(segment_lse(logits.float(), segments, len(sizes)))
    expected = literal_shares(query, units, context, weights, SCALE)
    torch.testing.assert_close(found.double(), expected, atol=SHARES, rtol=0)
