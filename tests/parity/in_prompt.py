"""Units inside a prompt as docs/architecture.md has them: one softmax spelled out as a mask over whole models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from parity.families import WINDOW, build
from transformers.models.llama import modeling_llama

NONE = -torch.inf


def biases(weights: Sequence[float], merge: str) -> tuple[list[float], float]:
    """log w_i, and log b of what counts as context."""
    return [math.log(weight) for weight in weights], math.log(1 + sum(weights)) if merge == "paper" else 0.0


def additive_mask(prefix: int, units: Sequence[int], context: int, weights, merge: str, window: int | None):
    """[1, 1, T, T] over [prefix; units; context], token by token; windows hide what is far in a segment of its own."""
    of_units, of_context = biases(weights, merge)
    total = prefix + sum(units) + context
    mask = torch.full((total, total), NONE, dtype=torch.float64)

    def causal(begin: int, length: int, bias: float) -> None:
        for i in range(length):
            for j in range(i + 1):
                if window is None or i - j < window:
                    mask[begin + i, begin + j] = bias

    causal(0, prefix, 0.0)
    own = prefix + sum(units)
    begin = prefix
    for length, bias in zip(units, of_units, strict=True):
        mask[begin : begin + length, :prefix] = 0.0  # while a unit is encoded no bias applies
        causal(begin, length, 0.0)
        mask[own:, begin : begin + length] = bias
        begin += length
    mask[own:, :prefix] = of_context
    causal(own, context, of_context)
    return mask[None, None]


def divided(temperature: float, prefix: int, own: int) -> Any:
    """Llama's attention where the logits of what stands from own on are divided on the units, which begin at prefix."""

    def attend(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **_: Any) -> Any:
        key, value = (modeling_llama.repeat_kv(item, module.num_key_value_groups) for item in (key, value))
        logits = query @ key.transpose(2, 3) * scaling
        logits[..., own:, prefix:own] /= temperature
        weights = (logits + mask).softmax(-1)
        return (weights @ value).transpose(1, 2).contiguous(), weights

    return attend


class Oracle:
    """transformers' model of a family, or one that is given, in float64 under that mask.

    temperature: of units; other than 1 for Llama alone.
    """

    def __init__(self, family: str, model: Any = None, temperature: float = 1.0) -> None:
        self.model: Any = (model or build(family, attention="eager")).double()
        self._temperature = temperature

    def inputs(self, prefix, units, tokens, capacity: int, weights, merge: str) -> dict[str, Any]:
        """The forward's arguments for [prefix; units; tokens] as one sequence."""
        lengths = len(prefix), [len(unit) for unit in units], len(tokens)
        full = additive_mask(*lengths, weights, merge, None)
        sliding = additive_mask(*lengths, weights, merge, WINDOW)
        kinds = set(getattr(self.model.config, "layer_types", None) or ())
        mask: Any = full if getattr(self.model.config, "sliding_window", None) is None else sliding
        if kinds:
            mask = {"full_attention": full, "sliding_attention": sliding} if "sliding_attention" in kinds else full
        start = len(prefix)
        positions = [*range(start), *(start + number for unit in units for number in range(len(unit)))]
        positions += range(start + capacity, start + capacity + len(tokens))
        return {
            "input_ids": torch.tensor([[*prefix, *(token for unit in units for token in unit), *tokens]]),
            "position_ids": torch.tensor([positions]),
            "attention_mask": mask,
            "use_cache": False,
        }

    def logprobs(self, prefix, units, tokens, capacity: int, weights, merge: str) -> torch.Tensor:
        """[tokens, vocab], at each of the tokens that follow the memory."""
        inputs = self.inputs(prefix, units, tokens, capacity, weights, merge)
        with pytest.MonkeyPatch.context() as patch:
            if self._temperature != 1:
                attend = divided(self._temperature, len(prefix), len(prefix) + sum(map(len, units)))
                patch.setattr(modeling_llama, "eager_attention_forward", attend)
            logits = self.model(**inputs).logits[0, -len(tokens) :]
        return logits.log_softmax(-1)
