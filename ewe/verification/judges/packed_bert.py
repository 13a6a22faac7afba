"""A BERT that classifies pairs, for CPUs: without padding, and with no more of the last layer than is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention

Run = tuple[int, int]
"""A length in tokens, and how many texts of that length follow each other."""
Product = Callable[[Tensor], Tensor]
"""What multiplies rows [rows, in] with a weight: [rows, out]."""
_ROWS = 2048  # for which oneDNN chooses the order; as fast for fewer


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
        weight, bias = (torch.cat([getattr(one, name) for one in parts]) for name in ("weight", "bias"))
        self._qkv = _product(weight, bias, dtype)
        self._mix, self._up, self._down = (
            _product(one.weight, one.bias, dtype) for one in (mixed.dense, layer.intermediate.dense, layer.output.dense)
        )
        self._activate = layer.intermediate.intermediate_act_fn
        self._norms = (mixed.LayerNorm, layer.output.LayerNorm)

    def __call__(self, tokens: Tensor, runs: Sequence[Run], rows: Tensor | None = None) -> Tensor:
        """float32 [tokens, width] after the layer; rows: which of them are needed (None: all)."""
        mixed = self._attended(self._qkv(tokens.to(self._dtype)), runs)
        if rows is not None:
            tokens, mixed = tokens[rows], mixed[rows]
        tokens = self._norms[0](tokens + self._mix(mixed))
        inner = self._activate(self._up(tokens.to(self._dtype)))
        layer: Tensor = self._norms[1](tokens + self._down(inner))
        return layer

    def _attended(self, qkv: Tensor, runs: Sequence[Run]) -> Tensor:
        """[tokens, width] from queries, keys and values [tokens, 3 * width]: each text sees itself alone."""
        parts = []
        for length, texts in runs:
            part, qkv = qkv[: length * texts], qkv[length * texts :]
            heads = part.view(texts, length, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
            parts.append(scaled_dot_product_attention(*heads).transpose(1, 2).reshape(length * texts, -1))
        return torch.cat(parts)


def _product(weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Product:
    """x W^T + b of rows x [rows, in] in `dtype`; weight: [out, in], bias: [out].

    In bfloat16 torch puts the weight into the order in which oneDNN multiplies it at every call, a third of the time
    that a short text takes. Here that is done once; the results were the same to the bit where this was measured.
    """
    weight, bias = weight.detach().to(dtype), bias.detach().to(dtype)
    if dtype == torch.bfloat16:
        try:
            ordered = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)
            product = partial(_by_onednn, ordered, bias)
            product(weight.new_zeros(1, weight.shape[1]))
            return product
        except (RuntimeError, AttributeError, NotImplementedError):  # not part of every build, nor for every processor
            pass
    return partial(linear, weight=weight, bias=bias)


def _by_onednn(weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product
