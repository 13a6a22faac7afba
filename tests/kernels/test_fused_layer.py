"""Layers computed in few kernels give what the layers give, for every family that has the parts."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
import torch
from kernel_parts import BLOCK
from parity.families import FAMILIES, build
from parity.more_families import MORE
from parity.paged import PagedModel
from tolerances import LOGPROBS
from torch import nn
from transformers import AutoModelForCausalLM
from triton_interpreter import INTERPRETED

from ewe.config.lora import Adapter, LowRank
from ewe.engine.attention.triton_backend import TritonBackend
from ewe.engine.kvcache.fp8 import FP8
from ewe.engine.models.fused_layer import fuse_layers, unfuse_layers
from ewe.engine.models.quantization import shrink
from ewe.engine.models.row_adapters import RowAdapters

on_devices = pytest.mark.parametrize(
    "device",
    [
        pytest.param("cpu", marks=pytest.mark.skipif(not INTERPRETED, reason="with a GPU at hand, kernels run there")),
        pytest.param("cuda", marks=pytest.mark.gpu),
    ],
)
UNITS = [[5, 9], [8]]


def logits_of(model, cache_dtype=None, triton=True, adapters=None):
    """Log-probabilities of prompts and of a step of two answers, one of them with units, and with an adapter if any."""
    paged = PagedModel(model, block_size=BLOCK, cache_dtype=cache_dtype)
    paged.runner._adapters = adapters
    if triton:
        paged.runner._backend = TritonBackend(model.device, BLOCK, paged.pool.keys[0].shape[1])
    paged.runner.static = None
    contexts = [paged.context(16, paged.encode(UNITS)), paged.context()]
    found = [paged.run(*[paged.row(context, [20, 21], all_logits=True) for context in contexts]).logits]
    first, second = (paged.row(context, [40]) for context in contexts)
    found.append(paged.run(replace(first, adapter="law" if adapters else ""), second).logits)
    return torch.cat(found).log_softmax(-1)


def shaken(family, device="cpu"):
    """A model whose norms and biases do something."""
    model = build(family).to(device)
    model.model.layers, model.config.num_hidden_layers = model.model.layers[:2], 2
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.add_(torch.randn(parameter.shape, generator=generator).to(parameter) * 0.3)
    return model


# Biases, norms of queries and keys, norms around layers, merged weights: the others have nothing that these have not.
TELLING = {"qwen2", "qwen3", "gemma3", "phi3"}


@on_devices
@pytest.mark.parametrize(
    "family",
    [pytest.param(name, marks=[] if name in TELLING else pytest.mark.slow) for name in FAMILIES if name != "phi"],
)
def test_fused_layers_give_what_the_layers_give(family, device):
    model = shaken(family, device)
    names = {name: item.clone() for name, item in model.state_dict().items()}
    expected = logits_of(model, triton=False)
    assert fuse_layers(model) == 2
    torch.testing.assert_close(logits_of(model), expected, atol=LOGPROBS, rtol=0)
    found = model.state_dict()
    assert list(found) == list(names)
    assert all(torch.equal(found[name], item) for name, item in names.items())
    unfuse_layers(model)
    assert not any(hasattr(type(module), "fused") for module in model.modules())


@pytest.mark.parametrize(("family", "fused"), [("ministral3", 0), ("smollm3", 2), ("granite", 0)])
def test_layers_that_only_look_alike_are_left_as_they_are(family, fused):
    """Queries scaled by position from far on, a layer without positions, branches that are scaled."""
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(MORE[family](), dtype=torch.float32, attn_implementation="ewe").eval()
    expected = logits_of(model.requires_grad_(False), triton=False)
    assert fuse_layers(model) == fused
    torch.testing.assert_close(logits_of(model, triton=fused > 0), expected, atol=LOGPROBS, rtol=0)


def test_merged_weights_take_no_memory_twice():
    model = build("llama")
    fuse_layers(model)
    attention, mlp = model.model.layers[0].self_attn, model.model.layers[0].mlp
    for layers in ((attention.q_proj, attention.k_proj, attention.v_proj), (mlp.gate_proj, mlp.up_proj)):
        assert len({layer.weight.untyped_storage().data_ptr() for layer in layers}) == 1
        assert all(layer.weight.is_contiguous() for layer in layers)


def test_keys_and_values_in_fp8():
    """One layer: in further ones, a sum that is rounded differently could go to the next e4m3 number."""
    model = shaken("qwen3")
    model.model.layers, model.config.num_hidden_layers = model.model.layers[:1], 1
    expected = logits_of(model, FP8)
    assert fuse_layers(model) == 1
    torch.testing.assert_close(logits_of(model, FP8), expected, atol=LOGPROBS, rtol=0)


def test_layers_with_weights_in_8_bits_keep_their_products():
    model = shaken("llama")
    shrink(model, "int8", torch.device("cpu"))
    expected = logits_of(model, triton=False)
    assert fuse_layers(model) == 2
    torch.testing.assert_close(logits_of(model), expected, atol=LOGPROBS, rtol=0)


def test_adapters_are_applied_in_fused_layers():
    model, generator = shaken("llama"), torch.Generator().manual_seed(5)
    names = [
        name for name, item in model.named_modules() if name.endswith(("q_proj", "o_proj", "up_proj", "down_proj"))
    ]
    plain = logits_of(model, triton=False)
    layers = {}
    for name in names:
        rows, columns = model.get_submodule(name).weight.shape
        layers[name] = LowRank(
            torch.randn(columns, 2, generator=generator) * 0.2, torch.randn(2, rows, generator=generator) * 0.2
        )
    adapters = RowAdapters(model, {"law": Adapter(layers, ())})
    expected = logits_of(model, triton=False, adapters=adapters)
    same = torch.isclose(expected, plain, atol=1e-3).all(-1)
    assert same.tolist() == [True] * 4 + [False, True]
    assert fuse_layers(model) == 2
    torch.testing.assert_close(logits_of(model, adapters=adapters), expected, atol=LOGPROBS, rtol=0)


def test_without_the_kernels_layers_run_as_they_are():
    model = build("llama")
    tokens, positions = torch.tensor([[3, 4, 5]]), torch.arange(3)[None]
    model.set_attn_implementation("sdpa")
    expected = model(input_ids=tokens, position_ids=positions).logits
    model.set_attn_implementation("ewe")
    fuse_layers(model)
    model.set_attn_implementation("sdpa")
    torch.testing.assert_close(model(input_ids=tokens, position_ids=positions).logits, expected, atol=1e-5, rtol=0)


def test_a_model_of_other_parts_is_left_alone():
    model = build("phi")
    kinds = [type(module) for module in model.modules()]
    assert fuse_layers(model) == 0
    assert [type(module) for module in model.modules()] == kinds


def test_a_layer_that_does_more_than_its_parts_is_left_alone(caplog):
    """As Granite, which has Llama's parts and scales what each layer adds."""

    class Scaled(type(build("llama").model.layers[1])):
        def forward(self, hidden_states, *arguments, **options):
            return hidden_states + 0.5 * (super().forward(hidden_states, *arguments, **options) - hidden_states)

    model = shaken("llama")
    model.model.layers[1].__class__ = Scaled
    expected = logits_of(model, triton=False)
    with caplog.at_level(logging.WARNING):
        assert fuse_layers(model) == 1
    assert "layer 1 is left as it is" in caplog.text
    torch.testing.assert_close(logits_of(model), expected, atol=LOGPROBS, rtol=0)


def test_an_activation_that_no_kernel_has_is_left_alone():
    model = build("llama")
    for layer in model.model.layers:
        layer.mlp.act_fn = nn.ReLU()
    assert fuse_layers(model) == 0
