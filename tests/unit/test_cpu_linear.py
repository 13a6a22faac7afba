"""Linear layers on a CPU: the same results as torch's, whichever way few rows are multiplied."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import linear
from transformers import LlamaConfig, LlamaForCausalLM

import ewe.engine.cpu_linear as cpu_linear
from ewe.engine.cpu_linear import CPULinear, speed_up_decoding

MKL = pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this torch is built without MKL")


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def llama(tied: bool = False, hidden_size: int = 512, dtype: torch.dtype = torch.float32) -> LlamaForCausalLM:
    shape = {"num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1024}
    sizes = {"hidden_size": hidden_size, "intermediate_size": 2 * hidden_size}
    return LlamaForCausalLM(LlamaConfig(**shape, **sizes, tie_word_embeddings=tied)).to(dtype).eval()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("num_rows", [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 40])
def test_every_number_of_rows_gives_what_torch_gives(num_rows: int, bias: bool) -> None:
    layer = CPULinear(96, 160, bias=bias)
    x = torch.randn(1, num_rows, 96)
    expected = linear(x.double(), layer.weight.double(), None if layer.bias is None else layer.bias.double())
    found = layer(x)
    assert found.shape == (1, num_rows, 160)
    assert found.is_contiguous()
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)


def test_the_input_may_have_any_shape_and_strides() -> None:
    layer = CPULinear(64, 32)
    x = torch.randn(64, 3, 2).permute(2, 1, 0)
    torch.testing.assert_close(layer(x), linear(x, layer.weight, layer.bias))
    torch.testing.assert_close(layer(x[0, 0]), linear(x[0, 0], layer.weight, layer.bias))


def test_few_rows_are_multiplied_the_other_way_round_with_more_than_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = CPULinear(64, 32)
    taken: list[int] = []
    monkeypatch.setattr(cpu_linear, "linear", lambda x, *_: taken.append(x.shape[0]))
    layer(torch.randn(16, 64))
    assert taken == []
    layer(torch.randn(17, 64))
    torch.set_num_threads(1)
    layer(torch.randn(1, 64))
    assert taken == [17, 1]


@MKL
def test_large_layers_in_float32_change_and_tied_weights_stay_tied() -> None:
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
    assert model.lm_head.weight is model.model.embed_tokens.weight
    torch.testing.assert_close(model(torch.tensor([[5, 6, 7]])).logits, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("model", [llama(hidden_size=64), llama(dtype=torch.bfloat16)], ids=["small", "bfloat16"])
def test_small_layers_and_other_precisions_stay_as_they_are(model: LlamaForCausalLM) -> None:
    speed_up_decoding(model)
    changed = {name for name, module in model.named_modules() if type(module) is CPULinear}
    assert changed == set()
    assert any(type(module) is nn.Linear for module in model.modules())
