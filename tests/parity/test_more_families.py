"""Checkpoints of more families give transformers' tokens and log-probabilities, with units too."""

from __future__ import annotations

import pytest
import torch
from parity.families import generated_greedily
from parity.more_families import MORE, save_checkpoint
from parity.paged import PagedModel
from parity.test_units import CAPACITY, CASES, PROMPT, UNITS, eager_logits
from tolerances import LOGPROBS
from transformers import AutoModelForCausalLM
from unit.test_loader import load

NEW_TOKENS = 6


@pytest.fixture(scope="module", params=MORE)
def models(request, tmp_path_factory):
    """The engine's model and transformers' own, of one checkpoint."""
    path = tmp_path_factory.mktemp("checkpoint")
    save_checkpoint(MORE[request.param](), path)
    eager = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
    return load(path).model, eager.eval().requires_grad_(False)


def test_greedy_tokens_and_log_probabilities(models):
    model, eager = models
    tokens, expected = generated_greedily(eager, PROMPT, NEW_TOKENS)
    paged = PagedModel(model)
    context = paged.context()
    paged.run(paged.row(context, PROMPT[:17], wants_logits=False))
    found = [paged.run(paged.row(context, PROMPT[17:])).logits]
    for _ in range(NEW_TOKENS - 1):
        found.append(paged.run(paged.row(context, [int(found[-1].argmax())])).logits)
    logits = torch.cat(found)
    assert logits.argmax(-1).tolist() == tokens
    torch.testing.assert_close(logits.log_softmax(-1), expected, atol=LOGPROBS, rtol=0)


def test_under_units(models):
    model, eager = models
    merge, weights = CASES["weighted"]
    paged = PagedModel(model, merge)
    found = paged.logits(paged.context(CAPACITY, paged.encode(UNITS), weights), PROMPT).log_softmax(-1)
    expected = eager_logits(eager, UNITS, PROMPT, weights, merge).log_softmax(-1)
    torch.testing.assert_close(found, expected, atol=LOGPROBS, rtol=0)
    assert (expected - eager_logits(eager, [], PROMPT, [], merge).log_softmax(-1)).abs().max() > 10 * LOGPROBS
