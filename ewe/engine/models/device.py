"""Which device the model runs on."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ParamSpec, TypeVar

import torch

from ewe.errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")


def usable_device(name: str) -> torch.device:
    """The device of this name; "auto" is the GPU where there is one, else the CPU. Raises ConfigError."""
    device = ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"model.device {name!r} is not usable here: {error}") from error


def on_one_device(model: Any) -> bool:
    """Whether accelerate has left a model in one place, where its weights can be read at any time."""
    return not hasattr(model, "hf_device_map")


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
