"""Units against transformers' eager attention with the same thing spelled out as one additive mask."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from parity.families import FAMILIES, VOCAB, WINDOW, build
from parity.paged import PagedModel
from tolerances import LOGPROBS

CAPACITY = 24
GENERATOR = torch.Generator().manual_seed(2)
UNITS = [torch.randint(3, VOCAB, (length,), generator=GENERATOR).tolist() for length in (17, 24, 1, 9)]
PROMPT = torch.randint(3, VOCAB, (28,), generator=GENERATOR).tolist()
CASES = {
    "paper": ("paper", [1.0] * 4),
    "weighted": ("paper", [0.25, 1.0, 3.5, 0.6]),
    "plain": ("plain", [1.0] * 4),
}


def additive_mask(lengths: Sequence[int], context: int, weights: Sequence[float], merge: str, window: int | None):
    """[1, 1, T, T] over [units; context], written from the equations, token by token."""
    total = sum(lengths) + context
    mask = torch.full((total, total), -torch.inf)
    begin = 0
    for length, weight in zip(lengths, weights, strict=True):
        for i in range(length):
            for j in range(i + 1):
                if window is None or i - j < window:
                    mask[begin + i, begin + j] = 0.0
        mask[sum(lengths) :, begin : begin + length] = math.log(weight) if merge == "paper" else 0.0
        begin += length
    bias = math.log(1 + sum(weights)) if merge == "paper" else 0.0
    for i in range(context):
        for j in range(i + 1):
            if window is None or i - j < window:
                mask[begin + i, begin + j] = bias
    return mask[None, None]


def eager_inputs(model, units, tokens, weights, merge):
    """The forward's arguments for [units; context] as one sequence."""
    lengths = [len(unit) for unit in units]
    full = additive_mask(lengths, len(tokens), weights, merge, None)
    sliding = additive_mask(lengths, len(tokens), weights, merge, WINDOW)
    text = model.config.get_text_config()
    kinds = set(getattr(text, "layer_types", None) or ())
    if kinds:
        # Models whose layers differ take one mask per kind of layer.
        mask = {"full_attention": full, "sliding_attention": sliding} if "sliding_attention" in kinds else full
    else:
        mask = full if getattr(text, "sliding_window", None) is None else sliding
    positions = [number for length in lengths for number in range(length)]
    positions += range(CAPACITY, CAPACITY + len(tokens))
    return {
        "input_ids": torch.tensor([[token for part in [*units, tokens] for token in part]]),
        "position_ids": torch.tensor([positions]),
        "attention_mask": mask,
        "use_cache": False,
    }


def eager_logits(model, units, tokens, weights, merge):
    """[tokens, vocab] of the context after the units."""
    return model(**eager_inputs(model, units, tokens, weights, merge)).logits[0, -len(tokens) :]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("family", FAMILIES)
def test_prefill_and_decode_under_units(family, case):
    merge, weights = CASES[case]
    eager, paged = build(family, attention="eager"), PagedModel(build(family), merge)
    context = paged.context(CAPACITY, paged.encode(UNITS), weights)
    tokens = list(PROMPT)
    found = [paged.logits(context, tokens[:20]), paged.logits(context, tokens[20:])]
    for _ in range(6):
        tokens.append(int(found[-1][-1].argmax()))
        found.append(paged.logits(context, tokens[-1:]))
    expected = eager_logits(eager, UNITS, tokens, weights, merge)
    torch.testing.assert_close(torch.cat(found).log_softmax(-1), expected.log_softmax(-1), atol=LOGPROBS, rtol=0)
    assert tokens[len(PROMPT) :] == expected.argmax(-1)[len(PROMPT) - 1 : -1].tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_units_in_the_pass_of_the_prompt_that_sees_them(family):
    eager, paged = build(family, attention="eager"), PagedModel(build(family))
    units = [paged.context() for _ in UNITS]
    rows = [paged.row(unit, tokens, wants_logits=False) for unit, tokens in zip(units, UNITS, strict=True)]
    context = paged.context(CAPACITY, [unit.table for unit in units], CASES["weighted"][1])
    found = paged.run(*rows, paged.row(context, PROMPT, all_logits=True)).logits
    expected = eager_logits(eager, UNITS, PROMPT, context.weights, "paper")
    torch.testing.assert_close(found.log_softmax(-1), expected.log_softmax(-1), atol=LOGPROBS, rtol=0)


def test_the_reference_feels_units_weights_and_merge():
    """A reference that ignored what is tested would prove nothing."""
    eager = build("llama", attention="eager")
    results = [eager_logits(eager, UNITS, PROMPT, weights, merge)[-1] for merge, weights in CASES.values()]
    results.append(eager_logits(eager, [], PROMPT, [], "paper")[-1])
    for i, one in enumerate(results):
        for other in results[:i]:
            assert (one - other).abs().max() > 100 * LOGPROBS
