"""Linear layers on a CPU: the same results as torch's, whichever way few rows are multiplied."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import linear
from transformers import LlamaConfig, LlamaForCausalLM

import ewe.engine.models.cpu_linear as cpu_linear
from ewe.engine.models.cpu_linear import ROW_COUNTS, WAYS, CPULinear, describe_ways, speed_up_decoding

OTHER = ("transposed",) * len(ROW_COUNTS)


def llama(tied: bool = False, hidden_size: int = 512, dtype: torch.dtype = torch.float32) -> LlamaForCausalLM:
    shape = {"num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1024}
    sizes = {"hidden_size": hidden_size, "intermediate_size": 2 * hidden_size}
    return LlamaForCausalLM(LlamaConfig(**shape, **sizes, tie_word_embeddings=tied)).to(dtype).eval()


def cpu_layer(way: str, num_in: int, num_out: int, bias: bool = True) -> CPULinear:
    if way not in cpu_linear._working_ways():
        pytest.skip(f"this build of torch has no working way {way}")
    layer = CPULinear(num_in, num_out, bias=bias)
    layer.ways = (way,) * len(ROW_COUNTS)
    return layer


@torch.inference_mode()
@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("bias", [True, False])
def test_every_number_of_rows_gives_what_torch_gives(way: str, bias: bool) -> None:
    layer = cpu_layer(way, 96, 160, bias)
    for num_rows in (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 40):
        x = torch.randn(1, num_rows, 96)
        expected = linear(x.double(), layer.weight.double(), None if layer.bias is None else layer.bias.double())
        found = layer(x)
        assert found.shape == (1, num_rows, 160)
        assert found.is_contiguous()
        torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("way", list(WAYS))
def test_the_input_may_have_any_shape_and_strides(way: str) -> None:
    layer = cpu_layer(way, 64, 32)
    x = torch.randn(64, 3, 2).permute(2, 1, 0)
    torch.testing.assert_close(layer(x), linear(x, layer.weight, layer.bias), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(layer(x[0, 0]), linear(x[0, 0], layer.weight, layer.bias), atol=1e-5, rtol=1e-5)


def test_each_number_of_rows_goes_the_way_that_was_timed_for_the_next_larger_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[str] = []

    def note(name: str) -> None:
        monkeypatch.setitem(WAYS, name, lambda x, *_: (taken.append(name), x)[1])

    names = [f"for up to {count}" for count in ROW_COUNTS]
    for name in names:
        note(name)
    monkeypatch.setattr(cpu_linear, "linear", lambda x, *_: (taken.append("torch"), x)[1])
    layer = CPULinear(8, 8)
    layer.ways = tuple(names)
    for num_rows in (1, 2, 3, 4, 5, 8, 9, 16, 17):
        layer(torch.zeros(num_rows, 8))
    assert taken == [*(f"for up to {count}" for count in (1, 4, 4, 4, 16, 16, 16, 16)), "torch"]


def test_large_layers_in_float32_change_and_tied_weights_stay_tied(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[torch.Size] = []

    def choose(weights: list[torch.Tensor], ways: object, counts: object) -> tuple[str, ...]:
        timed.extend(weight.shape for weight in weights)
        return OTHER

    monkeypatch.setattr(cpu_linear, "fastest_ways", choose)
    model = llama(tied=True)
    expected = model(torch.tensor([[5, 6, 7]])).logits
    speed_up_decoding(model)
    changed = {name for name, module in model.named_modules() if type(module) is CPULinear}
    layer = "model.layers.0."
    assert changed == {
        "lm_head",
        *(f"{layer}self_attn.{name}_proj" for name in "qo"),
        *(f"{layer}mlp.{name}_proj" for name in ("gate", "up", "down")),
    }
    assert len(timed) == len(changed)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    torch.testing.assert_close(model(torch.tensor([[5, 6, 7]])).logits, expected, atol=1e-5, rtol=1e-5)
    assert (
        describe_ways(model)
        == describe_ways(copy.deepcopy(model))
        == ", ".join(f"{count} transposed" for count in ROW_COUNTS)
    )


def test_where_torchs_way_is_the_fastest_layers_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_linear, "fastest_ways", lambda *_: ("torch",) * len(ROW_COUNTS))
    model = llama()
    speed_up_decoding(model)
    assert not any(type(module) is CPULinear for module in model.modules())
    assert describe_ways(model) == "torch"


@pytest.mark.parametrize("model", [llama(hidden_size=64), llama(dtype=torch.bfloat16)], ids=["small", "bfloat16"])
def test_small_layers_and_other_precisions_stay_as_they_are(
    model: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_linear, "fastest_ways", lambda *_: OTHER)
    speed_up_decoding(model)
    assert not any(type(module) is CPULinear for module in model.modules())
    assert any(type(module) is nn.Linear for module in model.modules())


def test_a_way_that_this_build_lacks_or_that_gives_other_numbers_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> torch.Tensor:
        raise RuntimeError("not in this build")

    monkeypatch.setitem(WAYS, "missing", missing)
    monkeypatch.setitem(WAYS, "wrong", lambda x, weight, bias: linear(x, weight, bias) * 1.001)
    working = cpu_linear._working_ways()
    assert {"torch", "transposed"} <= set(working)
    assert not {"missing", "wrong"} & set(working)
