"""A BERT for CPUs without padding, and without transformers, whose import takes longer than reading a few texts.

It multiplies as the one of transformers does, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import embedding, gelu, layer_norm, linear, scaled_dot_product_attention

Run = tuple[int, int]
"""A length in tokens, and how many texts of that length follow each other."""
Product = Callable[[Tensor], Tensor]
"""What makes rows [rows, out] of rows [rows, in]."""
_ROWS = 2048  # for which oneDNN chooses the order; as fast for fewer
_LAYER = "encoder.layer"
_NORM = "LayerNorm"


@dataclass(frozen=True, slots=True)
class BertShape:
    """What a BERT's configuration says of its matrices."""

    vocabulary: int
    positions: int
    types: int
    width: int
    inner: int
    layers: int
    heads: int
    epsilon: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """That of a `config.json`; raises ValueError for another kind of model, KeyError for a missing number."""
        if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
            raise ValueError("not the configuration of a BERT with GELU")
        names = "vocab_size max_position_embeddings type_vocab_size hidden_size intermediate_size num_hidden_layers"
        vocabulary, positions, types, width, inner, layers = (int(config[name]) for name in names.split())
        heads, epsilon = int(config["num_attention_heads"]), float(config["layer_norm_eps"])
        return cls(vocabulary, positions, types, width, inner, layers, heads, epsilon)

    def check(self, weights: Mapping[str, Tensor], prefix: str = "") -> None:
        """Raises ValueError naming a weight that is missing or of another shape; prefix: what the names begin with."""
        check_shapes(weights, {f"{prefix}{name}": shape for name, shape in self._shapes().items()})

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        rows = {"word": self.vocabulary, "position": self.positions, "token_type": self.types}
        shapes: dict[str, tuple[int, ...]] = {
            f"embeddings.{name}_embeddings.weight": (count, self.width) for name, count in rows.items()
        }
        norms, square = [f"embeddings.{_NORM}"], (self.width, self.width)
        products: dict[str, tuple[int, int]] = {}
        for number in range(self.layers):
            layer = f"{_LAYER}.{number}"
            products |= {f"{layer}.attention.self.{name}": square for name in ("query", "key", "value")}
            products[f"{layer}.attention.output.dense"] = square
            products[f"{layer}.intermediate.dense"] = (self.inner, self.width)
            products[f"{layer}.output.dense"] = (self.width, self.inner)
            norms += [f"{layer}.attention.output.{_NORM}", f"{layer}.output.{_NORM}"]
        shapes |= {f"{name}.weight": shape for name, shape in products.items()}
        shapes |= {f"{name}.bias": shape[:1] for name, shape in products.items()}
        return shapes | {f"{norm}.{part}": (self.width,) for norm in norms for part in ("weight", "bias")}


def check_shapes(weights: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises ValueError naming a weight that is missing or of another shape."""
    for name, shape in shapes.items():
        if name not in weights or weights[name].shape != shape:
            raise ValueError(f"the weight {name} must be there, of shape {list(shape)}")


class PackedBert:
    """The last states of a BERT; its texts lie end to end as [tokens, width].

    weights: in float32, by their names in transformers' `BertModel` behind the prefix. bfloat16: whether the layers'
    matrices are kept, and multiplied, in bfloat16; norms and residuals stay in float32. Fastest in batches by length:
    texts of one length attend in one step. Raises ValueError for weights that do not fit the shape.
    """

    def __init__(
        self, weights: Mapping[str, Tensor], shape: BertShape, bfloat16: bool = False, prefix: str = ""
    ) -> None:
        shape.check(weights, prefix)
        dtype = torch.bfloat16 if bfloat16 else torch.float32
        rows = (weights[f"{prefix}embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type"))
        self._words, self._positions, self._types = rows
        self._norm = _norm(weights, f"{prefix}embeddings.{_NORM}", shape)
        self._layers = [_Layer(weights, f"{prefix}{_LAYER}.{number}", shape, dtype) for number in range(shape.layers)]

    def __call__(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None, firsts: bool = False
    ) -> Tensor:
        """float32 [tokens, width] of texts [texts, longest], padded at their ends.

        firsts: only each text's first token [texts, width], which spares most of the last layer.
        """
        lengths = attention_mask.sum(1).tolist()
        runs = [(length, len(list(run))) for length, run in groupby(lengths)]
        tokens = self._embedded(input_ids, token_type_ids)[attention_mask.bool()]
        for layer in self._layers[:-1]:
            tokens = layer(tokens, runs)
        rows = torch.tensor([0, *lengths[:-1]]).cumsum(0) if firsts else None
        return self._layers[-1](tokens, runs, rows)

    def _embedded(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        """float32 [texts, longest, width]."""
        types = self._types[0] if token_type_ids is None else embedding(token_type_ids, self._types)
        return self._norm(embedding(input_ids, self._words) + types + self._positions[: input_ids.shape[1]])


class _Layer:
    """A layer of the encoder; name: what its weights' names begin with."""

    def __init__(self, weights: Mapping[str, Tensor], name: str, shape: BertShape, dtype: torch.dtype) -> None:
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        self._dtype, self._heads = dtype, shape.heads
        weight, bias = (torch.cat([weights[f"{part}.{kind}"] for part in parts]) for kind in ("weight", "bias"))
        self._qkv = _product(weight, bias, dtype)
        self._mix, self._up, self._down = (
            _product(weights[f"{name}.{dense}.weight"], weights[f"{name}.{dense}.bias"], dtype)
            for dense in ("attention.output.dense", "intermediate.dense", "output.dense")
        )
        self._norms = [_norm(weights, f"{name}.{norm}.{_NORM}", shape) for norm in ("attention.output", "output")]

    def __call__(self, tokens: Tensor, runs: Sequence[Run], rows: Tensor | None = None) -> Tensor:
        """float32 [tokens, width] after the layer; rows: which of them are needed (None: all)."""
        mixed = self._attended(self._qkv(tokens.to(self._dtype)), runs)
        if rows is not None:
            tokens, mixed = tokens[rows], mixed[rows]
        tokens = self._norms[0](tokens + self._mix(mixed))
        inner = gelu(self._up(tokens.to(self._dtype)))
        return self._norms[1](tokens + self._down(inner))

    def _attended(self, qkv: Tensor, runs: Sequence[Run]) -> Tensor:
        """[tokens, width] from queries, keys and values [tokens, 3 * width]: each text sees itself alone."""
        parts = []
        for length, texts in runs:
            part, qkv = qkv[: length * texts], qkv[length * texts :]
            heads = part.view(texts, length, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
            parts.append(scaled_dot_product_attention(*heads).transpose(1, 2).reshape(length * texts, -1))
        return torch.cat(parts)


def _norm(weights: Mapping[str, Tensor], name: str, shape: BertShape) -> Product:
    scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return partial(layer_norm, normalized_shape=(shape.width,), weight=scale, bias=shift, eps=shape.epsilon)


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
