"""Which device the model runs on."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from ewe.errors import ConfigError


def usable_device(name: str) -> torch.device:
    """The device of this name; "auto" is the GPU where there is one, else the CPU. Raises ConfigError."""
    wanted = ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
    try:
        return torch.empty(0, device=wanted).device
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"model.device {name!r} is not usable here: {error}") from error


def launching_on(device: torch.device) -> AbstractContextManager[object]:
    """Kernels of Triton are launched on this device meanwhile, by this thread: they go to the current one otherwise."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
