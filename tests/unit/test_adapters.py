"""LoRA adapters: merged as peft would apply them, and refused by name where they do not fit."""

from __future__ import annotations

import json
from copy import deepcopy

import peft
import pytest
import torch
from engine_tokenizers import sentencepiece_like
from gguf_files import TOKENS, llama, write_gguf
from parity.families import CONFIGS
from transformers import AutoModelForCausalLM

from ewe.config import Config, MemoryConfig, ModelConfig
from ewe.config.known_models import KNOWN_MODELS
from ewe.engine.model_executor.fingerprint import identity_of
from ewe.engine.models import model_files
from ewe.engine.models.loader import load_model
from ewe.engine.startup.preflight import preflight
from ewe.errors import ConfigError

TOKEN_IDS = torch.tensor([[1, 5, 9, 40, 7, 3]])


def small(family="llama", **changes):
    config = deepcopy(CONFIGS[family])
    config.update({"vocab_size": len(sentencepiece_like()), **changes})
    with torch.random.fork_rng():
        torch.manual_seed(4)
        return AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)


def save_model(path, model):
    model.save_pretrained(path)
    sentencepiece_like().save_pretrained(path)
    return path


def save_adapter(path, model, kind=peft.LoraConfig, moved=0.2, **settings):
    """An adapter for a model, whose weights are of the size `moved` instead of an untrained one's zeros."""
    settings = {"target_modules": ["q_proj", "down_proj"], "r": 4, "task_type": "CAUSAL_LM", **settings}
    if kind is not peft.LoraConfig:
        del settings["r"]
    wrapped = peft.get_peft_model(deepcopy(model), kind(**settings)).eval()
    for name, parameter in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=moved, generator=torch.Generator().manual_seed(1))
    wrapped.save_pretrained(path)
    return path, wrapped(TOKEN_IDS).logits.detach()


def load(path, adapter="none", **settings):
    return load_model(ModelConfig(name=str(path), adapter=str(adapter), device="cpu", **settings))


def logits(model):
    model.set_attn_implementation("eager")
    return model(TOKEN_IDS).logits


@pytest.fixture
def folder(tmp_path):
    return save_model(tmp_path / "model", small())


@pytest.mark.parametrize(("family", "settings"), [("llama", {"use_rslora": True}), ("qwen3", {"lora_alpha": 32})])
def test_the_merged_model_says_what_peft_says(tmp_path, family, settings):
    folder = save_model(tmp_path / "model", small(family))
    adapter, expected = save_adapter(tmp_path / "adapter", small(family), **settings)
    assert torch.allclose(logits(load(folder, adapter).model), expected, atol=1e-4)
    assert not torch.allclose(logits(load(folder).model), expected, atol=1e-2)


def test_the_sum_is_computed_in_float32_and_cast_once(folder, tmp_path):
    adapter, _ = save_adapter(tmp_path / "adapter", small())
    exact, cast = (load(folder, adapter, dtype=dtype).model for dtype in ("float32", "bfloat16"))
    for name, weight in exact.state_dict().items():
        assert torch.equal(cast.state_dict()[name], weight.bfloat16()), name
    assert cast.lm_head.weight is cast.model.embed_tokens.weight
    assert cast.model.rotary_emb.inv_freq.dtype == torch.float32
    assert not any("lora" in name for name, _ in cast.named_modules())


def test_it_is_merged_into_a_gguf_file_and_before_weights_become_small(tmp_path):
    write_gguf(tmp_path / "tiny.gguf", llama(), TOKENS)
    adapter, expected = save_adapter(tmp_path / "adapter", llama())
    assert torch.allclose(logits(load(tmp_path / "tiny.gguf", adapter).model), expected, atol=1e-4)
    rounded = logits(load(tmp_path / "tiny.gguf", adapter, weights="int8").model)
    assert (rounded - expected).abs().max() < 0.05 * expected.abs().max()


def test_units_are_those_of_another_model(folder, tmp_path):
    adapter, _ = save_adapter(tmp_path / "adapter", small())
    nothing, _ = save_adapter(tmp_path / "nothing", small(), moved=0.0)
    without, with_it, with_nothing = (
        identity_of(load(folder, item), MemoryConfig()) for item in ("none", adapter, nothing)
    )
    assert with_it.weights != without.weights
    assert with_nothing == without


MISFITS = {
    "another size": ({"hidden_size": 64}, {}, r"lora_A\.weight is \[4, 64\], needed is \[4, 32\]"),
    "more layers": ({"num_hidden_layers": 4}, {}, r"no place for .*layers\.3\."),
    "other modules": ({}, {"target_modules": ["c_attn"]}, r"c_attn"),
    "the tied embedding": ({}, {"target_modules": ["embed_tokens", "q_proj"]}, "input or output embedding"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_is_refused_by_name(folder, tmp_path, case):
    changes, settings, reason = MISFITS[case]
    own = {} if case == "other modules" else settings
    adapter, _ = save_adapter(tmp_path / "adapter", small(**changes), **own)
    if case == "other modules":
        path = adapter / "adapter_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    with pytest.raises(ConfigError, match=f"does not fit this LlamaForCausalLM: .*{reason}"):
        load(folder, adapter)


def test_an_adapter_that_lacks_layers_is_refused(tmp_path):
    folder = save_model(tmp_path / "model", small(num_hidden_layers=4))
    adapter, _ = save_adapter(tmp_path / "adapter", small())
    with pytest.raises(ConfigError, match=r"it lacks .*layers\.3\..* and 1 more"):
        load(folder, adapter)


def test_other_kinds_and_damaged_files_are_refused(folder, tmp_path):
    other, _ = save_adapter(tmp_path / "other", small(), peft.IA3Config, feedforward_modules=["down_proj"])
    with pytest.raises(ConfigError, match="no LoRA adapter but IA3Config"):
        load(folder, other)
    (other / "adapter_model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match="cannot read the adapter"):
        load(folder, other)
    (other / "adapter_config.json").write_text("{")
    with pytest.raises(ConfigError, match="cannot read the adapter"):
        load(folder, other)


def refusal(**settings):
    with pytest.raises(ConfigError) as caught:
        preflight(Config(model=ModelConfig(**settings)))
    return str(caught.value)


def test_what_is_missing_is_said_before_torch_is_needed(folder, tmp_path, monkeypatch):
    adapter, _ = save_adapter(tmp_path / "adapter", small())
    named = {"name": str(folder), "adapter": str(adapter)}
    assert "load_format" in refusal(**named, load_format="dummy")
    with monkeypatch.context() as patch:
        patch.setattr(model_files, "find_spec", lambda name: None)
        assert 'pip install "ewe-engine[adapters]"' in refusal(**named)
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    assert "pickled weights are not read" in refusal(**named)
    (adapter / "adapter_config.json").unlink()
    assert "folder saved by peft" in refusal(**named)
    assert "no such directory" in refusal(name=str(folder), adapter="memory-reader")
    preflight(Config(model=ModelConfig(name=str(folder), adapter="none")))


def test_an_adapter_of_this_package_goes_by_its_name_with_its_model_only(tmp_path, monkeypatch):
    monkeypatch.setenv("EWE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(model_files, "files", lambda package: tmp_path)
    save_model(KNOWN_MODELS["smollm2"].folder, small())
    _, expected = save_adapter(tmp_path / "adapters" / "smollm2-reader", small())
    assert torch.allclose(logits(load("smollm2", "reader").model), expected, atol=1e-4)
    assert refusal(name="smollm2", adapter="writer") == "model.adapter 'writer': no such directory; smollm2 has reader"
    assert "no such directory" in refusal(name=str(KNOWN_MODELS["smollm2"].folder), adapter="reader")


def test_an_adapter_may_end_answers_with_tokens_of_its_own(tmp_path):
    model = small()
    folder = save_model(tmp_path / "model", model)
    save_adapter(tmp_path / "adapter", model)
    config = ModelConfig(name=str(folder), adapter=str(tmp_path / "adapter"))
    before = load_model(config).eos_token_ids
    (tmp_path / "adapter" / "generation_config.json").write_text('{"eos_token_id": [7, 9]}', encoding="utf-8")
    assert load_model(config).eos_token_ids == before | {7, 9} != before
    (tmp_path / "adapter" / "generation_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot read the adapter"):
        load_model(config)
