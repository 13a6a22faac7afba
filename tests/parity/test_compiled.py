"""Compiled layers compute what the others do."""

from __future__ import annotations

import logging

import pytest
import torch
from parity.families import build
from parity.paged import PagedModel
from tolerances import LOGPROBS

from ewe.engine.models.compiled import compile_layers, undo_compile

UNITS = [[5, 6, 7, 8], [9, 10, 11, 12, 13]]


def compiled_layers(model):
    return [module for module in model.modules() if module._compiled_call_impl is not None]


def logits(model):
    """Of a prompt, a few tokens and a batch of two, under units."""
    paged = PagedModel(model)
    units = paged.encode(UNITS)
    one, other = paged.context(16, units, [1.0, 0.5]), paged.context(16, units, [1.0, 2.0])
    found = [paged.logits(one, [3, 4, 5, 6, 7]), paged.logits(one, [10]), paged.logits(other, [5, 6, 7])]
    found.append(paged.run(paged.row(one, [3]), paged.row(other, [4])).logits)
    return torch.cat(found).log_softmax(-1)


def test_every_layer_is_compiled_and_can_be_let_go():
    model = build("llama")
    compile_layers(model)
    assert compiled_layers(model) == list(model.model.layers)
    undo_compile(model)
    assert not compiled_layers(model)


def test_a_model_without_named_layers_is_left_as_it_is(caplog):
    model = build("llama")
    model._no_split_modules = None
    with caplog.at_level(logging.WARNING):
        compile_layers(model)
    assert not compiled_layers(model)
    assert "model.compile does nothing" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_the_results_are_the_same(family):
    plain, compiled = build(family), build(family)
    compile_layers(compiled)
    torch.testing.assert_close(logits(compiled), logits(plain), atol=LOGPROBS, rtol=0)
