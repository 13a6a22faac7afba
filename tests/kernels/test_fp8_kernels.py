"""The kernels over a pool in e4m3: rounding against float64, attention against literal attention over what was kept."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from ewe_kernels.cache_write import write_kv
from ewe_kernels.decode import attend_pieces
from ewe_kernels.references import scaled_e4m3
from ewe_kernels.tiles import narrow_tile
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_parts import BLOCK, PRECISIONS, int32
from parity.families import CONFIGS
from parity.paged import PagedModel
from test_triton_rows import BLOCKS, DIM, KV_HEADS, expected_outputs, make_call, make_rows
from tolerances import ATTENTION, LOGPROBS, SHARES
from transformers import AutoModelForCausalLM

from ewe.engine.attention.backend import LayerCall
from ewe.engine.attention.metadata import place_rows
from ewe.engine.attention.probe import attention_layers
from ewe.engine.attention.torch_backend import TorchBackend
from ewe.engine.attention.triton_backend import TritonBackend
from ewe.engine.kvcache.fp8 import FP8, dequantise, quantise
from ewe.engine.model_executor.static_decode import StaticDecoder

SLOTS = 12


@pytest.fixture(autouse=True)
def _reads_e4m3(request):
    if request.node.get_closest_marker("gpu") and torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("this GPU does not read e4m3 in hardware")


def empty_pool(device, heads, dim, value_dim, slots=SLOTS):
    """Keys, values and their scales, all zero."""
    pools = [torch.zeros(slots, heads, width, dtype=torch.uint8, device=device).view(FP8) for width in (dim, value_dim)]
    return *pools, *(torch.zeros(slots, heads, device=device) for _ in pools)


@pytest.mark.parametrize("spread", [1e-30, 0.01, 1.0, 100.0, 60000.0])
@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_what_is_written_is_the_nearest(device, dtype, spread):
    torch.manual_seed(4)
    heads, slots = 3, torch.tensor([7, 11, 3, -1], device=device)
    key, value = (
        (torch.randn(4, heads, width) * torch.logspace(-6, 0, width) * spread / 4).to(device, dtype).transpose(0, 1)
        for width in (24, 16)
    )
    pools = empty_pool(device, heads, 24, 16)
    write_kv(key, value, slots, *pools)
    untouched = [slot for slot in range(SLOTS) if slot not in slots.tolist()]
    for states, pool, scales in ((key, pools[0], pools[2]), (value, pools[1], pools[3])):
        expected, expected_scales = scaled_e4m3(states.transpose(0, 1)[:3].cpu())
        assert torch.equal(scales[slots[:3]].cpu(), expected_scales)
        kept = pool.view(torch.uint8)[slots[:3]].cpu().view(FP8).double() * expected_scales[..., None]
        assert torch.equal(kept, expected)
        assert not scales[untouched].any()
        assert not pool.view(torch.uint8)[untouched].any()


@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=8, max_size=8)))
def test_torch_and_the_kernel_round_alike(rows):
    """Down to subnormals, ties and zeros, bit for bit."""
    states = torch.tensor(rows, dtype=torch.float32).reshape(1, -1, 8)
    pools = empty_pool("cpu", 1, 8, 8, slots=max(1, len(rows)))
    write_kv(states, -states, torch.arange(len(rows)), *pools)
    for sign, pool, scales in ((1, pools[0], pools[2]), (-1, pools[1], pools[3])):
        codes, expected_scales = quantise(sign * states[0])
        assert torch.equal(scales[: len(rows), 0], expected_scales)
        assert torch.equal(pool.view(torch.uint8)[: len(rows), 0], codes.view(torch.uint8))
        expected, _ = scaled_e4m3(sign * states[0])
        assert torch.equal(codes.double() * expected_scales[:, None], expected)


@given(power=st.integers(-60, 60))
def test_codes_do_not_depend_on_the_size_of_the_numbers(power):
    states = torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(1))
    (codes, scales), (others, other_scales) = quantise(states), quantise(states * 2.0**power)
    assert torch.equal(codes.view(torch.uint8), others.view(torch.uint8))
    assert torch.equal(scales * 2.0**power, other_scales)


def test_every_code_is_read_right():
    codes = torch.arange(256, dtype=torch.uint8).view(FP8)
    numbers = codes[~codes.float().isnan()]
    assert len(numbers) == 254
    assert torch.equal(dequantise(numbers, torch.tensor(0.375), torch.float32), numbers.float() * 0.375)


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_stays_so(wrong):
    states = torch.ones(2, 2, 8)
    states[1, 0, 3] = wrong
    pools = empty_pool("cpu", 2, 8, 8)
    write_kv(states, states, torch.tensor([1, 2]), *pools)
    for kept in (
        dequantise(pools[0].view(torch.uint8)[1:3].view(FP8), pools[2][1:3], torch.float32).transpose(0, 1),
        dequantise(*quantise(states), torch.float32),
    ):
        assert kept[1, 0].isnan().all()
        assert torch.equal(kept[0], states[0])
        assert torch.equal(kept[1, 1], states[1, 1])


def in_fp8(call):
    """The same call over a pool in fp8, and one over what that stands for."""
    (keys, key_scales), (values, value_scales) = quantise(call.pool_key), quantise(call.pool_value)
    stored = (call.query, call.key, call.value, keys, values, call.scale, call.softcap, key_scales, value_scales)
    dtype = call.query.dtype
    plain = (dequantise(keys, key_scales, dtype), dequantise(values, value_scales, dtype))
    return LayerCall(*stored), LayerCall(call.query, call.key, call.value, *plain, call.scale, call.softcap)


@pytest.mark.parametrize(("merge", "window", "softcap"), [("paper", None, None), ("plain", 6, 2.0)])
@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_attention_is_that_over_what_was_kept(device, dtype, merge, window, softcap):
    rng = np.random.default_rng(5)
    batch = place_rows(make_rows(rng), merge)
    call, plain = in_fp8(make_call(batch, rng, device, dtype, softcap))
    expected = expected_outputs(batch, plain, merge, window)
    for backend in (
        TritonBackend(torch.device(device), BLOCK, KV_HEADS),
        TorchBackend(torch.device(device), 1024, scaled=True),
    ):
        found = backend.attend(call, backend.plan(batch, window, attribution=False))
        assert found.dtype == dtype
        torch.testing.assert_close(found.cpu().double(), expected, atol=ATTENTION[dtype], rtol=ATTENTION[dtype])


def test_shares_are_those_over_what_was_kept():
    rng = np.random.default_rng(8)
    batch = place_rows(make_rows(rng), "paper")
    call, plain = in_fp8(make_call(batch, rng, "cpu", torch.float32))
    results = []
    for backend, item in (
        (TritonBackend(torch.device("cpu"), BLOCK, KV_HEADS), call),
        (TorchBackend(torch.device("cpu"), 1024, scaled=True), call),
        (TorchBackend(torch.device("cpu"), 1024), plain),
    ):
        results.append(torch.zeros(len(batch.rows), 4))
        backend.shares(item, backend.plan(batch, 6, True), results[-1])
    for found in results[:2]:
        torch.testing.assert_close(found, results[2], atol=SHARES, rtol=0)


@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_backends_write_what_they_read(device, dtype):
    rng = np.random.default_rng(6)
    batch = place_rows(make_rows(rng), "paper")
    call = make_call(batch, rng, device, dtype)
    slots = torch.from_numpy(batch.write_slots).to(device)
    kept = []
    for backend in (
        TritonBackend(torch.device(device), BLOCK, KV_HEADS),
        TorchBackend(torch.device(device), 1024, scaled=True),
    ):
        pools = empty_pool(device, KV_HEADS, DIM, DIM, slots=BLOCKS * BLOCK)
        backend.write(LayerCall(call.query, call.key, call.value, *pools[:2], call.scale, None, *pools[2:]), slots)
        kept.append([item.view(torch.uint8) for item in pools])
    assert all(map(torch.equal, *kept))


def static_or_not(model, static):
    """Logits of three steps of three rows, a prompt beside the last, and the first bytes of the pool."""
    paged = PagedModel(model, block_size=BLOCK, cache_dtype=FP8)
    if static:
        backend = TritonBackend(model.device, BLOCK, KV_HEADS)
        decoder = StaticDecoder(model, attention_layers(model), paged.pool, "paper", backend, capture=False)
        decoder.prepare(3, 64)
        paged.runner.static = decoder
    units = paged.encode([[5, 9, 14, 3, 77], [8]])
    contexts = [paged.context(16, units), paged.context(), paged.context(16, units[:1])]
    for length, context in zip((9, 4, 1), contexts, strict=True):
        paged.logits(context, list(range(20, 20 + length)))
    found = [paged.run(*[paged.row(context, [token]) for context in contexts]).logits for token in (40, 41)]
    prompt = paged.row(paged.context(16, units), [7, 8, 9], wants_logits=False)
    found.append(paged.run(prompt, *[paged.row(context, [42]) for context in contexts]).logits)
    if static:
        assert [step.runs for step in decoder._mixed] == [3], (
            "units, a prompt as short as there are lanes, the last step"
        )
    return torch.cat(found).log_softmax(-1), paged.pool.read_blocks([0])


def test_steps_from_static_buffers_equal_the_others():
    """One layer: in further ones, a sum that is rounded differently could go to the next e4m3 number."""
    config = deepcopy(CONFIGS["llama"])
    config.num_hidden_layers = 1
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="ewe").eval().requires_grad_(False)
    (found, null), (expected, _) = static_or_not(model, True), static_or_not(model, False)
    torch.testing.assert_close(found, expected, atol=LOGPROBS, rtol=0)
    assert not any(tensor.any() for tensor in null.tensors), "a padding lane wrote"


def test_what_does_not_fit_is_refused():
    states, slots = torch.zeros(2, 3, 16), torch.arange(3)
    pools = empty_pool("cpu", 2, 16, 16)
    with pytest.raises(ValueError, match="do not fit"):
        write_kv(states, states, slots.int(), *pools)
    with pytest.raises(ValueError, match="a pool of"):
        write_kv(states[..., :8], states, slots, *pools)
    with pytest.raises(ValueError, match="must be float8_e4m3fn"):
        write_kv(states, states, slots, pools[0].float(), *pools[1:])
    with pytest.raises(ValueError, match="scales of shape"):
        write_kv(states, states, slots, *pools[:3], pools[3][:, :1].contiguous())
    with pytest.raises(ValueError, match="given together"):
        write_kv(states, states, slots, *pools[:3], pools[3].half())

    def attend(**scales):
        places = torch.empty(1, 4, 16), torch.empty(1, 4)
        attend_pieces(
            torch.zeros(4, 1, 16), *pools[:2], BLOCK, int32([1], "cpu"), int32([(0, 0, 3, 0, 1)], "cpu"),
            int32([(0, 0)], "cpu"), *places, 0.25, None, narrow_tile(2, 16, torch.float32), 1, **scales,
        )  # fmt: skip

    attend(key_scales=pools[2], value_scales=pools[3])
    with pytest.raises(ValueError, match="must agree"):
        attend()
    with pytest.raises(ValueError, match="given together"):
        attend(key_scales=pools[2])
