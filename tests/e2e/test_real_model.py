"""A real chat model, known by its name: the engine says what transformers says."""

from __future__ import annotations

import pytest
import torch
from real_models import require_model
from transformers import AutoModelForCausalLM

from ewe import LLM, SamplingParams
from ewe.config.known_models import KNOWN_MODELS

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def smollm2():
    return require_model("smollm2")


def test_it_answers_as_under_transformers(smollm2):
    with LLM(model=smollm2, config={"model": {"device": "cpu"}, "memory": {"retrieval_units": 0}}) as llm:
        prompt = llm.apply_chat_template(QUESTION)
        [answer] = llm.chat(QUESTION, SamplingParams(max_tokens=12))
        tokens = llm.tokenizer(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
    reference = AutoModelForCausalLM.from_pretrained(KNOWN_MODELS[smollm2].folder, dtype=torch.float32)
    expected = reference.generate(tokens, max_new_tokens=12, do_sample=False)[0, tokens.shape[1] :].tolist()
    assert list(answer.token_ids) == expected
    assert "Paris" in answer.text
