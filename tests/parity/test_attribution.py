"""Shares of attention per unit, against the probabilities of transformers' eager attention."""

from __future__ import annotations

import pytest
import torch
from parity.families import FAMILIES, build
from parity.paged import PagedModel
from parity.test_units import CAPACITY, PROMPT, UNITS, eager_inputs
from tolerances import SHARES

WEIGHTS = [0.25, 1.0, 3.5, 0.6]


@pytest.mark.parametrize("merge", ["paper", "plain"])
@pytest.mark.parametrize("family", FAMILIES)
def test_shares_equal_the_eager_probabilities(family, merge):
    eager = build(family, attention="eager")
    output = eager(**eager_inputs(eager, UNITS, PROMPT, WEIGHTS, merge), output_attentions=True)
    # [layers, heads, queries, keys], of the context's queries only
    probabilities = torch.cat(output.attentions)[:, :, -len(PROMPT) :]
    parts = probabilities.split([*map(len, UNITS), len(PROMPT)], dim=-1)
    expected = torch.stack([part.sum(-1).mean((0, 1)) for part in parts], dim=-1)  # [queries, segments]

    paged = PagedModel(build(family), merge, attribution=True)
    context = paged.context(CAPACITY, paged.encode(UNITS), WEIGHTS)
    [prefill] = paged.run(paged.row(context, PROMPT[:-1])).attention
    lone = paged.row(paged.context(), [4, 5, 6])
    decode, other = paged.run(paged.row(context, PROMPT[-1:]), lone).attention
    torch.testing.assert_close(torch.from_numpy(prefill), expected[:-1].mean(0), atol=SHARES, rtol=0)
    torch.testing.assert_close(torch.from_numpy(decode), expected[-1], atol=SHARES, rtol=0)
    for shares in (prefill, decode, other):
        assert shares.sum() == pytest.approx(1.0, abs=SHARES)
    assert other.shape == (1,)


def test_logits_do_not_depend_on_attribution():
    results = []
    for attribution in (False, True):
        paged = PagedModel(build("qwen3"), attribution=attribution)
        result = paged.run(paged.row(paged.context(CAPACITY, paged.encode(UNITS)), PROMPT))
        assert (result.attention[0] is not None) == attribution
        results.append(result.logits)
    assert torch.equal(*results)
