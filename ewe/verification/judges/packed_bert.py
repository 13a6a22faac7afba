"""A BERT that classifies pairs, for CPUs: without padding, and with no more of the last layer than is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention

Run = tuple[int, int]
"""A length in tokens, and how many texts of that length follow each other."""


class Classified(NamedTuple):
    """What a forward pass yields: float32 [texts, labels]."""

    logits: Tensor


class PackedBert:
    """The logits of a `BertForSequenceClassification`; its texts lie end to end as [tokens, width].

    model: in float32, on the CPU. bfloat16: whether the layers' matrices are kept, and multiplied, in bfloat16; norms
    and residuals stay in float32. Fastest in batches by length: texts of one length attend in one step.
    """

    device = torch.device("cpu")

    def __init__(self, model: Any, bfloat16: bool = False) -> None:
        bert, self._classifier = model.eval().bert, model.classifier
        self._embeddings, self._pooler = bert.embeddings, bert.pooler
        dtype = torch.bfloat16 if bfloat16 else torch.float32
        self._layers = [_Layer(layer, dtype) for layer in bert.encoder.layer]

    def eval(self) -> PackedBert:
        """Itself: there is nothing to train."""
        return self

    def __call__(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Classified:
        """Of texts [texts, longest], padded at their ends."""
        lengths = attention_mask.sum(1).tolist()
        runs = [(length, len(list(run))) for length, run in groupby(lengths)]
        firsts = torch.tensor([0, *lengths[:-1]]).cumsum(0)
        embedded = self._embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
        tokens = embedded[attention_mask.bool()]
        for layer in self._layers[:-1]:
            tokens = layer(tokens, runs)
        read = self._layers[-1](tokens, runs, firsts)
        return Classified(self._classifier(self._pooler(read[:, None])))


class _Layer:
    """A layer of the encoder."""

    def __init__(self, layer: Any, dtype: torch.dtype) -> None:
        attention, mixed = layer.attention.self, layer.attention.output
        parts = (attention.query, attention.key, attention.value)
        self._dtype, self._heads = dtype, attention.num_attention_heads
        self._qkv = tuple(torch.cat([getattr(one, name) for one in parts]).to(dtype) for name in ("weight", "bias"))
        self._mix, self._up, self._down = (
            (one.weight.to(dtype), one.bias.to(dtype))
            for one in (mixed.dense, layer.intermediate.dense, layer.output.dense)
        )
        self._activate = layer.intermediate.intermediate_act_fn
        self._norms = (mixed.LayerNorm, layer.output.LayerNorm)

    def __call__(self, tokens: Tensor, runs: Sequence[Run], rows: Tensor | None = None) -> Tensor:
        """float32 [tokens, width] after the layer; rows: which of them are needed (None: all)."""
        mixed = self._attended(linear(tokens.to(self._dtype), *self._qkv), runs)
        if rows is not None:
            tokens, mixed = tokens[rows], mixed[rows]
        tokens = self._norms[0](tokens + linear(mixed, *self._mix))
        inner = self._activate(linear(tokens.to(self._dtype), *self._up))
        layer: Tensor = self._norms[1](tokens + linear(inner, *self._down))
        return layer

    def _attended(self, qkv: Tensor, runs: Sequence[Run]) -> Tensor:
        """[tokens, width] from queries, keys and values [tokens, 3 * width]: each text sees itself alone."""
        parts = []
        for length, texts in runs:
            part, qkv = qkv[: length * texts], qkv[length * texts :]
            heads = part.view(texts, length, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
            parts.append(scaled_dot_product_attention(*heads).transpose(1, 2).reshape(length * texts, -1))
        return torch.cat(parts)
