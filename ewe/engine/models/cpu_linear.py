"""Linear layers on a CPU whose products of few rows are computed in the way that is fastest on this processor.

Decoding multiplies every weight with one row per sequence, which should take the time of reading the weights once. No
library does that on every processor: the fastest way on one has been three times as slow as torch's own on another. So
ways are timed.
"""

import logging
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from ewe.engine.models.cpu_timing import fastest_ways

Way = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""Multiplies x [rows, in] with a weight [out, in] and adds a bias [out], if there is one: [rows, out]."""

_log = logging.getLogger(__name__)
ROW_COUNTS = (1, 4, 16)
"""The numbers of rows that ways are timed at; each stands for those above the one before it. More take torch's way."""
# Smaller layers take microseconds, whichever way they go.
_LEAST_WEIGHTS = 1 << 18
# By so much rounding may move a result, as a share of the largest: what is further off is no product.
_TOLERANCE = 1e-4


def by_onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """By oneDNN, which compiles its loops for the processor (torch.nn.functional.linear asks BLAS)."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product


def transposed(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """By BLAS as W x^T, the rows padded to a power of two and at least two."""
    num_rows = len(x)
    padding = max(2, 1 << (num_rows - 1).bit_length()) - num_rows
    rows = pad(x, (0, 0, 0, padding)) if padding else x
    product = torch.mm(weight, rows.t())[:, :num_rows].t().contiguous()
    return product if bias is None else product.add_(bias)


WAYS: dict[str, Way] = {"torch": linear, "onednn": by_onednn, "transposed": transposed}


class CPULinear(nn.Linear):
    """A linear layer in float32 that multiplies up to 16 rows by `ways`; results differ from nn.Linear's by rounding.

    ways: names of WAYS, one per entry of ROW_COUNTS.
    """

    ways: tuple[str, ...] = ("torch",) * len(ROW_COUNTS)

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] to [..., out]."""
        num_rows = x.numel() // self.in_features
        if not 0 < num_rows <= ROW_COUNTS[-1] or torch.compiler.is_compiling():
            return linear(x, self.weight, self.bias)
        way = WAYS[self.ways[bisect_left(ROW_COUNTS, num_rows)]]
        return way(x.reshape(num_rows, -1), self.weight, self.bias).view(*x.shape[:-1], -1)


def speed_up_decoding(model: Any) -> None:
    """Has the large linear layers of a model on a CPU, in float32, multiply few rows in the fastest way that works.

    The first time on a processor this takes about a quarter of a second; afterwards the choice is read from a file.
    """
    if model.device.type != "cpu":
        return
    layers = [
        layer
        for layer in model.modules()
        if type(layer) is nn.Linear and layer.weight.dtype == torch.float32 and layer.weight.numel() >= _LEAST_WEIGHTS
    ]
    ways = fastest_ways([layer.weight for layer in layers], _working_ways(), ROW_COUNTS) if layers else ()
    for layer in layers if set(ways) - {"torch"} else ():
        # In place, so that tied weights stay tied.
        layer.__class__ = CPULinear
        layer.ways = ways  # type: ignore[assignment]  # it is a CPULinear now
    _log.info("products of few rows: %s", describe_ways(model))


def describe_ways(model: Any) -> str:
    """Which way products of few rows go, by the number of rows: "torch", or as "1 onednn, 2 transposed, ..."."""
    ways = next((layer.ways for layer in model.modules() if type(layer) is CPULinear), None)
    return "torch" if ways is None else ", ".join(f"{count} {way}" for count, way in zip(ROW_COUNTS, ways, strict=True))


@torch.inference_mode()
def _working_ways() -> dict[str, Way]:
    """The ways that give the right numbers with this build of torch."""
    x, weight = (torch.arange(count, dtype=torch.float32).sin() for count in (3 * 64, 96 * 64))
    x, weight = x.view(3, 64), weight.view(96, 64)
    expected = linear(x, weight)
    working: dict[str, Way] = {}
    for name, way in WAYS.items():
        try:
            error = (way(x, weight, None) - expected).abs().amax()
        except (RuntimeError, AttributeError, NotImplementedError):  # not part of every build
            continue
        if bool(error <= _TOLERANCE * expected.abs().amax()):
            working[name] = way
    return working
