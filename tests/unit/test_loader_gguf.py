"""GGUF files: the same model as from safetensors, plain once it is loaded, and refused with the reason."""

from __future__ import annotations

import pytest
import torch
from gguf_files import CHAT_TEMPLATE, TOKENS, llama, write_gguf

from ewe.config import Config, MemoryConfig, ModelConfig
from ewe.engine.model_executor.fingerprint import identity_of
from ewe.engine.models import model_files
from ewe.engine.models.loader import load_model
from ewe.engine.startup.preflight import preflight
from ewe.errors import ConfigError


@pytest.fixture
def file(tmp_path):
    write_gguf(tmp_path / "tiny.gguf", llama(), TOKENS)
    return tmp_path / "tiny.gguf"


def load(path, on_load=lambda step: None, **settings):
    return load_model(ModelConfig(name=str(path), device="cpu", **settings), on_load)


def logits(model):
    model.set_attn_implementation("eager")
    return model(torch.tensor([[1, 5, 9, 40, 7, 98, 3]])).logits


@pytest.mark.parametrize("tied", [True, False])
def test_the_weights_are_those_of_the_model(tmp_path, tied):
    original = llama(tied)
    write_gguf(tmp_path / "tiny.gguf", original, TOKENS)
    loaded = load(tmp_path / "tiny.gguf")
    assert loaded.model.config.tie_word_embeddings == tied
    assert (loaded.model.lm_head.weight is loaded.model.model.embed_tokens.weight) == tied
    assert torch.allclose(logits(loaded.model), logits(original), atol=1e-5)
    assert loaded.eos_token_ids == {2}
    assert loaded.max_model_len == 128


def test_its_tokenizer_and_chat_template_come_along(file):
    tokenizer = load(file).tokenizer
    assert tokenizer.convert_ids_to_tokens([1, 98]) == ["<s>", "ab"]
    assert tokenizer("xab", add_special_tokens=False)["input_ids"] == [TOKENS.index("x"), TOKENS.index("ab")]
    assert tokenizer.chat_template == CHAT_TEMPLATE


def test_once_loaded_nothing_is_quantised(tmp_path):
    file, steps = tmp_path / "small.gguf", []
    write_gguf(file, llama(), TOKENS, quantised=True)
    model = load(file, steps.append, dtype="bfloat16").model
    assert all(item.dtype == torch.bfloat16 for item in model.parameters())
    assert "quantization_config" not in model.config.to_dict()
    model.save_pretrained(tmp_path / "saved")
    load(file, weights="int8")
    close = logits(load(file).model) - logits(llama())
    assert 0 < close.abs().max() < 0.05 * logits(llama()).abs().max()
    assert any(str(step).startswith("widened small.gguf from 0 MiB to 0 MiB of bfloat16") for step in steps)


def test_units_made_from_a_file_fit_the_same_weights_saved_by_transformers(file, tmp_path):
    loaded = load(file)
    loaded.model.save_pretrained(tmp_path / "saved")
    loaded.tokenizer.save_pretrained(tmp_path / "saved")
    one, other = (identity_of(item, MemoryConfig()) for item in (loaded, load(tmp_path / "saved")))
    assert one == other


def test_what_is_wrong_with_a_file_is_said_before_torch_is_needed(file, tmp_path, monkeypatch):
    (tmp_path / "page.gguf").write_text("<html>404</html>")
    for path, problem in ((tmp_path / "page.gguf", "is no GGUF file"), (tmp_path / "absent.gguf", "no such")):
        with pytest.raises(ConfigError, match=problem):
            preflight(Config(model=ModelConfig(name=str(path))))
    (tmp_path / "page.gguf").unlink()
    with pytest.raises(ConfigError, match=r"the GGUF file itself \(.*tiny\.gguf\)"):
        preflight(Config(model=ModelConfig(name=str(tmp_path))))
    monkeypatch.setattr(model_files, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'pip install "ewe-engine\[gguf\]"'):
        preflight(Config(model=ModelConfig(name=str(file))))


def test_a_file_without_a_tokenizer_or_cut_short_is_refused(file, tmp_path):
    write_gguf(tmp_path / "mute.gguf", llama(), None)
    with pytest.raises(ConfigError, match=r"cannot load Tokenizer from '.*mute\.gguf'"):
        load(tmp_path / "mute.gguf")
    content = file.read_bytes()
    for size in (100, len(content) // 2):
        (tmp_path / "cut.gguf").write_bytes(content[:size])
        with pytest.raises(ConfigError, match=r"cannot load .* from '.*cut\.gguf'"):
            load(tmp_path / "cut.gguf")
