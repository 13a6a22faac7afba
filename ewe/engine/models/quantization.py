"""Weights of linear layers in 8 bits: int8 or fp8 (e4m3), with one scale per row.

Activations, sums, embeddings, norms and the output layer keep the model's precision.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ewe.engine.kvcache.fp8 import FP8, HALVED, LARGEST, LEAST_CAPABILITY, halves
from ewe.errors import ConfigError

Kind = Literal["int8", "fp8"]
# What a row's largest weight becomes.
_LARGEST = {"int8": 127.0, "fp8": LARGEST}
_DTYPES = {"int8": torch.int8, "fp8": FP8}


class FewRows(NamedTuple):
    """Multiplies up to `most` rows at once: multiply(x [T, in], weight, scale, bias) gives [T, out]."""

    multiply: Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
    most: int


class SmallLinear(nn.Module):
    """A linear layer, y[t] = scale * (weight x[t]) + bias, whose weight takes a byte per number.

    weight: int8 or float8_e4m3fn [out, in]; scale: float32 [out]; bias: [out] or None. Takes and returns the dtype of x
    [..., in]. float32 and bfloat16 hold the weights as they are and products with them; float16 might overflow.
    few_rows: a kernel for decoding; without it, and for more rows, the weight is converted for every product.
    """

    weight: Tensor
    scale: Tensor

    def __init__(
        self, weight: Tensor, scale: Tensor, bias: nn.Parameter | None, few_rows: FewRows | None = None
    ) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        self.bias = bias
        self._few_rows = few_rows

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] to [..., out]."""
        num_rows = x.numel() // x.shape[-1]
        few = self._few_rows
        # What compiles layers fuses the conversion by itself.
        if few is not None and 0 < num_rows <= few.most and not torch.compiler.is_compiling():
            product = few.multiply(x.reshape(num_rows, -1), self.weight, self.scale, self.bias)
            return product.view(*x.shape[:-1], -1)
        weight, scale = self._converted(x.dtype)
        # In place: multiplied in float32, without a float32 copy.
        product = linear(x, weight).mul_(scale)
        return product if self.bias is None else product.add_(self.bias)

    def _converted(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The weight in `dtype`, and the scale that it then has."""
        if self.weight.dtype == FP8 and self.weight.device.type == "cpu":
            # By way of float32, which a CPU converts to bfloat16 three times as fast as float16.
            return halves(self.weight).float().to(dtype), self.scale * HALVED
        return self.weight.to(dtype), self.scale


def round_rows(weight: Tensor, kind: Kind) -> tuple[Tensor, Tensor]:
    """A matrix [out, in] rounded row by row to 8 bits, and the float32 scales [out] that it is multiplied with.

    int8 is symmetric (-127 to 127). Raises ConfigError for weights that are not finite.
    """
    exact = weight.float()
    scale = exact.abs().amax(1) / _LARGEST[kind]
    if not bool(scale.isfinite().all()):
        raise ConfigError("the weights hold numbers that are not finite, which have no place in 8 bits")
    scale = scale.where(scale > 0, 1.0)
    scaled = (exact / scale[:, None]).clamp(-_LARGEST[kind], _LARGEST[kind])
    return (scaled.round() if kind == "int8" else scaled).to(_DTYPES[kind]), scale


def shrink(model: Any, kind: Kind, device: torch.device, few_rows: FewRows | None = None) -> None:
    """Gives the linear layers of a model on any device, its output layer aside, 8-bit weights on `device`.

    Layer by layer, so that `device` never holds more than one of them in full, unless the model lies there already.
    Raises ConfigError for a model whose weights lie mostly elsewhere (fused experts, convolutions).
    """
    output = model.get_output_embeddings()
    names = [name for name, item in model.named_modules() if type(item) is nn.Linear and item is not output]
    shrinking = sum(model.get_submodule(name).weight.numel() for name in names)
    kept_by_design = {
        id(item.weight): item.weight for item in (model.get_input_embeddings(), output) if item is not None
    }
    others = sum(item.numel() for item in model.parameters()) - sum(item.numel() for item in kept_by_design.values())
    if 2 * shrinking <= others:
        raise ConfigError(
            f"model.weights {kind!r} does nothing for {type(model).__name__}: most of its weights are not in linear "
            f"layers; leave model.weights at auto"
        )
    for name in names:
        layer = model.get_submodule(name)
        weight, scale = round_rows(layer.weight.detach().to(device), kind)
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, SmallLinear(weight, scale, layer.bias, few_rows))
    if device.type == "cuda":
        torch.cuda.empty_cache()  # else what rounding took would count as taken when the pool is sized


def refuse_unusable(kind: Kind, model_config: Any, device: torch.device, dtype: torch.dtype, compiled: bool) -> None:
    """Raises ConfigError for 8-bit weights that this checkpoint, precision or device cannot be computed with."""
    if getattr(model_config, "quantization_config", None) is not None:
        raise ConfigError(f"the checkpoint is quantised already: model.weights {kind!r} cannot be; leave it at auto")
    if dtype == torch.float16:
        raise ConfigError(
            f"model.weights {kind!r} needs a wider range than float16 has: set model.dtype to bfloat16 or float32"
        )
    old = device.type == "cuda" and torch.cuda.get_device_capability(device) < LEAST_CAPABILITY
    if kind == "fp8" and compiled and old:
        raise ConfigError(
            f"{torch.cuda.get_device_name(device)} cannot run fp8 weights in compiled layers: set model.weights to "
            f"int8 or model.compile to false"
        )
    try:
        torch.zeros(1, device=device).to(_DTYPES[kind]).to(dtype)
    except (RuntimeError, TypeError) as error:
        raise ConfigError(f"model.weights {kind!r} does not work on {device}: {error}; leave it at auto") from error
