"""Which device the model runs on, and in which precision."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ParamSpec, TypeVar

import torch

from ewe.config.gpu_driver import has_gpu_driver
from ewe.errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger(__name__)
# The first CUDA compute capability that multiplies bfloat16.
_BFLOAT16_CAPABILITY = (8, 0)


def usable_device(name: str) -> torch.device:
    """The device of this name; "auto" is the GPU where there is one, else the CPU. Raises ConfigError."""
    device = ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
    if name == "auto" and device == "cpu" and has_gpu_driver():
        reason = "is older than torch needs" if torch.version.cuda else "cannot be used: this torch is built for CPUs"
        _log.warning("the model runs on the CPU: the driver of a GPU is here, but %s", reason)
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"model.device {name!r} is not usable here: {error}") from error


def precision_on(device: torch.device, own: torch.dtype) -> torch.dtype:
    """The precision of a checkpoint of precision `own`: float32 on a CPU, float16 on a GPU that has no bfloat16."""
    if device.type != "cuda":
        return torch.float32
    if own == torch.bfloat16 and torch.cuda.get_device_capability(device) < _BFLOAT16_CAPABILITY:
        _log.warning(
            "%s has no bfloat16, the checkpoint's own precision: float16 is used, whose range is smaller; if answers "
            "fail as not finite, set model.dtype to float32",
            torch.cuda.get_device_name(device),
        )
        return torch.float16
    return own


def on_one_device(model: Any) -> bool:
    """Whether accelerate has left a model in one place, where its weights can be read at any time."""
    return not hasattr(model, "hf_device_map")


def has_failed(device: torch.device) -> bool:
    """Whether a GPU takes no more work: after a fault in a kernel every later call of the process fails as well."""
    if device.type != "cuda":
        return False
    try:
        torch.cuda.synchronize(device)
    except RuntimeError:
        return True
    return False


def launching_on(device: torch.device) -> AbstractContextManager[object]:
    """Kernels of Triton are launched on this device meanwhile, by this thread: they go to the current one otherwise."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def in_own_stream(call: Callable[P, R], device: torch.device) -> Callable[P, R]:
    """`call`; on a GPU what it launches there goes to a stream of its own.

    So a judge or an encoder neither waits for the engine's passes nor holds them up. Its results must be on the host.
    """
    if device.type != "cuda":
        return call
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def run(*arguments: P.args, **options: P.kwargs) -> R:
        with torch.cuda.stream(stream):
            return call(*arguments, **options)

    return run
