"""Tiny random models of every family that the engine is tested with; token ids only, no tokenizer.

`build(name)` gives a model with the ewe attention, `build(name, attention="eager")` the same weights under
transformers' own attention. Windows are short, so that the prompts of the tests exceed them.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    LlamaConfig,
    MistralConfig,
    Phi3Config,
    PhiConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

import ewe.engine.attention.ewe_attention  # noqa: F401  (registers the attention)

VOCAB = 97
WINDOW = 12

SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    # Larger than usual: attention must have something to choose between.
    "initializer_range": 0.3,
}
_ALTERNATE = ["sliding_attention", "full_attention", "sliding_attention"]

CONFIGS: dict[str, PreTrainedConfig] = {
    "llama": LlamaConfig(**SIZES, tie_word_embeddings=True),
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES, head_dim=16),
    "mistral": MistralConfig(**SIZES, sliding_window=WINDOW),
    "gemma": GemmaConfig(**SIZES, head_dim=16),
    "gemma2": Gemma2Config(
        **SIZES,
        head_dim=16,
        sliding_window=WINDOW,
        layer_types=_ALTERNATE,
        # Low caps, so that the caps shape the result.
        attn_logit_softcapping=4.0,
        final_logit_softcapping=6.0,
    ),
    "gemma3": Gemma3TextConfig(**SIZES, head_dim=16, sliding_window=WINDOW, layer_types=_ALTERNATE),
    "phi": PhiConfig(**SIZES),
    "phi3": Phi3Config(**SIZES, sliding_window=WINDOW),
}
FAMILIES = tuple(CONFIGS)


def build(name: str, dtype: torch.dtype = torch.float32, attention: str = "ewe") -> Any:
    """A tiny model of the family, the same weights at every call, in eval mode."""
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(deepcopy(CONFIGS[name]), dtype=dtype, attn_implementation=attention)
    return model.eval().requires_grad_(False)


def generated_greedily(model, prompt, count):
    """transformers' own greedy tokens after a prompt, and the log-probabilities [count, vocab] that they come from."""
    output = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
        max_new_tokens=count,
        do_sample=False,
        eos_token_id=None,
        output_logits=True,
        return_dict_in_generate=True,
    )
    return output.sequences[0, len(prompt) :].tolist(), torch.cat(output.logits).log_softmax(-1)
