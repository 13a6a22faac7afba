"""Models over a pool in fp8: against models that round keys and values themselves; going back, forking, swapping."""

from __future__ import annotations

import pytest
import torch
from parity.families import FAMILIES, build
from parity.paged import PagedModel
from parity.test_mixed_batches import NEW_UNIT, SEQUENCES, contexts
from tolerances import LOGPROBS, SHARES

from ewe.engine.attention.torch_backend import TorchBackend
from ewe.engine.kvcache.block_table import BlockTable
from ewe.engine.kvcache.fp8 import FP8, dequantise, quantise

UNIT, PROMPT, ONE, OTHER = [5, 9, 14, 3, 77], list(range(20, 31)), [40, 41, 42, 43, 44, 45], [60, 61]


class Rounding(TorchBackend):
    """Plain torch over a pool in full precision, to which nothing comes that fp8 does not hold."""

    def write(self, call, slots):
        call.key, call.value = (dequantise(*quantise(states), states.dtype) for states in (call.key, call.value))
        super().write(call, slots)


def rounding(model, attribution=False):
    """The oracle. It reads all keys from the pool in the same groups, so that no sum is rounded differently."""
    paged = PagedModel(model, attribution=attribution)
    backend = Rounding(model.device, 1, scaled=True)
    backend._most_slots = paged.runner._backend._most_slots
    paged.runner._backend = backend
    return paged


def mixed(paged):
    """Log-probabilities of units, prompts, chunks and decodes in one pass."""
    held = contexts(paged)
    rows = [paged.row(context, item[3], all_logits=True) for context, item in zip(held, SEQUENCES, strict=True)]
    rows.insert(2, paged.row(paged.context(), NEW_UNIT, wants_logits=False))
    return paged.run(*rows).logits.log_softmax(-1)


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_sees_what_fp8_holds_and_nothing_else(family):
    model = build(family)
    found, expected = mixed(PagedModel(model, cache_dtype=FP8)), mixed(rounding(model))
    torch.testing.assert_close(found, expected, atol=LOGPROBS, rtol=0)
    assert not torch.allclose(found, mixed(PagedModel(model)), atol=10 * LOGPROBS)


def contents(paged, table):
    """What the slots of a table hold, as bytes."""
    return paged.pool.read_slots(table.slots())


def started():
    """A model in fp8 with a sequence that sees a unit and holds a prompt."""
    paged = PagedModel(build("llama"), cache_dtype=FP8)
    [unit] = paged.encode([UNIT])
    context = paged.context(16, [unit])
    paged.logits(context, PROMPT)
    return paged, context


def steps(paged, context, tokens):
    """Logits of single steps."""
    return torch.cat([paged.logits(context, [token]) for token in tokens])


def test_after_a_rewind_everything_is_as_if_nothing_had_been():
    """Bit for bit: no scale of what stays depends on what went."""
    (paged, context), (fresh, straight) = started(), started()
    steps(paged, context, ONE)
    context.table.truncate(len(PROMPT) + 1)
    steps(fresh, straight, ONE[:1])
    assert torch.equal(steps(paged, context, OTHER), steps(fresh, straight, OTHER))
    assert torch.equal(contents(paged, context.table), contents(fresh, straight.table))


def test_a_fork_is_copied_on_write_with_its_scales():
    (paged, context), (fresh, straight) = started(), started()
    assert context.table.length % paged.pool.block_size, "the last block must be partly filled"
    twin = paged.context(16, context.units)
    twin.table = context.table.fork()
    copies = twin.table.extend(1)
    assert copies
    paged.pool.copy_blocks(copies)
    twin.table.truncate(len(PROMPT))
    found = steps(paged, twin, OTHER), steps(paged, context, ONE)
    assert torch.equal(found[1], steps(fresh, straight, ONE))
    assert torch.equal(contents(paged, context.table), contents(fresh, straight.table))
    straight.table.truncate(len(PROMPT))
    assert torch.equal(found[0], steps(fresh, straight, OTHER))
    paged.manager.check_integrity([context.table.blocks, twin.table.blocks, context.units[0].blocks])


def test_a_context_that_was_swapped_out_goes_on_where_it_was():
    (paged, context), (fresh, straight) = started(), started()
    before = contents(paged, context.table)
    host = paged.pool.read_blocks(context.table.blocks)
    paged.pool.copy_blocks([(0, block) for block in context.table.blocks])
    context.table.free()
    paged.encode([UNIT * 3])  # takes the blocks that were free
    context.table = BlockTable(paged.manager)
    context.table.extend(len(PROMPT))
    paged.pool.write_blocks(context.table.blocks, host)
    assert torch.equal(contents(paged, context.table), before)
    assert torch.equal(steps(paged, context, ONE), steps(fresh, straight, ONE))


def test_the_null_block_stays_zero():
    paged = PagedModel(build("gemma2"), cache_dtype=FP8)
    mixed(paged)
    tensors = (*paged.pool.keys, *paged.pool.values, *paged.pool.key_scales, *paged.pool.value_scales)
    assert not any(tensor[: paged.pool.block_size].contiguous().view(torch.uint8).any() for tensor in tensors)


def test_shares_are_those_of_the_oracle():
    model = build("qwen3")
    results = []
    for paged in (PagedModel(model, attribution=True, cache_dtype=FP8), rounding(model, attribution=True)):
        held = contexts(paged)
        results.append(paged.run(*[paged.row(c, item[3]) for c, item in zip(held, SEQUENCES, strict=True)]).attention)
    for found, expected in zip(*results, strict=True):
        assert found == pytest.approx(expected, abs=SHARES)
