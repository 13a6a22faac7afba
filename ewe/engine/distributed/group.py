"""The process group that holds the parts of one model, and which models have no such parts."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from torch import distributed
from torch.distributed import distributed_c10d

from ewe.config import ModelConfig
from ewe.engine.attention.support import layer_configs
from ewe.engine.models.loader import read_config
from ewe.errors import ConfigError, UnsupportedModelError

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

# How long a process waits for the others while they read weights; and in a pass, for one that is out of reach without
# having died. Requests are told long before.
_TIMEOUT, _PASS_TIMEOUT = timedelta(minutes=30), timedelta(minutes=1)


def group_device(config: ModelConfig) -> str:
    """ "cuda" or "cpu", where the parts are to lie; raises ConfigError if they cannot."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parts = config.tensor_parallel
    if config.device not in ("auto", device):
        raise ConfigError(
            f"model.device {config.device!r}: with model.tensor_parallel the parts lie on the GPUs from the first on, "
            "or on the CPU where there are none; leave it at auto, and choose GPUs by CUDA_VISIBLE_DEVICES"
        )
    if device == "cuda" and torch.cuda.device_count() < _parts_here(parts):
        raise ConfigError(f"model.tensor_parallel {parts}: there are {torch.cuda.device_count()} GPUs here")
    return device


def _parts_here(parts: int) -> int:
    """How many of the parts lie on this machine; torchrun says so where there are several."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", parts))


def refuse_unshardable(config: ModelConfig) -> None:
    """Raises ConfigError or UnsupportedModelError if the attention of the model cannot be split into as many parts."""
    text = read_config(config).get_text_config()
    plan = getattr(text, "base_model_tp_plan", None) or {}
    if not any(name.endswith(".k_proj") and style == "colwise" for name, style in plan.items()):
        raise UnsupportedModelError(
            f"{text.model_type}: transformers has no plan that splits its attention by heads; set "
            "model.tensor_parallel to 1"
        )
    if text.model_type == "cohere" and text.use_qk_norm:
        raise UnsupportedModelError("cohere: transformers' plan does not split its norms of queries and keys by heads")
    for layer in layer_configs(text):
        for name in ("num_attention_heads", "num_key_value_heads"):
            heads = getattr(layer, name, None)
            if heads is not None and heads % config.tensor_parallel:
                raise ConfigError(
                    f"model.tensor_parallel {config.tensor_parallel} must divide {name} of {config.name}, which is "
                    f"{heads}"
                )


def join(rank: int, parts: int, store: Store, device: str) -> None:
    """Makes this process one of the group; returns when all have come. store: where they find each other."""
    bound = None
    if device == "cuda":
        bound = torch.device(device, int(os.environ.get("LOCAL_RANK", rank)))
        torch.cuda.set_device(bound)
    else:
        torch.set_num_threads(max(1, torch.get_num_threads() // _parts_here(parts)))
    distributed.init_process_group(
        "nccl" if device == "cuda" else "gloo",
        store=store,
        rank=rank,
        world_size=parts,
        timeout=_TIMEOUT,
        device_id=bound,
    )


def wait_for_all() -> None:
    """Returns when every rank is ready for passes. From then on none waits long for another: gloo cannot `abort`."""
    if distributed.is_initialized():
        distributed.barrier()
        if distributed.get_backend() == "gloo":
            distributed_c10d._set_pg_timeout(_PASS_TIMEOUT)


def leave() -> None:
    """Takes this process out of the group, if it is in one."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


def abort() -> None:
    """Gives up what a GPU is waiting for from processes that have died; on a CPU it fails by itself."""
    if distributed.is_initialized() and distributed.get_backend() == "nccl":
        distributed_c10d._abort_process_group()
