"""The Triton backend against the torch backend, on tiny models."""

from __future__ import annotations

import pytest
import torch
from parity.families import VOCAB, build
from parity.paged import PagedModel
from tolerances import LOGPROBS

from ewe.engine.attention.triton_backend import TritonBackend

GENERATOR = torch.Generator().manual_seed(4)


def random_tokens(length):
    return torch.randint(3, VOCAB, (length,), generator=GENERATOR).tolist()


UNITS = [random_tokens(length) for length in (7, 11, 1)]
PROMPTS = [random_tokens(length) for length in (14, 3)]
WEIGHTS = [(0.25, 1.0, 3.5), (1.0, 2.0, 0.5)]
NEXT = random_tokens(2)


def run(model, triton):
    """Logits of prompts under shared units, then of one step of decoding."""
    paged = PagedModel(model)
    if triton:
        shape = paged.pool.keys[0].shape
        paged.runner._backend = TritonBackend(model.device, paged.pool.block_size, shape[1])
    units = paged.encode(UNITS)
    contexts = [paged.context(24, units, weights) for weights in WEIGHTS]
    rows = [paged.row(item, tokens, all_logits=True) for item, tokens in zip(contexts, PROMPTS, strict=True)]
    prompt = paged.run(*rows).logits
    rows = [paged.row(item, [token]) for item, token in zip(contexts, NEXT, strict=True)]
    return torch.cat([prompt, paged.run(*rows).logits])


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_equals_the_torch_backend(family):
    model = build(family)
    # One layer of each kind; the interpreter is slow.
    model.model.layers, model.config.num_hidden_layers = model.model.layers[:2], 2
    found, expected = run(model, True), run(model, False)
    torch.testing.assert_close(found.log_softmax(-1), expected.log_softmax(-1), atol=LOGPROBS, rtol=0)
