"""The process group that holds the parts of one model, and which models have no such parts."""

from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed
from torch.distributed import distributed_c10d

from ewe.config import ModelConfig
from ewe.engine.loader import read_config
from ewe.errors import ConfigError, UnsupportedModelError

# How long a process waits for the others in a pass, or while they read weights. Death is noticed long before.
_TIMEOUT = timedelta(minutes=30)


def group_device(config: ModelConfig) -> str:
    """ "cuda" or "cpu", where the parts are to lie; raises ConfigError if they cannot."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parts = config.tensor_parallel
    if config.device not in ("auto", device):
        raise ConfigError(
            f"model.device {config.device!r}: with model.tensor_parallel the parts lie on the GPUs from the first on, "
            "or on the CPU where there are none; leave it at auto, and choose GPUs by CUDA_VISIBLE_DEVICES"
        )
    if device == "cuda" and torch.cuda.device_count() < parts:
        raise ConfigError(f"model.tensor_parallel {parts}: there are {torch.cuda.device_count()} GPUs here")
    return device


def refuse_unshardable(config: ModelConfig) -> None:
    """Raises ConfigError or UnsupportedModelError if the attention of the model cannot be split into as many parts."""
    text = read_config(config).get_text_config()
    plan = getattr(text, "base_model_tp_plan", None) or {}
    if not any(name.endswith(".k_proj") and style == "colwise" for name, style in plan.items()):
        raise UnsupportedModelError(
            f"{text.model_type}: transformers has no plan that splits its attention by heads; set "
            "model.tensor_parallel to 1"
        )
    for name in ("num_attention_heads", "num_key_value_heads"):
        heads = getattr(text, name, None)
        if heads is not None and heads % config.tensor_parallel:
            raise ConfigError(
                f"model.tensor_parallel {config.tensor_parallel} must divide {name} of {config.name}, which is {heads}"
            )


def join(rank: int, parts: int, folder: Path, device: str) -> None:
    """Makes this process one of the group; returns when all have come. folder: where they find each other."""
    bound = None
    if device == "cuda":
        torch.cuda.set_device(rank)
        bound = torch.device(device, rank)
    else:
        torch.set_num_threads(max(1, torch.get_num_threads() // parts))
    distributed.init_process_group(
        "nccl" if device == "cuda" else "gloo",
        store=distributed.FileStore(str(folder / "store"), parts),  # type: ignore[attr-defined]
        rank=rank,
        world_size=parts,
        timeout=_TIMEOUT,
        device_id=bound,
    )


def leave() -> None:
    """Takes this process out of the group, if it is in one."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


def abort() -> None:
    """Gives up what a GPU is waiting for from processes that have died; on a CPU it fails by itself."""
    if distributed.is_initialized() and distributed.get_backend() == "nccl":
        distributed_c10d._abort_process_group()
