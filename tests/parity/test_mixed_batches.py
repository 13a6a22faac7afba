"""Units, prefill chunks and decodes of many sequences in one pass give what each gives alone."""

from __future__ import annotations

import pytest
import torch
from parity.families import FAMILIES, VOCAB, build
from parity.paged import PagedModel
from tolerances import LOGPROBS

CAPACITY = 16
GENERATOR = torch.Generator().manual_seed(3)


def random_tokens(length: int) -> list[int]:
    return torch.randint(3, VOCAB, (length,), generator=GENERATOR).tolist()


UNITS = [random_tokens(length) for length in (5, 16, 11)]
# Per sequence: which units it sees, their weights, the tokens already cached, the tokens that run in the mixed pass.
SEQUENCES = [
    ((0, 1), (1.0, 0.5), random_tokens(21), random_tokens(1)),
    ((), (), random_tokens(3), random_tokens(1)),
    ((2,), (1.0,), random_tokens(9), random_tokens(14)),
    ((0, 1, 2), (0.3, 2.0, 1.0), random_tokens(33), random_tokens(1)),
    ((), (), [], random_tokens(18)),
    ((1,), (1.0,), [], random_tokens(1)),
]
NEW_UNIT = random_tokens(13)


def contexts(paged):
    """The sequences with their cached tokens in place."""
    tables = paged.encode(UNITS)
    made = []
    for units, weights, cached, _ in SEQUENCES:
        context = paged.context(CAPACITY if units else 0, [tables[number] for number in units], weights)
        if cached:
            paged.logits(context, cached)
        made.append(context)
    return made


@pytest.mark.parametrize("family", FAMILIES)
def test_mixed_equals_one_by_one(family):
    model = build(family)
    alone, mixed = PagedModel(model), PagedModel(model)
    expected = [alone.logits(context, item[3]) for context, item in zip(contexts(alone), SEQUENCES, strict=True)]
    held = contexts(mixed)
    unit = mixed.context()
    rows = [mixed.row(context, item[3], all_logits=True) for context, item in zip(held, SEQUENCES, strict=True)]
    rows.insert(2, mixed.row(unit, NEW_UNIT, wants_logits=False))
    found = mixed.run(*rows).logits
    torch.testing.assert_close(found.log_softmax(-1), torch.cat(expected).log_softmax(-1), atol=LOGPROBS, rtol=0)
    fresh = alone.context()
    alone.logits(fresh, NEW_UNIT)
    for layer in range(len(alone.pool.keys)):
        for one, other in ((alone.pool.keys, mixed.pool.keys), (alone.pool.values, mixed.pool.values)):
            wanted, got = one[layer][fresh.table.slots().copy()], other[layer][unit.table.slots().copy()]
            torch.testing.assert_close(got, wanted, atol=LOGPROBS, rtol=LOGPROBS)


def test_logits_come_in_the_order_of_the_rows():
    paged = PagedModel(build("llama"))
    one, two, three = (paged.context() for _ in range(3))
    rows = [
        paged.row(one, [5, 6, 7]),
        paged.row(two, [8]),
        paged.row(three, [9, 10], wants_logits=False),
    ]
    again = PagedModel(build("llama"))
    expected = torch.stack([again.logits(again.context(), row.token_ids)[-1] for row in rows[:2]])
    torch.testing.assert_close(paged.run(*rows).logits, expected, atol=LOGPROBS, rtol=0)


def test_the_null_block_stays_zero():
    paged = PagedModel(build("gemma2"))
    held = contexts(paged)
    paged.run(*[paged.row(context, item[3]) for context, item in zip(held, SEQUENCES, strict=True)])
    assert all(not tensor[:4].any() for tensor in (*paged.pool.keys, *paged.pool.values))
