"""Which backend computes attention on a device."""

import importlib.util
import logging

import torch

from ewe.engine.attention.backend import AttentionBackend
from ewe.engine.attention.torch_backend import TorchBackend
from ewe.engine.kvcache.fp8 import FP8, LEAST_CAPABILITY
from ewe.engine.kvcache.pool import KVPool

_log = logging.getLogger(__name__)
# bfloat16 in the tensor cores and asynchronous copies, which the kernels are built on, come with sm_80.
_LEAST_CAPABILITY = (8, 0)
_compiled_on: set[torch.device] = set()


def choose_backend(device: torch.device, pool: KVPool) -> AttentionBackend:
    """Triton kernels on NVIDIA GPUs from sm_80 on, else plain torch; for a GPU one line says why."""
    if device.type == "cuda":
        reason = missing_for_kernels(device, pool.dtype)
        if reason is None:
            from ewe.engine.attention.triton_backend import TritonBackend

            return TritonBackend(device, pool.block_size, pool.keys[0].shape[1])
        _log.warning("attention runs in plain torch, which is slower: %s", reason)
    scaled = pool.dtype == FP8
    # What is gathered from fp8 is widened, on a CPU to float32 as a rule.
    width = torch.float32.itemsize if scaled else pool.dtype.itemsize
    slot_bytes = width * max(shape.num_kv_heads * (shape.key_dim + shape.value_dim) for shape in pool.layer_shapes)
    return TorchBackend(device, slot_bytes, scaled)


def missing_for_kernels(device: torch.device, cache_dtype: torch.dtype | None = None) -> str | None:
    """Why the kernels cannot run on this CUDA device, with what to do about it; None if they can.

    cache_dtype: of the pool, for those that read it.
    """
    if torch.version.hip is not None:
        return "the kernels are made for NVIDIA GPUs"
    if importlib.util.find_spec("triton") is None:
        return "Triton is missing (pip install 'ewe-engine[gpu]')"
    capability = torch.cuda.get_device_capability(device)
    name = f"{torch.cuda.get_device_name(device)} is sm_{capability[0]}{capability[1]}"
    if capability < _LEAST_CAPABILITY:
        return f"{name}, and the kernels need sm_80 or newer"
    if cache_dtype == FP8 and capability < LEAST_CAPABILITY:
        return f"{name}, and over fp8 the kernels need sm_89 or newer: set cache.dtype to auto"
    return _compile_failure(device)


def _compile_failure(device: torch.device) -> str | None:
    """Why Triton cannot run a kernel here, found out with a small one; None if it can.

    Triton needs a C compiler and Python's headers at run time, which slim images lack, and an assembler that knows the
    GPU. What fails here would fail in the first pass.
    """
    if device in _compiled_on:
        return None
    try:
        from ewe_kernels.norm import rms_norm  # with Triton, which may fail as it looks for the driver

        with torch.cuda.device(device):
            rms_norm(torch.ones(1, 16, device=device), torch.ones(16, device=device), 1e-6)
    except Exception as error:  # compilers and drivers fail in many ways, and all of them leave the other path
        said = (str(error).splitlines() or [""])[0]
        return (
            f"Triton cannot run here ({type(error).__name__}: {said}); it needs a C compiler and Python's headers "
            "(apt install gcc python3-dev)"
        )
    _compiled_on.add(device)
    return None
