"""Which backend computes attention on a device.

Owns: the choice, and the line that says why a GPU does without the kernels. Knows both backends by name; the Triton one
is imported only where it is used, because Triton is an optional package.
"""

from __future__ import annotations

import importlib.util
import logging

import torch

from ewe.attention.backend import AttentionBackend
from ewe.attention.torch_backend import TorchBackend
from ewe.kvcache.pool import KVPool

_log = logging.getLogger(__name__)
# bfloat16 in the tensor cores and asynchronous copies, which the kernels are built on, come with sm_80.
_LEAST_CAPABILITY = (8, 0)


def choose_backend(device: torch.device, pool: KVPool) -> AttentionBackend:
    """Triton kernels on NVIDIA GPUs from sm_80 on, else plain torch; for a GPU one line says why."""
    if device.type == "cuda":
        reason = missing_for_kernels(device)
        if reason is None:
            from ewe.attention.triton_backend import TritonBackend

            return TritonBackend(device, pool.block_size, pool.keys[0].shape[1])
        _log.warning("attention runs in plain torch, which is slower: %s", reason)
    slot_bytes = max(key[0].nbytes + value[0].nbytes for key, value in zip(pool.keys, pool.values, strict=True))
    return TorchBackend(device, slot_bytes)


def missing_for_kernels(device: torch.device) -> str | None:
    """Why the kernels cannot run on this CUDA device, with what to do about it; None if they can."""
    if torch.version.hip is not None:
        return "the kernels are made for NVIDIA GPUs"
    if importlib.util.find_spec("triton") is None:
        return "Triton is missing (pip install 'ewe-engine[gpu]')"
    capability = torch.cuda.get_device_capability(device)
    if capability < _LEAST_CAPABILITY:
        name = torch.cuda.get_device_name(device)
        return f"{name} is sm_{capability[0]}{capability[1]}, and the kernels need sm_80 or newer"
    return None
