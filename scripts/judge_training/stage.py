"""One stage of the training: steps over epochs of pairs, checkpoints that a kill never harms, probes on the way."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from builtin_training.checkpoint import load_checkpoint, save_checkpoint
from builtin_training.optim import Average, set_learning_rate
from safetensors.torch import save_file
from torch import Tensor
from transformers import BertForSequenceClassification, PreTrainedTokenizerBase

from judge_training.batches import TRAINED_TOKENS, Encoded, collate, encode, training_batches
from judge_training.model import build_optimizer, loss_of, rate_at
from judge_training.pairs import Pair

EpochOf = Callable[[int], Sequence[Pair]]


@dataclass(frozen=True, slots=True)
class StageSettings:
    """Length and pace of a stage. steps: optimizer steps; the rest as its name says."""

    steps: int
    peak_lr: float
    batch_size: int = 48
    layer_decay: float = 0.9
    smoothing: float = 0.05
    consistency: float = 1.0
    average_decay: float = 0.995
    save_minutes: float = 4.0
    probe_minutes: float = 20.0


class Stage:
    """A stage named `name`; its checkpoint and, when it is done, its averaged weights lie in `directory`.

    epoch_of: the pairs of each epoch. probe: called every so often with the averaged weights in place.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        settings: StageSettings,
        model: BertForSequenceClassification,
        tokenizer: PreTrainedTokenizerBase,
        epoch_of: EpochOf,
        probe: Callable[[], str],
    ) -> None:
        self.name, self.settings, self.model = name, settings, model
        self.result = directory / f"{name}.safetensors"
        self.checkpoint = directory / f"{name}-checkpoint.safetensors"
        self._tokenizer, self._epoch_of, self._probe = tokenizer, epoch_of, probe
        self.optimizer = build_optimizer(model, settings.peak_lr, settings.layer_decay)
        self.average = Average(model, settings.average_decay)
        self.step = 0
        if self.checkpoint.exists():
            self.step = load_checkpoint(self.checkpoint, model, [self.optimizer], self.average.tensors)

    def run(self) -> bool:
        """All steps that are left; False if SIGTERM or SIGINT came before the last (the checkpoint holds the rest)."""
        saved = probed = time.monotonic()
        with _stop_asked() as stop_asked:
            for batch in itertools.islice(self._batches(), self.step, self.settings.steps):
                if stop_asked():
                    self.save()
                    return False
                self._train_step(batch)
                now = time.monotonic()
                if now - saved > 60 * self.settings.save_minutes:
                    self.save()
                    saved = now
                if now - probed > 60 * self.settings.probe_minutes:
                    self._say(self._probe_average())
                    probed = now
        self.save()
        with self.average.in_place():
            save_file(weights_of(self.model), self.result)
        return True

    def save(self) -> None:
        """Writes the checkpoint."""
        save_checkpoint(self.checkpoint, self.model, [self.optimizer], self.average.tensors, self.step)

    def _batches(self) -> Iterator[list[Encoded]]:
        for epoch in itertools.count():
            examples = encode(self._tokenizer, self._epoch_of(epoch), TRAINED_TOKENS)
            yield from training_batches(Random(f"{self.name}/{epoch}"), examples, self.settings.batch_size)

    def _train_step(self, examples: Sequence[Encoded]) -> None:
        self.model.train()
        torch.manual_seed(self.step)
        set_learning_rate([self.optimizer], rate_at(self.step / self.settings.steps))
        batch = collate(examples)
        loss, right = loss_of(self.model, batch, self.settings.smoothing, self.settings.consistency)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.average.update(self.step)
        self.step += 1
        if self.step % 20 == 0:
            self._say(f"loss {loss.item():.3f} right {right.item():.2f} width {batch['input_ids'].shape[1]}")

    def _probe_average(self) -> str:
        with self.average.in_place():
            return self._probe()

    def _say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {self.name} {self.step}/{self.settings.steps} {text}", flush=True)


def weights_of(model: BertForSequenceClassification) -> dict[str, Tensor]:
    """A copy of the model's weights, by name."""
    return {name: tensor.detach().clone().contiguous() for name, tensor in model.state_dict().items()}


@contextmanager
def _stop_asked() -> Iterator[Callable[[], bool]]:
    """While the context lasts, SIGTERM and SIGINT are noted instead of ending the process."""
    asked = False

    def note(*_: object) -> None:
        nonlocal asked
        asked = True

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
