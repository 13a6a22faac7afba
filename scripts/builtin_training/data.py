"""Batches made in a worker process, each a function of (seed, step) alone, so that a resumed run sees the same ones."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from torch.utils.data import DataLoader, Dataset

from builtin_training.batch import Batch, LossWeights, collate
from builtin_training.example import Example, add_distractors

ExampleSource = Callable[[random.Random, float], list[Example]]
"""Draws examples that share their units; the number in [0, 1] is how far training has come (for the curriculum)."""


def ramp(progress: float, start: float, end: float) -> float:
    """0 up to `start`, 1 from `end` on, linear between."""
    return min(max((progress - start) / (end - start), 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """How batches are made; distractors as in `add_distractors` (their share grows while training goes on).

    Later half of the batches let contexts start at `unit_tokens`, the others anywhere from 64 to three times as far,
    so that the model works with other capacities too.
    """

    examples: int = 56
    unit_tokens: int = 96
    max_units: int = 8
    distractor_share: float = 0.3
    losses: LossWeights = field(default_factory=LossWeights)
    seed: int = 1_000_000


class StepBatches(Dataset[Batch]):
    """The batch of every step in range(total_steps)."""

    def __init__(self, source: ExampleSource, settings: BatchSettings, total_steps: int) -> None:
        self._source, self._settings, self._total_steps = source, settings, total_steps

    def __len__(self) -> int:
        return self._total_steps

    def __getitem__(self, step: int) -> Batch:
        settings = self._settings
        rng = random.Random(f"{settings.seed}/{step}")
        progress = step / self._total_steps
        examples: list[Example] = []
        while len(examples) < settings.examples:
            examples += self._source(rng, progress)
        share = settings.distractor_share * ramp(progress, 0.1, 0.25)
        examples = add_distractors(examples, rng, settings.max_units, share)
        first_position = (
            settings.unit_tokens
            if rng.random() > 0.5 * ramp(progress, 0.15, 0.3)
            else rng.randint(64, 3 * settings.unit_tokens)
        )
        return collate(examples, first_position, rng, settings.losses)


def batches(
    source: ExampleSource, settings: BatchSettings, first_step: int, total_steps: int, workers: int = 1
) -> Iterator[Batch]:
    """Yields the batches of steps first_step .. total_steps - 1 in order (workers=0: made in this process)."""
    loader: DataLoader[Batch] = DataLoader(
        StepBatches(source, settings, total_steps),
        batch_size=None,
        sampler=range(first_step, total_steps),
        num_workers=workers,
        prefetch_factor=8 if workers else None,
        worker_init_fn=_leave_signals_to_the_parent,
    )
    yield from loader


def _leave_signals_to_the_parent(_: int) -> None:
    """A signal to the whole process group must not end the worker before the parent has saved its checkpoint."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
