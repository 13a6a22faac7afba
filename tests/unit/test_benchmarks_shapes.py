"""Limits on paper: the bytes are those of transformers' models."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.shapes import LLAMA, head_dim, step_seconds, token_bytes, weight_bytes


@pytest.mark.parametrize("name", LLAMA)
def test_the_weights_are_those_of_the_model(name: str) -> None:
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig(**LLAMA[name])).bfloat16()
    weights = sum(weight.nbytes for weight in model.parameters())
    own_embedding = 0 if LLAMA[name]["tie_word_embeddings"] else model.get_input_embeddings().weight.nbytes
    assert weight_bytes(LLAMA[name]) == weights - own_embedding


def test_a_token_of_8b_takes_128_kib() -> None:
    assert head_dim(LLAMA["8b"]) == 128
    assert token_bytes(LLAMA["8b"]) == 128 << 10


def test_more_gpus_read_less_each_and_what_does_not_fit_has_no_limit() -> None:
    assert step_seconds(LLAMA["70b"], 1, 1) is None
    two, four = step_seconds(LLAMA["70b"], 2, 1), step_seconds(LLAMA["70b"], 4, 1)
    assert two is not None
    assert four is not None
    assert two / 2 < four < two / 1.9
