"""Weights in 8 bits: how they are rounded, what is computed with them, and what is refused."""

from __future__ import annotations

import json
import weakref
from typing import Any

import pytest
import torch
import transformers
from parity.families import CONFIGS, FAMILIES, build
from parity.paged import PagedModel
from tolerances import LOGPROBS
from torch import nn
from unit.engine_tokenizers import sentencepiece_like

from ewe import LLM, SamplingParams
from ewe.config import Config, MemoryConfig, ModelConfig, resolve_config
from ewe.engine.attention import choose
from ewe.engine.model_executor.fingerprint import identity_of
from ewe.engine.model_executor.model_runner import layer_shapes
from ewe.engine.models.compiled import compile_layers, undo_compile
from ewe.engine.models.loader import LoadedModel, load_model
from ewe.engine.models.quantization import SmallLinear, refuse_unusable, round_rows, shrink
from ewe.engine.models.small_products import choose_few_rows
from ewe.engine.startup.budget import plan_memory
from ewe.errors import ConfigError

KINDS: Any = ("int8", "fp8")
CPU = torch.device("cpu")
PROMPT = [3, 40, 5, 61, 7, 8, 90, 10]
UNITS = [[5, 6, 7, 8], [9, 10, 11, 12, 13]]
# Mean KL divergence in nats from the built-in model's own next tokens; a broken scale gives more than 1.
# Nats on the words below, where rounding costs 0.005 and 0.010, and scales wrong by a tenth 0.053 and 0.064.
MOST_KL = {"int8": 0.02, "fp8": 0.03}


def small_layers(model: Any) -> dict[str, SmallLinear]:
    return {name: module for name, module in model.named_modules() if isinstance(module, SmallLinear)}


def exact(layer: SmallLinear) -> torch.Tensor:
    """The weights that a layer stands for, float32 [out, in]."""
    return layer.weight.float() * layer.scale[:, None]


def loaded_of(model: Any) -> LoadedModel:
    return LoadedModel(model, sentencepiece_like(), 400, frozenset(), 97)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_rounded_to_their_own_scale(kind: Any, dtype: torch.dtype) -> None:
    weight = torch.randn(16, 40, generator=torch.Generator().manual_seed(1)).to(dtype)
    weight[3] *= 1000
    weight[5] = 0
    rounded, scale = round_rows(weight, kind)
    assert (rounded.dtype, scale.dtype, scale.shape) == (
        {"int8": torch.int8, "fp8": torch.float8_e4m3fn}[kind],
        torch.float32,
        (16,),
    )
    back, true = rounded.float() * scale[:, None], weight.float()
    largest = true.abs().amax(1, keepdim=True)
    # int8: half a step of 1/127 of the row's largest. e4m3: three bits after the leading one, or half its least step.
    allowed = largest / 254 if kind == "int8" else torch.maximum(true.abs() / 16, largest / 448 / 512 / 2)
    assert bool(((back - true).abs() <= allowed * 1.0001).all())
    assert torch.equal(back[5], true[5])


def test_numbers_that_are_not_finite_have_no_place() -> None:
    weight = torch.ones(2, 3)
    weight[1, 2] = torch.inf
    with pytest.raises(ConfigError, match="not finite"):
        round_rows(weight, "int8")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_computes_with_the_rounded_weights(kind: Any, dtype: torch.dtype, bias: bool) -> None:
    generator = torch.Generator().manual_seed(2)
    weight, x = (torch.randn(shape, generator=generator).to(dtype) for shape in ((24, 32), (2, 5, 32)))
    offset = nn.Parameter(torch.randn(24, generator=generator).to(dtype)) if bias else None
    layer = SmallLinear(*round_rows(weight, kind), offset)
    expected = x.double() @ exact(layer).double().T + (0 if offset is None else offset.double())
    found = layer(x)
    assert found.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_models_compute_with_the_weights_they_hold(family: str, kind: Any) -> None:
    """Every family under units, against the same model whose full weights are the rounded ones."""
    small, full = build(family), build(family)
    shrink(small, kind, CPU)
    layers = small_layers(small)
    linear = {name for name, module in full.named_modules() if type(module) is nn.Linear}
    assert linear - set(layers) == {name for name, module in full.named_modules() if module is full.lm_head}
    with torch.no_grad():
        for name, layer in layers.items():
            full.get_submodule(name).weight.copy_(exact(layer))
    found, expected = (logprobs(model) for model in (small, full))
    torch.testing.assert_close(found, expected, atol=LOGPROBS, rtol=0)


def logprobs(model: Any) -> torch.Tensor:
    paged = PagedModel(model)
    context = paged.context(16, paged.encode(UNITS), [1.0, 0.5])
    return torch.cat([paged.logits(context, PROMPT), paged.logits(context, [4])]).log_softmax(-1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_built_in_model_says_the_same_in_less_memory(kind: Any) -> None:
    plain, small = (load_model(ModelConfig(device="cpu", weights=weights)) for weights in ("auto", kind))
    text = "Tell me about the mayor of the town. She was born in 1823 and became a painter who lived by the sea."
    tokens = plain.tokenizer(text)["input_ids"]
    paged = [PagedModel(item.model) for item in (small, plain)]
    ours, theirs = (item.logits(item.context(), tokens).log_softmax(-1) for item in paged)
    assert float((theirs.exp() * (theirs - ours)).sum(-1).mean()) < MOST_KL[kind]
    # The embedding, which is the output layer too, keeps its 4 bytes; the rest takes 1 of 4.
    weights = [plan_memory(Config(), item, layer_shapes(item.model)).weights for item in (plain, small)]
    embedding = plain.model.get_input_embeddings().weight.nbytes
    assert weights[1] == pytest.approx(embedding + (weights[0] - embedding) / 4, rel=0.02)
    assert "model.weights" in plan_memory(Config(), small, layer_shapes(small.model)).summary()


def test_greedy_text_of_the_built_in_model_holds_with_int8() -> None:
    config = resolve_config("builtin", None).override(["datastore=null", "verifier=null", "policy=plain"])
    texts = []
    for weights in ("auto", "int8"):
        with LLM(config=config.override([f"model.weights={weights}", "model.device=cpu"])) as llm:
            [answer] = llm.generate(["Tell me about"], SamplingParams(max_tokens=12))
            texts.append(answer.text)
    assert texts[0] == texts[1] != ""


def test_units_of_full_weights_are_not_those_of_small_ones() -> None:
    models = [build("llama") for _ in range(4)]
    for model, kind in zip(models[2:], KINDS, strict=True):
        shrink(model, kind, CPU)
    found = [identity_of(loaded_of(model), MemoryConfig()).weights for model in models]
    assert found[0] == found[1]
    assert len(set(found)) == 3


def test_full_weights_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("llama")
    full = [weakref.ref(module) for module in model.modules() if type(module) is nn.Linear]
    alive = []

    def count(*arguments: Any) -> Any:
        alive.append(sum(item() is not None for item in full))
        return round_rows(*arguments)

    monkeypatch.setattr("ewe.engine.models.quantization.round_rows", count)
    shrink(model, "int8", CPU)
    assert alive == [*range(len(full), 1, -1)]  # the output layer stays


def test_dummy_weights_are_rounded_too(tmp_path: Any) -> None:
    CONFIGS["qwen3"].save_pretrained(tmp_path)
    config = ModelConfig(name=str(tmp_path), device="cpu", load_format="dummy", dtype="bfloat16", weights="fp8")
    one, other = load_model(config).model, load_model(config).model
    assert len(small_layers(one)) == 3 * 7
    assert all(torch.equal(layer.weight, small_layers(other)[name].weight) for name, layer in small_layers(one).items())
    assert one.dtype == torch.bfloat16


def test_weights_that_are_not_in_linear_layers_are_refused() -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    experts = transformers.MixtralConfig(**sizes, vocab_size=40, num_key_value_heads=2, num_local_experts=4)
    model = transformers.AutoModelForCausalLM.from_config(experts)
    with pytest.raises(ConfigError, match=r"MixtralForCausalLM.*leave model\.weights at auto"):
        shrink(model, "int8", CPU)


def test_what_cannot_be_is_refused_at_load(tmp_path: Any) -> None:
    CONFIGS["llama"].save_pretrained(tmp_path)
    options: dict[str, Any] = {"name": str(tmp_path), "device": "cpu", "load_format": "dummy", "weights": "int8"}
    with pytest.raises(ConfigError, match=r"model\.dtype to bfloat16"):
        load_model(ModelConfig(**options, dtype="float16"))
    config = json.loads((tmp_path / "config.json").read_text())
    quantised = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    (tmp_path / "config.json").write_text(json.dumps({**config, "quantization_config": quantised}))
    with pytest.raises(ConfigError, match="quantised already"):
        load_model(ModelConfig(**options))


def test_old_gpus_and_foreign_devices_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "an older GPU")
    with pytest.raises(ConfigError, match=r"an older GPU .*model\.weights to int8"):
        refuse_unusable("fp8", None, torch.device("cuda"), torch.bfloat16, compiled=True)

    def fail(*_: Any, **__: Any) -> None:
        raise TypeError("no such numbers here")

    monkeypatch.setattr(torch, "zeros", fail)
    with pytest.raises(ConfigError, match="no such numbers here; leave it at auto"):
        refuse_unusable("fp8", None, CPU, torch.bfloat16, compiled=False)


def test_a_gpu_without_the_kernel_is_told_of(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "an older GPU")
    monkeypatch.setattr(choose, "_compile_failure", lambda device: None)
    assert choose_few_rows("int8", CPU, torch.float32) is None
    assert not caplog.text
    assert choose_few_rows("fp8", torch.device("cuda"), torch.bfloat16) is None
    assert "slower: this GPU does not read fp8" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_layers_take_small_weights(kind: Any) -> None:
    model = build("llama")
    shrink(model, kind, CPU)
    expected = logprobs(model)
    compile_layers(model)
    try:
        torch.testing.assert_close(logprobs(model), expected, atol=LOGPROBS, rtol=0)
    finally:
        undo_compile(model)
