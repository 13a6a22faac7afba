"""Checkpoints in safetensors: parameters, optimizer states and the step, written so that a kill never harms them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase


def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    average: Sequence[Tensor],
    step: int,
) -> None:
    """Writes parameters (dtype kept), their average, optimizer states and `step` (steps done) to `path` at once."""
    tensors: dict[str, Tensor] = {f"model.{name}": parameter.detach() for name, parameter in model.named_parameters()}
    tensors.update({f"average.{index}": tensor for index, tensor in enumerate(average)})
    for number, optimizer in enumerate(optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            for key, value in state.items():
                tensors[f"optimizer.{number}.{index}.{key}"] = torch.as_tensor(value).detach()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    save_file({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, temporary, {"step": str(step)})
    os.replace(temporary, path)


def load_checkpoint(
    path: Path, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], average: Sequence[Tensor]
) -> int:
    """Loads what `save_checkpoint` wrote into model, optimizers and average; returns the steps done.

    Raises KeyError if a parameter is missing.
    """
    with safe_open(path, "pt") as file:
        step = int(file.metadata()["step"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[f"model.{name}"])
        for index, tensor in enumerate(average):
            tensor.copy_(tensors[f"average.{index}"])
    for number, optimizer in enumerate(optimizers):
        states: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            kind, *rest = name.split(".")
            if kind == "optimizer" and int(rest[0]) == number:
                states.setdefault(int(rest[1]), {})[rest[2]] = tensor
        optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
    return step


def export_model(
    directory: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, dtype: torch.dtype
) -> None:
    """Writes weights (cast to `dtype`), config and tokenizer as a transformers model directory, each file replaced at
    once; other files there stay.
    """
    temporary = directory.with_name(directory.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    weights = {name: tensor.detach().cpu().to(dtype) for name, tensor in model.named_parameters()}
    implementation, own_dtype = model.config._attn_implementation, model.config.dtype
    model.config._attn_implementation, model.config.dtype = "sdpa", dtype
    model.config.save_pretrained(temporary)
    model.generation_config.save_pretrained(temporary)
    model.config._attn_implementation, model.config.dtype = implementation, own_dtype
    tokenizer.save_pretrained(temporary)
    save_file(weights, temporary / "model.safetensors", {"format": "pt"})
    directory.mkdir(parents=True, exist_ok=True)
    for file in sorted(temporary.iterdir()):
        os.replace(file, directory / file.name)
    temporary.rmdir()
