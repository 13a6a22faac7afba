"""What is kept of every token beside its keys and values, against what transformers tells of its own pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from parity.families import FAMILIES, VOCAB, build
from parity.paged import Context, PagedModel
from tolerances import LOGPROBS, SHARES
from torch.utils._python_dispatch import TorchDispatchMode

from ewe.engine.attention.probe import attention_layers
from ewe.engine.kvcache.fp8 import FP8
from ewe.engine.model_executor.text_attention import text_attention

PROMPT, TEXT = 9, 14


def tokens(count: int) -> list[int]:
    return torch.randint(3, VOCAB, (count,)).tolist()


def write(paged: PagedModel, ids: list[int]) -> Context:
    """A prompt in two passes and a text token by token, beside a stranger in every pass."""
    context, other = paged.context(), paged.context()
    steps = [ids[:4], ids[4:PROMPT], *([token] for token in ids[PROMPT:])]
    for step in steps:
        paged.run(paged.row(other, tokens(2)), paged.row(context, step))
    return context


def told(family: str, ids: list[int]) -> Any:
    return build(family, attention="eager")(torch.tensor([ids]), output_hidden_states=True, output_attentions=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_states_are_those_that_the_last_layer_is_given(family: str) -> None:
    paged, ids = PagedModel(build(family), keeps="hidden"), tokens(PROMPT + TEXT)
    context = write(paged, ids)
    assert paged.pool.states is not None
    found = paged.pool.states[torch.tensor(context.table.slots())]
    torch.testing.assert_close(found, told(family, ids).hidden_states[-2][0], atol=LOGPROBS, rtol=LOGPROBS)


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_is_that_of_the_last_layer(family: str) -> None:
    model, ids = build(family), tokens(PROMPT + TEXT)
    paged = PagedModel(model, keeps="queries")
    found = text_attention(paged.pool, attention_layers(model)[-1], write(paged, ids).table.slots(), PROMPT)
    expected = told(family, ids).attentions[-1][0]
    torch.testing.assert_close(torch.tensor(found.weights), expected[:, PROMPT - 1 :].mean(0), atol=SHARES, rtol=0)
    received = expected[:, PROMPT:, PROMPT:].amax(1).mean(0)
    torch.testing.assert_close(torch.tensor(found.received), received, atol=SHARES, rtol=0)


def test_a_text_without_tokens_has_the_attention_of_its_prompt() -> None:
    model, ids = build("llama"), tokens(PROMPT)
    paged = PagedModel(model, keeps="queries")
    found = text_attention(paged.pool, attention_layers(model)[-1], write(paged, ids).table.slots(), PROMPT)
    assert found.weights.shape == (1, PROMPT)
    assert found.received.shape == (0,)


def test_keys_in_8_bits_will_do() -> None:
    model, ids = build("llama"), tokens(PROMPT + TEXT)
    paged = PagedModel(model, cache_dtype=FP8, keeps="queries")
    found = text_attention(paged.pool, attention_layers(model)[-1], write(paged, ids).table.slots(), PROMPT)
    expected = told("llama", ids).attentions[-1][0]
    assert (torch.tensor(found.weights) - expected[:, PROMPT - 1 :].mean(0)).abs().max() < 0.1


class Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_who_asks_for_nothing_pays_nothing() -> None:
    model = build("llama")
    names = {}
    # A model that two engines share: the one that asks comes first and leaves its hook.
    for keeps in ("hidden", "queries", None):
        paged = PagedModel(model, keeps=keeps)
        context = paged.context()
        paged.logits(context, [5, 6, 7])
        with torch.inference_mode(), Counter() as counter:
            paged.runner._forward([paged.row(context, [8])], None)
        names[keeps] = counter.names
    writes = {keeps: found.count("aten.index_copy_.default") for keeps, found in names.items()}
    layers = len(attention_layers(model))
    assert writes == {None: 2 * layers, "hidden": 2 * layers + 1, "queries": 2 * layers + 1}
    assert len(names[None]) < min(len(names["hidden"]), len(names["queries"]))


def test_a_closed_engine_leaves_no_hook_behind() -> None:
    model = build("llama")
    paged = PagedModel(model, keeps="hidden")
    paged.runner.close()
    assert not any(module._forward_pre_hooks for module in model.modules())
