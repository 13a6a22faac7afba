"""Whether products of few rows with 8-bit weights run in the Triton kernel on a device."""

import logging

import torch

from ewe.engine.attention.choose import missing_for_kernels
from ewe.engine.kvcache.fp8 import LEAST_CAPABILITY
from ewe.engine.models.device import launching_on
from ewe.engine.models.quantization import FewRows, Kind, SmallLinear, round_rows

_log = logging.getLogger(__name__)
# Share of the largest result by which rounding may move any of them.
_TOLERANCE = 0.02


def choose_few_rows(kind: Kind, device: torch.device, dtype: torch.dtype) -> FewRows | None:
    """The kernel on NVIDIA GPUs that it supports, else None; for a GPU one line in the log says why.

    dtype: of the activations.
    """
    if device.type != "cuda":
        return None
    reason = missing_for_kernels(device)
    if reason is None and kind == "fp8" and torch.cuda.get_device_capability(device) < LEAST_CAPABILITY:
        reason = "this GPU does not read fp8; int8 does better here"
    if reason is None:
        from ewe_kernels.small_product import MOST_ROWS, multiply

        few = FewRows(multiply, MOST_ROWS)
        reason = try_out(few, kind, device, dtype)
        if reason is None:
            return few
    _log.warning("8-bit weights are converted for every product, which is slower: %s", reason)
    return None


def try_out(few: FewRows, kind: Kind, device: torch.device, dtype: torch.dtype) -> str | None:
    """Why the kernel cannot be used, from one small product on the device; None if it can."""
    numbers = torch.arange(64 * 512, device=device, dtype=torch.float32).sin()  # draws nothing at random
    weight, scale = round_rows(numbers.view(64, 512), kind)
    rows = numbers[: 3 * 512].view(3, 512).to(dtype)
    expected = SmallLinear(weight, scale, None)(rows).float()
    try:
        with launching_on(device):
            actual = few.multiply(rows, weight, scale, None).float()
    except Exception as error:  # compilers fail in many ways, and all of them leave the other path
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    if bool(((actual - expected).abs().amax() <= _TOLERANCE * expected.abs().amax()).item()):
        return None
    return "the kernel gave other numbers than torch"
