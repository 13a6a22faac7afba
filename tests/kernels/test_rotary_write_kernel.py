"""Queries and keys rotated on their way, against float64; what is written and what is left alone."""

from __future__ import annotations

import pytest
import torch
from ewe_kernels.references import rms_normed, rotated, scaled_e4m3
from ewe_kernels.rotary_write import rotate_and_write
from kernel_parts import PRECISIONS
from tolerances import ATTENTION

TOKENS, SLOTS, EPS = 4, 20, 1e-6
E4M3 = torch.float8_e4m3fn


def tensors(device, dtype, dim=24, value_dim=16, heads=2, query_heads=6, pool_dtype=None):
    """Views of one product, as a layer has them."""
    torch.manual_seed(2)
    widths = (query_heads * dim, heads * dim, heads * value_dim)
    parts = torch.randn(TOKENS, sum(widths)).to(device, dtype).split(widths, -1)
    query, key, value = (
        part.unflatten(1, (count, -1)).transpose(0, 1)
        for part, count in zip(parts, (query_heads, heads, heads), strict=True)
    )
    pools = [torch.zeros(SLOTS, heads, width, device=device).to(pool_dtype or dtype) for width in (dim, value_dim)]
    return query, key, value, torch.tensor([7, 19, 3, 8], device=device), *pools


def angles(rotary, device, dtype=torch.float32):
    turn = torch.rand(TOKENS, rotary, device=device) * 6
    return turn.cos().to(dtype), turn.sin().to(dtype)


def elsewhere(slots):
    return [slot for slot in range(SLOTS) if slot not in slots.tolist()]


def close(found, expected, dtype):
    torch.testing.assert_close(found.cpu().double(), expected, atol=2 * ATTENTION[dtype], rtol=2 * ATTENTION[dtype])


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("rotary", [24, 8])
@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_queries_and_keys_are_rotated(device, dtype, rotary, normed):
    query, key, value, slots, pool_key, pool_value = tensors(device, dtype)
    cos, sin = angles(rotary, device)
    norms = [(torch.rand(24) + 0.5).to(device, dtype) if normed else None for _ in range(2)]
    expected = []
    for states, norm in zip((query, key), norms, strict=True):
        states = states.cpu() if norm is None else rms_normed(states.cpu(), norm.cpu(), EPS)
        expected.append(rotated(states, cos.cpu(), sin.cpu()))
    found = rotate_and_write(query, key, value, cos, sin, slots, pool_key, pool_value, None, None, *norms, EPS)
    close(found, expected[0], dtype)
    close(pool_key[slots].transpose(0, 1), expected[1], dtype)
    assert torch.equal(pool_value[slots], value.transpose(0, 1))
    assert not pool_key[elsewhere(slots)].any()
    assert not pool_value[elsewhere(slots)].any()


def test_angles_may_be_in_the_precision_of_the_model():
    query, key, value, slots, pool_key, pool_value = tensors("cpu", torch.float16)
    cos, sin = angles(24, "cpu", torch.float16)
    found = rotate_and_write(query, key, value, cos, sin, slots, pool_key, pool_value)
    close(found, rotated(query, cos, sin), torch.float16)


def test_a_pool_in_fp8_gets_codes_and_scales():
    query, key, value, slots, pool_key, pool_value = tensors("cpu", torch.float32, pool_dtype=E4M3)
    scales = [torch.zeros(SLOTS, 2) for _ in range(2)]
    cos, sin = angles(24, "cpu")
    rotate_and_write(query, key, value, cos, sin, slots, pool_key, pool_value, *scales)
    keys = rotated(key, cos, sin).float()
    for pool, scale, states in zip((pool_key, pool_value), scales, (keys, value), strict=True):
        expected, expected_scale = scaled_e4m3(states.transpose(0, 1))
        torch.testing.assert_close(scale[slots], expected_scale, atol=0, rtol=1e-5)
        # Where the last bit of a key differs, its code may be the neighbour.
        torch.testing.assert_close(pool[slots].double() * scale[slots][..., None], expected, atol=0, rtol=0.13)
        assert not scale[elsewhere(slots)].any()


def test_a_padding_token_is_written_nowhere():
    query, key, value, slots, pool_key, pool_value = tensors("cpu", torch.float32)
    slots[1] = -1
    rotate_and_write(query, key, value, *angles(24, "cpu"), slots, pool_key, pool_value)
    written = pool_value.flatten(1).any(1).nonzero().flatten().tolist()
    assert written == [3, 7, 8]


def test_what_does_not_fit_is_refused():
    query, key, value, slots, *pools = tensors("cpu", torch.float32)
    cos, sin = angles(24, "cpu")
    for changes, message in (
        ({"cos": cos[:, :7], "sin": sin[:, :7]}, "cos of shape"),
        ({"cos": cos[:2], "sin": sin[:2]}, "one per token"),
        ({"query": query[:, :2]}, "beside keys"),
        ({"query": query[:3]}, "beside keys"),
        ({"query_norm": torch.ones(7)}, "24 weights"),
    ):
        given = {"query": query, "cos": cos, "sin": sin, "query_norm": None} | changes
        with pytest.raises(ValueError, match=message):
            rotate_and_write(
                given["query"], key, value, given["cos"], given["sin"], slots, *pools, query_norm=given["query_norm"]
            )
