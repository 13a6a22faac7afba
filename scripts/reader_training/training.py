"""The training run: steps against the clock, checkpoints that a kill never harms, probes on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from builtin_training.checkpoint import load_checkpoint, save_checkpoint
from peft import PeftModel
from peft.helpers import disable_input_dtype_casting
from torch import nn
from transformers import PreTrainedModel

from reader_training.batches import Batch, Batches
from reader_training.model import losses, rate_at


@dataclass(frozen=True, slots=True)
class Settings:
    """Length and pace. The run ends after `steps` if that is not 0, else after `minutes` of training, all starts
    together; the learning rate follows.
    """

    minutes: float
    steps: int = 0
    peak_lr: float = 1.5e-3
    teacher_weight: float = 0.3
    attention: str = "sdpa"
    workers: int = 0
    save_minutes: float = 2.0
    probes: int = 4
    say_every: int = 20


class _Trained(nn.Module):
    """The adapter's parameters alone, for the checkpoint."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._named = {name: value for name, value in model.named_parameters() if value.requires_grad}

    def named_parameters(self, *_: object, **__: object) -> list[tuple[str, nn.Parameter]]:  # type: ignore[override]
        return list(self._named.items())


class Training:
    """Trains the adapter of `student` until `settings` say it is over; goes on from `checkpoint` if that exists."""

    def __init__(
        self,
        student: PeftModel,
        teacher: PreTrainedModel,
        batches: Batches,
        settings: Settings,
        checkpoint: Path,
        probe: Callable[[], str],
    ) -> None:
        self.student, self.teacher, self.batches, self.settings = student, teacher, batches, settings
        self.checkpoint, self._probe = checkpoint, probe
        self._inner: PreTrainedModel = student.get_base_model()
        self._device = next(student.parameters()).device
        self._trained = _Trained(student)
        parameters = [value for _, value in self._trained.named_parameters()]
        self.optimizer = torch.optim.AdamW(
            parameters, settings.peak_lr, betas=(0.9, 0.98), weight_decay=0.0, fused=True
        )
        self._seconds = torch.zeros(())
        self._said = 0.0
        self.step = 0
        if checkpoint.exists():
            self.step = load_checkpoint(checkpoint, self._trained, [self.optimizer], [self._seconds])
            self._said = self._seconds.item()

    @property
    def progress(self) -> float:
        """How much of the run is done, in [0, 1]."""
        if self.settings.steps:
            return self.step / self.settings.steps
        return min(1.0, self._seconds.item() / (60 * self.settings.minutes))

    def run(self) -> None:
        """All steps that are left, then a last checkpoint."""
        batches = iter(self.batches.loader(self.step, self.settings.workers))
        if self.step == 0:
            self._say(self._probe())
        # The adapter is float32, what goes through it is bfloat16 on CUDA: autocast minds the types, peft need not.
        with disable_input_dtype_casting(self._inner):
            self._steps(batches)
        self.save()

    def _steps(self, batches: Iterator[Batch]) -> None:
        saved = self._seconds.item()
        probed = int(self.progress * self.settings.probes)
        while self.progress < 1:
            started = time.perf_counter()
            batch = next(batches).to(self._device)
            self._train_step(batch)
            self._seconds += time.perf_counter() - started
            if self._seconds.item() - saved > 60 * self.settings.save_minutes:
                self.save()
                saved = self._seconds.item()
            if int(self.progress * self.settings.probes) > probed:
                probed += 1
                self._say(self._probe())

    def save(self) -> None:
        """Writes the checkpoint."""
        save_checkpoint(self.checkpoint, self._trained, [self.optimizer], [self._seconds], self.step)

    def _train_step(self, batch: Batch) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.peak_lr * rate_at(self.progress)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._device.type == "cuda"):
            entropy, divergence = losses(self._inner, self.teacher, batch, self.settings.attention)
        torch.autograd.backward(entropy + self.settings.teacher_weight * divergence)
        norm = torch.nn.utils.clip_grad_norm_([value for _, value in self._trained.named_parameters()], 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        if self.step % self.settings.say_every == 0:
            read = (batch.student.owners >= 0).float().mean().item()
            pace = (self._seconds.item() - self._said) / self.settings.say_every
            self._said = self._seconds.item()
            text = f"loss {entropy.item():.3f} divergence {divergence.item():.3f} norm {norm.item():.2f}"
            self._say(f"{text} filled {read:.2f} seconds per step {pace:.3f}")

    def _say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} step {self.step} done {self.progress:.3f} {text}", flush=True)
