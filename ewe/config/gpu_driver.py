"""Whether this machine has a GPU, told without torch, which takes seconds to import."""

import os
from pathlib import Path

_NVIDIA = Path("/proc/driver/nvidia/version")


def has_gpu_driver() -> bool:
    """Whether the driver of an NVIDIA GPU is loaded, and not hidden; torch may still be unable to use it."""
    return _NVIDIA.exists() and os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1")
