"""Architectures that the engine cannot honour are refused by name, with the reason."""

from __future__ import annotations

import pytest
import torch
import transformers
from parity.families import CONFIGS, build

from ewe.config import ModelConfig
from ewe.engine.attention.ewe_attention import ewe_attention, ewe_mask
from ewe.engine.attention.probe import UNKNOWN_MASK, attention_layers
from ewe.engine.models.loader import load_model
from ewe.errors import UnsupportedModelError

SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
MOE = {"num_local_experts": 2, "num_experts_per_tok": 1}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
REFUSED = {
    "encoder-decoder": (transformers.T5Config, {}, "encoder-decoder"),
    "latent attention": (transformers.DeepseekV3Config, {}, "latent"),
    "state space": (transformers.MambaConfig, {}, "recurrent state|layers of type"),
    "hybrid": (transformers.Qwen3NextConfig, {}, "linear_attention"),
    "chunked": (transformers.Llama4TextConfig, {**SIZES, **MOE}, "chunked_attention"),
    "scaled by place": (
        transformers.Llama4TextConfig,
        {**SIZES, **MOE, "layer_types": ["full_attention"] * 2},
        "place in the batch",
    ),
    "shared keys": (transformers.Gemma3nTextConfig, {}, "other layers"),
    "alibi": (transformers.FalconConfig, {"alibi": True}, "ALiBi"),
    "no registry": (transformers.BloomConfig, {}, "registry"),
    "dynamic rope": (transformers.LlamaConfig, {**SIZES, "rope_parameters": DYNAMIC}, "dynamic NTK"),
    "not causal": (transformers.Gemma3TextConfig, {**SIZES, "use_bidirectional_attention": True}, "not causal"),
    "mask of its own kind": (transformers.RobertaConfig, {**SIZES, "num_key_value_heads": None}, "neither causal"),
    "no language model": (transformers.ViTConfig, {}, "no causal language model"),
    "sinks": (transformers.GptOssConfig, {**SIZES, **MOE}, "s_aux"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case, tmp_path):
    config_class, settings, reason = REFUSED[case]
    config = config_class(**settings)
    config.architectures = (
        ["NamedModel"] if case not in ("sinks", "mask of its own kind", "no language model") else None
    )
    config.save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError, match=f"(NamedModel|GptOss|Roberta|vit).*({reason})"):
        load_model(ModelConfig(name=str(tmp_path), device="cpu", load_format="dummy"))


DECODERS = {
    # Learned absolute positions are fine: the context's places follow a unit's, as in one text.
    "learned positions": (transformers.GPT2Config, {"n_embd": 16, "n_layer": 2, "n_head": 2}),
    "learned positions from 2": (transformers.OPTConfig, SIZES),
    "partly rotary": (transformers.GPTNeoXConfig, SIZES),
    "a layer without positions": (transformers.SmolLM3Config, {**SIZES, "no_rope_layers": [1, 0]}),
    "a mask that no layer uses": (transformers.Qwen2MoeConfig, {**SIZES, "num_experts": 2, "num_experts_per_tok": 1}),
}


@pytest.mark.parametrize("case", DECODERS)
def test_other_decoders_load(case, tmp_path):
    config_class, settings = DECODERS[case]
    config_class(**settings).save_pretrained(tmp_path)
    loaded = load_model(ModelConfig(name=str(tmp_path), device="cpu", load_format="dummy"))
    assert [layer.window for layer in attention_layers(loaded.model)] == [None, None]


def test_windows_are_what_the_masks_say():
    windows = {}
    for family in ("llama", "mistral", "gemma3"):
        windows[family] = [layer.window for layer in attention_layers(build(family))]
    assert windows == {"llama": [None] * 3, "mistral": [12] * 3, "gemma3": [12, None, 12]}


def test_the_attention_does_not_run_without_the_engine():
    model = build("llama")
    with pytest.raises(UnsupportedModelError, match="ModelRunner"):
        model(torch.tensor([[1, 2]]))
    with pytest.raises(UnsupportedModelError, match="ModelRunner"):
        ewe_attention(torch.nn.Linear(1, 1), *[torch.zeros(1, 1, 1, 1)] * 3, None)


MASKS = {
    "causal": (lambda b, h, q, k: k <= q, None, 0),
    "window": (lambda b, h, q, k: (k <= q) & (q - k < 8), 8, 8),
    "bidirectional": (lambda b, h, q, k: q >= 0, None, UNKNOWN_MASK),
    "prefix": (lambda b, h, q, k: (k <= q) | (k < 3), None, UNKNOWN_MASK),
    "window off by one": (lambda b, h, q, k: (k <= q) & (q - k <= 8), 8, UNKNOWN_MASK),
    "chunks": (lambda b, h, q, k: (k <= q) & (k // 8 == q // 8), 8, UNKNOWN_MASK),
    "window not announced": (lambda b, h, q, k: (k <= q) & (q - k < 2), None, UNKNOWN_MASK),
}


@pytest.mark.parametrize("case", MASKS)
def test_masks_are_recognised(case):
    function, local_size, expected = MASKS[case]
    assert ewe_mask(mask_function=function, local_size=local_size).item() == expected


def test_a_position_blind_model_is_refused():
    class Blind(transformers.LlamaForCausalLM):
        def forward(self, *args, position_ids=None, **options):
            return super().forward(*args, position_ids=torch.tensor([[0, 1]]), **options)

    config = CONFIGS["llama"].__class__(**CONFIGS["llama"].to_dict())
    config._attn_implementation = "ewe"
    with pytest.raises(UnsupportedModelError, match=r"Blind.*positions"):
        attention_layers(Blind(config))
