"""Loading: sources, precision, limits, end tokens, and clear errors."""

from __future__ import annotations

import json

import pytest
import torch
from parity.families import CONFIGS, VOCAB, build
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from ewe.config import ModelConfig
from ewe.engine.models.loader import load_model
from ewe.engine.models.model_files import model_source
from ewe.errors import ConfigError


def save_tokenizer(path):
    words = {f"w{number}": number for number in range(VOCAB)}
    PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w0"))).save_pretrained(path)


@pytest.fixture
def checkpoint(tmp_path):
    model = build("llama", attention="eager")
    model.generation_config.eos_token_id = [2, 5]
    model.save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    return tmp_path


def load(path, **settings):
    return load_model(ModelConfig(name=str(path), device="cpu", **settings))


def test_a_saved_model(checkpoint):
    loaded = load(checkpoint)
    assert loaded.model.config._attn_implementation == "ewe"
    assert loaded.model.dtype == torch.float32
    assert not loaded.model.training
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    assert loaded.tokenizer.decode([3]) == "w3"
    assert loaded.max_model_len == CONFIGS["llama"].max_position_embeddings
    assert loaded.eos_token_ids == {2, 5}
    original = build("llama").state_dict()
    assert all(torch.equal(tensor, original[name]) for name, tensor in loaded.model.state_dict().items())


def test_it_tells_how_many_weights_are_read(checkpoint):
    steps = []
    load_model(ModelConfig(name=str(checkpoint), device="cpu"), steps.append)
    counted = [(step.done, step.total, step.unit) for step in steps if step.total]
    total = counted[0][1]
    assert [step.phase for step in steps] == ["loading weights"] * (1 + total)
    assert counted == [(done, total, "tensors") for done in range(1, total + 1)]
    assert total >= len(build("llama").state_dict()) // 2


def test_auto_is_float32_on_a_cpu_and_explicit_precisions_are_kept(checkpoint):
    build("llama", torch.bfloat16, attention="eager").save_pretrained(checkpoint)
    assert load(checkpoint).model.dtype == torch.float32
    assert load(checkpoint, dtype="bfloat16").model.dtype == torch.bfloat16


@pytest.mark.parametrize("as_file", [False, True])
def test_dummy_weights_need_a_configuration_only(tmp_path, as_file):
    CONFIGS["qwen3"].save_pretrained(tmp_path)
    path = tmp_path / "config.json" if as_file else tmp_path
    state = torch.random.get_rng_state()
    one, other = load(path, load_format="dummy"), load(path, load_format="dummy")
    assert torch.equal(torch.random.get_rng_state(), state)
    assert one.tokenizer is None
    assert one.eos_token_ids == {2}
    weight = one.model.model.layers[0].mlp.up_proj.weight
    assert weight.std() > 0
    assert torch.equal(weight, other.model.model.layers[0].mlp.up_proj.weight)


def test_dummy_weights_take_a_tokenizer_that_is_there(tmp_path):
    CONFIGS["qwen3"].save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    assert load(tmp_path, load_format="dummy").tokenizer.decode([4]) == "w4"


def test_the_length_can_be_shortened_but_not_exceeded(checkpoint):
    assert load(checkpoint, max_model_len=100).max_model_len == 100
    with pytest.raises(ConfigError, match=r"max_model_len 513 .*512"):
        load(checkpoint, max_model_len=513)


def test_longrope_keeps_within_the_original_length(tmp_path):
    config = CONFIGS["phi3"].to_dict()
    half = config["hidden_size"] // config["num_attention_heads"] // 2
    config["original_max_position_embeddings"] = 128
    config["rope_parameters"] = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * half,
        "long_factor": [2.0] * half,
        "original_max_position_embeddings": 128,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert load(tmp_path, load_format="dummy").max_model_len == 128
    with pytest.raises(ConfigError, match="128"):
        load(tmp_path, load_format="dummy", max_model_len=129)


def test_a_name_without_an_owner_is_refused_at_once_with_the_nearest_known_one():
    told = r"unknown model 'smolm2'; did you mean smollm2\? known: builtin, smollm2, .*a hub id \(owner/name\)"
    with pytest.raises(ConfigError, match=told):
        model_source(ModelConfig(name="smolm2"))
    with pytest.raises(ConfigError, match=r"unknown model 'gpt7'; known: builtin"):
        model_source(ModelConfig(name="gpt7"))
    assert model_source(ModelConfig(name="smolm2/smollm2")).place == "smolm2/smollm2"


def test_missing_parts_are_named(checkpoint):
    with pytest.raises(ConfigError, match="no such directory"):
        load(checkpoint / "nowhere")
    with pytest.raises(ConfigError, match="is a file"):
        load(checkpoint / "config.json")
    for path in checkpoint.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(ConfigError, match="no tokenizer"):
        load(checkpoint)
    (checkpoint / "model.safetensors").rename(checkpoint / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="pickled"):
        load(checkpoint)
    (checkpoint / "pytorch_model.bin").unlink()
    with pytest.raises(ConfigError, match="dummy"):
        load(checkpoint)
    (checkpoint / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"no config\.json"):
        load(checkpoint)


def test_damaged_files_are_named(checkpoint):
    (checkpoint / "model.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(ConfigError, match=str(checkpoint)):
        load(checkpoint)
    (checkpoint / "config.json").write_text("{")
    with pytest.raises(ConfigError, match=str(checkpoint)):
        load(checkpoint)


def test_weights_that_do_not_fit_the_configuration_are_refused(checkpoint):
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 4}))
    with pytest.raises(ConfigError, match=r"layers\.3"):
        load(checkpoint)


def test_an_unknown_device_is_named(checkpoint):
    with pytest.raises(ConfigError, match="abacus"):
        load_model(ModelConfig(name=str(checkpoint), device="abacus"))
