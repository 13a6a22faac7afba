"""Whether a model's layers run fused."""

from __future__ import annotations

from typing import Any

from ewe.attention.choose import missing_for_kernels
from ewe.config import ModelConfig
from ewe.engine.device import launching_on


def fuse_on_gpu(model: Any, config: ModelConfig) -> None:
    """Fuses the layers on a GPU that runs the kernels, unless the settings say otherwise; a CPU is faster without."""
    wanted = model.device.type == "cuda" and config.fused == "auto" and not config.compile
    if wanted and missing_for_kernels(model.device) is None:
        from ewe.engine.fused_layer import fuse_layers

        with launching_on(model.device):
            fuse_layers(model)
