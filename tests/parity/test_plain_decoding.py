"""Without units the engine's model is plain transformers: same tokens, same log-probabilities."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from parity.families import FAMILIES, VOCAB, WINDOW, build, generated_greedily
from parity.paged import PagedModel
from tolerances import LOGPROBS

from ewe.engine.attention.metadata import TokenOnDevice

PROMPT = torch.randint(3, VOCAB, (30,), generator=torch.Generator().manual_seed(1)).tolist()
NEW_TOKENS = 20
assert len(PROMPT) > 2 * WINDOW


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def generated(family):
    return generated_greedily(build(family, attention="eager"), PROMPT, NEW_TOKENS)


@pytest.mark.parametrize("chunks", [[30], [11, 1, 18], [13, 13, 4]])
def test_greedy_tokens_and_log_probabilities(family, generated, chunks):
    tokens, expected = generated
    paged = PagedModel(build(family))
    context = paged.context()
    done = 0
    for chunk in chunks:
        row = paged.row(context, PROMPT[done : done + chunk], wants_logits=done + chunk == len(PROMPT))
        result = paged.run(row)
        done += chunk
    written, found = [], [result.logits]
    for _ in range(NEW_TOKENS - 1):
        written.append(int(found[-1].argmax()))
        found.append(paged.run(paged.row(context, written[-1:])).logits)
    written.append(int(found[-1].argmax()))
    assert written == tokens
    torch.testing.assert_close(torch.cat(found).log_softmax(-1), expected, atol=LOGPROBS, rtol=0)


def test_tokens_that_only_the_device_knows(family, generated):
    """Beside a prompt of several tokens, so that the flat order is not the rows' order."""
    tokens, expected = generated
    paged = PagedModel(build(family))
    context, other = paged.context(), paged.context()
    found = [paged.run(paged.row(context, PROMPT)).logits]
    for number in range(3):
        drawn = torch.cat([torch.tensor([3]), found[-1].argmax(-1)])
        long = paged.row(other, PROMPT[4 * number : 4 * number + 4], wants_logits=False)
        row = replace(paged.row(context, [0]), placeholder=TokenOnDevice(drawn, 1))
        found.append(paged.run(long, row).logits)
    assert [int(logits.argmax()) for logits in found] == tokens[:4]
    torch.testing.assert_close(torch.cat(found).log_softmax(-1), expected[:4], atol=LOGPROBS, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_low_precision_models_give_float32_logits(family, dtype):
    paged = PagedModel(build(family, dtype))
    context = paged.context(0, paged.encode([PROMPT[:9]]))
    for tokens in (PROMPT[:20], PROMPT[20:21]):
        logits = paged.logits(context, tokens)
        assert logits.dtype == torch.float32
        assert logits.isfinite().all()
    assert paged.pool.keys[0].dtype == dtype


def test_all_logits_are_those_of_a_whole_forward(family):
    whole = build(family, attention="eager")(torch.tensor([PROMPT]), use_cache=False).logits[0]
    paged = PagedModel(build(family))
    context = paged.context()
    found = torch.cat([paged.logits(context, PROMPT[:17]), paged.logits(context, PROMPT[17:])])
    torch.testing.assert_close(found.log_softmax(-1), whole.log_softmax(-1), atol=LOGPROBS, rtol=0)
