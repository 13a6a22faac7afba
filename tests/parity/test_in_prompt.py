"""Units after a prefix against the same thing spelled out in float64."""

from __future__ import annotations

import pytest
import torch
from parity.families import FAMILIES, VOCAB, WINDOW, build
from parity.in_prompt import Oracle
from parity.paged import PagedModel
from tolerances import LOGPROBS, SHARES

CAPACITY = 24
GENERATOR = torch.Generator().manual_seed(4)


def random_tokens(length: int) -> list[int]:
    return torch.randint(3, VOCAB, (length,), generator=GENERATOR).tolist()


PREFIX, PROMPT = random_tokens(15), random_tokens(28)
UNITS = [random_tokens(length) for length in (17, 24, 1, 9)]
assert len(PREFIX) > WINDOW
WEIGHTS = [0.25, 1.0, 3.5, 0.6]
CASES = {"paper": ("paper", [1.0] * 4), "weighted": ("paper", WEIGHTS), "plain": ("plain", WEIGHTS)}


def encoded(paged, weights):
    """A context that sees the prefix and the units, whose own first token has yet to come."""
    [prefix] = paged.encode([PREFIX])
    return paged.context(len(PREFIX) + CAPACITY, paged.encode(UNITS, prefix), weights, prefix)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def oracle(family):
    return Oracle(family)


@pytest.mark.parametrize("case", CASES)
def test_prefill_and_decode(family, oracle, case):
    merge, weights = CASES[case]
    paged = PagedModel(build(family), merge)
    context = encoded(paged, weights)
    tokens = list(PROMPT)
    found = [paged.logits(context, tokens[:20]), paged.logits(context, tokens[20:])]
    for _ in range(6):
        tokens.append(int(found[-1][-1].argmax()))
        found.append(paged.logits(context, tokens[-1:]))
    expected = oracle.logprobs(PREFIX, UNITS, tokens, CAPACITY, weights, merge)
    torch.testing.assert_close(torch.cat(found).log_softmax(-1).double(), expected, atol=LOGPROBS, rtol=0)
    assert tokens[len(PROMPT) :] == expected.argmax(-1)[len(PROMPT) - 1 : -1].tolist()


def test_prefix_units_and_prompt_in_one_pass(family, oracle):
    paged = PagedModel(build(family), "paper")
    start = paged.context()
    first, second = PREFIX[:9], PREFIX[9:]
    rows = [paged.row(start, first, wants_logits=False), paged.row(start, second, wants_logits=False)]
    units = [paged.context(len(PREFIX), prefix=start.table) for _ in UNITS]
    rows += [paged.row(unit, tokens, wants_logits=False) for unit, tokens in zip(units, UNITS, strict=True)]
    context = paged.context(len(PREFIX) + CAPACITY, [unit.table for unit in units], WEIGHTS, start.table)
    found = paged.run(*rows, paged.row(context, PROMPT, all_logits=True)).logits.log_softmax(-1)
    expected = oracle.logprobs(PREFIX, UNITS, PROMPT, CAPACITY, WEIGHTS, "paper")
    torch.testing.assert_close(found.double(), expected, atol=LOGPROBS, rtol=0)


@pytest.mark.parametrize("merge", ["paper", "plain"])
def test_the_prefix_counts_as_context_in_attribution(family, oracle, merge):
    inputs = oracle.inputs(PREFIX, UNITS, PROMPT, CAPACITY, WEIGHTS, merge)
    output = oracle.model(**inputs, output_attentions=True)
    probabilities = torch.cat(output.attentions)[:, :, -len(PROMPT) :]
    prefix, *units, own = probabilities.split([len(PREFIX), *map(len, UNITS), len(PROMPT)], dim=-1)
    parts = [*(part.sum(-1) for part in units), prefix.sum(-1) + own.sum(-1)]
    expected = torch.stack([part.mean((0, 1)) for part in parts], dim=-1)  # [queries, units + 1]

    paged = PagedModel(build(family), merge, attribution=True)
    context = encoded(paged, WEIGHTS)
    [prefill] = paged.run(paged.row(context, PROMPT[:-1])).attention
    bare = paged.row(paged.context(CAPACITY, paged.encode(UNITS[:2])), [4, 5])
    decode, other = paged.run(paged.row(context, PROMPT[-1:]), bare).attention
    torch.testing.assert_close(torch.from_numpy(prefill).double(), expected[:-1].mean(0), atol=SHARES, rtol=0)
    torch.testing.assert_close(torch.from_numpy(decode).double(), expected[-1], atol=SHARES, rtol=0)
    assert other.shape == (3,)
    assert other.sum() == pytest.approx(1.0, abs=SHARES)


def test_auto_is_plain_in_a_prompt_and_the_papers_elsewhere():
    model = build("llama")
    results = {}
    for merge in ("auto", "paper", "plain"):
        paged = PagedModel(model, merge)
        bare = paged.logits(paged.context(CAPACITY, paged.encode(UNITS), WEIGHTS), PROMPT)
        results[merge] = paged.logits(encoded(paged, WEIGHTS), PROMPT), bare
    assert torch.equal(results["auto"][0], results["plain"][0])
    assert torch.equal(results["auto"][1], results["paper"][1])
    assert not torch.allclose(results["plain"][1], results["paper"][1], atol=100 * LOGPROBS)


def test_the_reference_feels_prefix_weights_and_merge():
    """A reference that ignored what is tested would prove nothing."""
    oracle = Oracle("llama")
    ways = [(PREFIX, *case) for case in CASES.values()] + [(PREFIX[1:], "paper", WEIGHTS), ([], "paper", WEIGHTS)]
    results = [oracle.logprobs(prefix, UNITS, PROMPT, CAPACITY, weights, merge)[-1] for prefix, merge, weights in ways]
    for i, one in enumerate(results):
        for other in results[:i]:
            assert (one - other).abs().max() > 100 * LOGPROBS
