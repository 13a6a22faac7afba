"""Tiny GGUF files, written with llama.cpp's own package from a tiny llama, its tokenizer included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

_ROW = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
_ATTENTION = {"attn_q": "q_proj", "attn_k": "k_proj", "attn_v": "v_proj", "attn_output": "o_proj"}
_FEED_FORWARD = {"ffn_gate": "gate_proj", "ffn_up": "up_proj", "ffn_down": "down_proj"}
NAMES = {**_ROW, **{key: f"self_attn.{name}" for key, name in _ATTENTION.items()}} | {
    key: f"mlp.{name}" for key, name in _FEED_FORWARD.items()
}
TOKENS = ["<unk>", "<s>", "</s>", *[chr(number) for number in range(33, 127)], "Ġ", "ab"]
SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "max_position_embeddings": 128}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def llama(tied: bool = True) -> Any:
    """The same tiny model at every call, for a vocabulary of TOKENS."""
    config = LlamaConfig(**SIZES, **HEADS, vocab_size=len(TOKENS), tie_word_embeddings=tied, initializer_range=0.2)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return LlamaForCausalLM(config).eval().requires_grad_(False)


def write_gguf(path: Path, model: Any, tokens: list[str] | None, quantised: bool = False) -> None:
    """A llama as a GGUF file in float32, or its matrices in 8-bit blocks; without tokens it holds no tokenizer."""
    config, state = model.config, {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    if tokens is not None:
        _add_tokenizer(writer, tokens)
    tensors = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
    if not config.tie_word_embeddings:
        tensors["output.weight"] = "lm_head.weight"
    for layer in range(config.num_hidden_layers):
        tensors |= {f"blk.{layer}.{key}.weight": f"model.layers.{layer}.{NAMES[key]}.weight" for key in NAMES}
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for name, own in tensors.items():
        key = name.split(".")[-2]
        values = _interleaved(state[own], heads[key]) if key in heads else state[own]
        _add_tensor(writer, name, values, quantised and values.ndim == 2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tensor(writer: Any, name: str, values: np.ndarray, quantised: bool) -> None:
    if not quantised:
        writer.add_tensor(name, np.ascontiguousarray(values, np.float32))
        return
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor(name, gguf.quantize(np.ascontiguousarray(values, np.float32), kind), raw_dtype=kind)


def _interleaved(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """The rows of a query or key projection in llama.cpp's order: the two halves of a head's rotary pairs alternate."""
    rows, columns = weight.shape
    return weight.reshape(num_heads, 2, rows // num_heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _add_tokenizer(writer: Any, tokens: list[str]) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * (len(tokens) - 3))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(CHAT_TEMPLATE)
