"""Muon for the matrices, AdamW for the rest, and the learning-rate schedule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

Optimizers = Sequence[torch.optim.Optimizer]


def build_optimizers(model: nn.Module, matrix_lr: float, other_lr: float) -> list[torch.optim.Optimizer]:
    """Muon (AdamW where torch lacks it) for the layers' matrices, AdamW for embeddings and norms; no pickle needed:
    their states are tensors and step counts (`checkpoint.py`).
    """
    matrices = [
        p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name and "lm_head" not in name
    ]
    taken = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in taken]
    if hasattr(torch.optim, "Muon"):
        first: torch.optim.Optimizer = torch.optim.Muon(matrices, lr=matrix_lr, momentum=0.95, weight_decay=0.0)
    else:
        first = torch.optim.AdamW(matrices, lr=other_lr, betas=(0.9, 0.95), weight_decay=0.0)
    optimizers = [first, torch.optim.AdamW(others, lr=other_lr, betas=(0.9, 0.95), weight_decay=0.0)]
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return optimizers


class Average:
    """A running average of a model's parameters, which copies better than the parameters of any one step.

    decay: share that stays per step, less in the first steps.
    """

    def __init__(self, model: nn.Module, decay: float = 0.99) -> None:
        self._parameters: list[torch.Tensor] = list(model.parameters())
        self._decay = decay
        self.tensors = [parameter.detach().clone() for parameter in self._parameters]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Takes the present parameters in; to be called after every step (counted from 0)."""
        decay = min(self._decay, (step + 1) / (step + 10))
        torch._foreach_lerp_(self.tensors, self._parameters, 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """While the context lasts, the model has the averaged parameters."""
        own = [parameter.detach().clone() for parameter in self._parameters]
        self._fill(self.tensors)
        try:
            yield
        finally:
            self._fill(own)

    @torch.no_grad()
    def _fill(self, tensors: Sequence[torch.Tensor]) -> None:
        for parameter, tensor in zip(self._parameters, tensors, strict=True):
            parameter.copy_(tensor)


def schedule(progress: float, warmup: float = 0.02, hold: float = 0.3, floor: float = 0.02) -> float:
    """Share of the peak learning rate at `progress` in [0, 1]: linear warm-up, hold, then a cosine down to `floor`."""
    if progress < warmup:
        return (progress + 1e-3) / (warmup + 1e-3)
    if progress < hold:
        return 1.0
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min((progress - hold) / (1 - hold), 1.0)))


def set_learning_rate(optimizers: Optimizers, share: float) -> None:
    """Sets every group's learning rate to `share` of its peak."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak_lr"] * share
