"""What a decoder layer is made of, as far as fused kernels can compute it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from ewe_kernels.gated import Activation
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, silu

# Share of the largest number by which rounding to 16 bits may move any of them.
_TOLERANCE = 0.02
_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "silu": silu,
    "gelu_tanh": partial(gelu, approximate="tanh"),
}


@dataclass(frozen=True, slots=True)
class Norm:
    """An RMS norm: scale [n], what the normed states are multiplied by."""

    scale: Tensor
    eps: float


class Products:
    """Linear layers over the same input, one product where their weights allow it; [T, in] to one [T, size] each.

    Weights that are merged become views of one matrix, so they keep their names and take no memory twice. sizes: of the
    results; of one layer that holds them all, the parts of its result.
    """

    def __init__(self, layers: Sequence[nn.Module], sizes: Sequence[int]) -> None:
        self._layers, self._sizes = layers, list(sizes)
        self._whole: Callable[[Tensor], Tensor] | None = layers[0] if len(layers) == 1 else _merged(layers)

    def __call__(self, x: Tensor) -> Sequence[Tensor]:
        """The results, which may be views of one tensor."""
        if self._whole is None:
            return [layer(x) for layer in self._layers]
        return torch.split(self._whole(x), self._sizes, -1)


def _merged(layers: Sequence[nn.Module]) -> Callable[[Tensor], Tensor] | None:
    """The product with all weights below each other; None if these layers cannot be put together."""
    plain = [layer for layer in layers if type(layer) is nn.Linear]
    if len(plain) < len(layers) or len({(layer.weight.dtype, layer.bias is None) for layer in plain}) > 1:
        return None
    bias = None if plain[0].bias is None else _join(plain, "bias")
    return partial(linear, weight=_join(plain, "weight"), bias=bias)


def _join(layers: Sequence[nn.Linear], name: str) -> Tensor:
    """One tensor of all layers' weights or biases, which become views of it."""
    whole = torch.cat([getattr(layer, name).detach() for layer in layers])
    for layer, part in zip(layers, torch.split(whole, [layer.out_features for layer in layers]), strict=True):
        setattr(layer, name, nn.Parameter(part, requires_grad=False))
    return whole


class AddedProduct:
    """Adds layer(x) to total [T, out] in place, in the product itself where the layer allows it."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self._transposed = layer.weight.t() if type(layer) is nn.Linear and layer.bias is None else None

    def __call__(self, total: Tensor, x: Tensor) -> None:
        """x: [T, in]."""
        if self._transposed is None:
            total.add_(self._layer(x))
        else:
            total.addmm_(x, self._transposed)


def norm_of(module: Any) -> Norm | None:
    """The module as an RMS norm over its last dimension, its weight counted from 0 or from 1; None if it is none."""
    eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    weight = getattr(module, "weight", None)
    if not isinstance(eps, float) or weight is None or weight.dim() != 1 or getattr(module, "bias", None) is not None:
        return None
    x = torch.linspace(-1, 2, len(weight), device=weight.device, dtype=torch.float32)[None]
    normed = x * (x.square().mean() + eps).rsqrt()
    actual = module(x.to(weight.dtype)).float()
    for scale in (weight, 1.0 + weight.float()):
        expected = normed * scale.float()
        if bool((actual - expected).abs().amax() <= _TOLERANCE * expected.abs().amax()):
            return Norm(scale.detach(), eps)
    return None


def activation_of(function: Callable[[Tensor], Tensor], device: torch.device) -> Activation | None:
    """The activation's name; None if no kernel has it."""
    x = torch.linspace(-6, 6, 49, device=device)
    actual = function(x)
    return next((name for name, same in _ACTIVATIONS.items() if torch.allclose(actual, same(x), 0, 1e-6)), None)


@dataclass(frozen=True, slots=True)
class Parts:
    """A layer's modules. before and after: the norms around attention and feed-forward layer; after may be missing."""

    attention: Any
    qkv: list[nn.Module]
    gate_up: list[nn.Module]
    down: Any
    before: tuple[Norm, Norm]
    after: tuple[Norm, Norm] | None
    heads: tuple[Norm, Norm] | None
    activation: Activation


def parts_of(layer: Any) -> Parts | None:
    """What the layer is made of; None if something is missing or of another kind."""
    attention, mlp = layer.self_attn, layer.mlp
    qkv = _children(attention, ("q_proj", "k_proj", "v_proj")) or _children(attention, ("qkv_proj",))
    gate_up = _children(mlp, ("gate_proj", "up_proj")) or _children(mlp, ("gate_up_proj",))
    function = getattr(mlp, "act_fn", getattr(mlp, "activation_fn", None))
    if not qkv or not gate_up or function is None or not _children(attention, ("o_proj",)):
        return None
    activation = activation_of(function, qkv[0].weight.device)  # type: ignore[arg-type]
    first, second = (_norms(layer, names) for names in _NORMS)
    before = (first[0], second[0]) if second and first else first
    after = (first[1], second[1]) if second and first else None
    heads = _norms(attention, ("q_norm", "k_norm"))
    has_heads = hasattr(attention, "q_norm") or hasattr(attention, "k_norm")
    if before is None or activation is None or not hasattr(mlp, "down_proj") or (has_heads and heads is None):
        return None
    if len({norm.eps for norm in (*before, *(after or ()))}) > 1 or len({norm.eps for norm in heads or ()}) > 1:
        return None
    return Parts(attention, qkv, gate_up, mlp.down_proj, before, after, heads, activation)


# Before attention and, in a layer with two norms, before the feed-forward layer; with four, after attention. Then the
# two that only a layer with four has.
_NORMS = (
    ("input_layernorm", "post_attention_layernorm"),
    ("pre_feedforward_layernorm", "post_feedforward_layernorm"),
)


def _children(module: Any, names: Sequence[str]) -> list[nn.Module]:
    """The children of these names; none of them if one is missing."""
    children = [getattr(module, name, None) for name in names]
    return [item for item in children if isinstance(item, nn.Module)] if None not in children else []


def _norms(module: Any, names: tuple[str, str]) -> tuple[Norm, Norm] | None:
    norms = [norm_of(child) for child in _children(module, names)]
    return (norms[0], norms[1]) if len(norms) == 2 and norms[0] and norms[1] else None
