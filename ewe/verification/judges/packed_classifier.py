"""A `BertForSequenceClassification` for CPUs, without padding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from ewe.text.packed_bert import BertShape, PackedBert, check_shapes

_PREFIX = "bert."


class Classified(NamedTuple):
    """What a forward pass yields: float32 [texts, labels]."""

    logits: Tensor


class PackedClassifier:
    """The logits of a `BertForSequenceClassification` with these weights; bfloat16: as `PackedBert` takes it.

    Raises ValueError for weights that do not fit the shape.
    """

    device = torch.device("cpu")

    def __init__(self, weights: Mapping[str, Tensor], shape: BertShape, labels: int, bfloat16: bool = False) -> None:
        rows = {f"{_PREFIX}pooler.dense": shape.width, "classifier": labels}
        check_shapes(weights, {f"{name}.weight": (count, shape.width) for name, count in rows.items()})
        check_shapes(weights, {f"{name}.bias": (count,) for name, count in rows.items()})
        self._bert = PackedBert(weights, shape, bfloat16, _PREFIX)
        self._pooler, self._classifier = ((weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in rows)

    def eval(self) -> PackedClassifier:
        """Itself: there is nothing to train."""
        return self

    def __call__(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Classified:
        """Of texts [texts, longest], padded at their ends."""
        firsts = self._bert(input_ids, attention_mask, token_type_ids, firsts=True)
        return Classified(linear(torch.tanh(linear(firsts, *self._pooler)), *self._classifier))
