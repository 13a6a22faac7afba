"""More families, and variants of those in `families`, whose attention is tested once each: name or "name/variant"."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from parity.families import SIZES, VOCAB, WINDOW
from unit.test_loader import save_tokenizer

_ALTERNATE = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
_EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_GROUPED = {**_EXPERTS, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1}
_SCALED = {"embedding_multiplier": 2.0, "attention_multiplier": 0.3, "residual_multiplier": 0.7, "logits_scaling": 3.0}
_GEMMA4 = {
    **_ALTERNATE,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    "num_kv_shared_layers": 0,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": VOCAB,
    "head_dim": 8,
    "global_head_dim": 16,
}
_VISION = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}


def _rope(kind: str, **settings: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 1e4, **settings}}


def _of(name: str, **settings: Any) -> Callable[[], Any]:
    """A small configuration of a class of transformers."""
    return partial(getattr(transformers, f"{name}Config"), **{**SIZES, **settings})


_YARN = _rope("yarn", factor=4.0, original_max_position_embeddings=16)
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}

MORE: dict[str, Callable[[], Any]] = {
    "llama/llama3": _of("Llama", **_rope("llama3", factor=8.0, **_LLAMA3)),
    "llama/linear": _of("Llama", **_rope("linear", factor=4.0)),
    "qwen2/yarn": _of("Qwen2", **_YARN),
    "qwen2/window": _of("Qwen2", use_sliding_window=True, sliding_window=WINDOW, max_window_layers=1),
    "phi3/longrope": _of(
        "Phi3",
        partial_rotary_factor=0.5,
        **_rope("longrope", short_factor=[1.0, 1.5], long_factor=[2.0, 3.0], original_max_position_embeddings=512),
    ),
    "gemma3/images": partial(
        transformers.Gemma3Config,
        text_config={**SIZES, **_ALTERNATE, "head_dim": 16},
        vision_config=_VISION,
        mm_tokens_per_image=1,
    ),
    "qwen2_moe": _of("Qwen2Moe", **_EXPERTS, shared_expert_intermediate_size=16),
    "qwen3_moe": _of("Qwen3Moe", **_EXPERTS, head_dim=16),
    "mixtral": _of("Mixtral", **_EXPERTS, sliding_window=WINDOW),
    "ministral": _of("Ministral", **_ALTERNATE, head_dim=8),
    "ministral3": _of(
        "Ministral3",
        head_dim=8,
        **_rope("yarn", factor=16.0, original_max_position_embeddings=16, llama_4_scaling_beta=0.5),
    ),
    "gemma4_text": _of("Gemma4Text", **_GEMMA4),
    "gemma4_text/experts": _of(
        "Gemma4Text",
        **{**_GEMMA4, "hidden_size_per_layer_input": 0},
        attention_k_eq_v=True,
        num_global_key_value_heads=1,
        enable_moe_block=True,
        num_experts=4,
        top_k_experts=2,
        moe_intermediate_size=16,
    ),
    "phimoe": _of("Phimoe", **_EXPERTS, **_rope("default")),
    "granite": _of("Granite", **_SCALED),
    "granitemoe": _of("GraniteMoe", **_EXPERTS, **_SCALED),
    "granitemoehybrid": _of(
        "GraniteMoeHybrid",
        **_EXPERTS,
        **_SCALED,
        layer_types=["attention"] * 3,
        position_embedding_type="rope",
        shared_intermediate_size=16,
        mamba_n_heads=4,
        mamba_d_head=16,
    ),
    "olmo": _of("Olmo"),
    "olmo2": _of("Olmo2"),
    "olmo3": _of("Olmo3", **_ALTERNATE, **_YARN),
    "olmoe": _of("Olmoe", **_EXPERTS),
    "smollm3": _of("SmolLM3", no_rope_layers=[1, 0, 1]),
    "cohere": _of("Cohere", use_qk_norm=True, logit_scale=1.0),
    "cohere2": _of("Cohere2", **_ALTERNATE, logit_scale=1.0),
    "exaone4": _of("Exaone4", **_ALTERNATE),
    "glm": _of("Glm", head_dim=8),
    "glm4": _of("Glm4", head_dim=8),
    "glm4_moe": _of("Glm4Moe", **_GROUPED, head_dim=8, n_shared_experts=1),
    "gpt2": partial(
        transformers.GPT2Config, vocab_size=VOCAB, n_embd=32, n_layer=3, n_head=4, bos_token_id=1, eos_token_id=2
    ),
    "gpt_neox": _of("GPTNeoX"),
    "opt": _of("OPT", ffn_dim=48, word_embed_proj_dim=32),
    "starcoder2": _of("Starcoder2", sliding_window=WINDOW),
    "helium": _of("Helium", head_dim=8),
    "arcee": _of("Arcee"),
    "apertus": _of("Apertus"),
    "seed_oss": _of("SeedOss", head_dim=8),
    "ernie4_5": _of("Ernie4_5"),
    "ernie4_5_moe": _of("Ernie4_5_Moe", **_EXPERTS, moe_num_experts=4, moe_k=2, moe_layer_start_index=1),
    "hunyuan_v1_dense": _of("HunYuanDenseV1", head_dim=8),
    "minimax_m2": _of("MiniMaxM2", **_EXPERTS, head_dim=8, rotary_dim=8),
}


def save_checkpoint(config: Any, path: Path) -> None:
    """A random model in a folder. No two heads are alike: not in what is made of zeros, and not in norms."""
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        for name, weight in model.named_parameters():
            if weight.ndim > 1 or "bias" in name or "norm" in name:
                torch.nn.init.normal_(weight, mean=float("norm" in name and "bias" not in name), std=0.3)
    model.save_pretrained(path)
    save_tokenizer(path)
