"""The Triton backend against the torch backend, on tiny models and on rows of every kind."""

from __future__ import annotations

import pytest
import torch
from parity.families import VOCAB, build
from parity.paged import PagedModel
from tolerances import LOGPROBS, SHARES

from ewe.attention.triton_backend import TritonBackend

GENERATOR = torch.Generator().manual_seed(4)


def random_tokens(length):
    return torch.randint(3, VOCAB, (length,), generator=GENERATOR).tolist()


UNITS = [random_tokens(length) for length in (17, 24, 1)]
PROMPTS = [random_tokens(length) for length in (20, 3)]
WEIGHTS = [(0.25, 1.0, 3.5), (1.0, 2.0, 0.5)]
NEXT = random_tokens(2)


def run(model, triton):
    """Logits and shares: prompts under shared units, then one step of decoding."""
    paged = PagedModel(model, attribution=True)
    if triton:
        shape = paged.pool.keys[0].shape
        paged.runner._backend = TritonBackend(model.device, paged.pool.block_size, shape[1])
    units = paged.encode(UNITS)
    contexts = [paged.context(24, units, weights) for weights in WEIGHTS]
    rows = [paged.row(item, tokens, all_logits=True) for item, tokens in zip(contexts, PROMPTS, strict=True)]
    results = [paged.run(*rows)]
    results.append(paged.run(*[paged.row(item, [token]) for item, token in zip(contexts, NEXT, strict=True)]))
    return results


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_equals_the_torch_backend(family):
    model = build(family)
    for found, expected in zip(run(model, True), run(model, False), strict=True):
        torch.testing.assert_close(found.logits.log_softmax(-1), expected.logits.log_softmax(-1), atol=LOGPROBS, rtol=0)
        for one, other in zip(found.attention, expected.attention, strict=True):
            torch.testing.assert_close(torch.from_numpy(one), torch.from_numpy(other), atol=SHARES, rtol=0)
