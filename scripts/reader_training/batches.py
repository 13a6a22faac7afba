"""Batches of a fixed shape, made from the step's number alone: a resumed run goes on with what it would have seen."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from reader_training.frames import Encoder
from reader_training.mixture import Mixture
from reader_training.packing import Packed, Rows, parallel_layout, sequential_layout

_TOO_MANY_MISSES = 6
# The teacher reads the right passages alone: half of the student's tokens will do.
_TEACHER_SHARE = 2


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows and tokens per row of the student's part of a batch."""

    rows: int
    width: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What the student reads in parallel, what the teacher reads in its prompt, and which targets the teacher has too.

    taught [teacher's targets]: for each of the teacher's targets, the same one among the student's.
    """

    student: Packed
    teacher: Packed
    taught: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same on `device`."""
        return Batch(self.student.to(device), self.teacher.to(device), self.taught.to(device))


class Batches(Dataset[Batch]):
    """Item i is the batch of step i."""

    def __init__(self, mixture: Mixture, encoder: Encoder, shape: Shape, seed: int) -> None:
        self.mixture, self.encoder, self.shape, self.seed = mixture, encoder, shape, seed

    def __getitem__(self, step: int) -> Batch:
        rng = Random(f"{self.seed}/{step}")
        student = Rows(self.shape.rows, self.shape.width)
        teacher = Rows(self.shape.rows, self.shape.width // _TEACHER_SHARE)
        taught: list[int] = []
        targets = 0
        misses = 0
        while misses < _TOO_MANY_MISSES:
            example = self.encoder.encode(self.mixture.draw(rng))
            layout = parallel_layout(example, self.encoder.unit_tokens)
            told = sequential_layout(example, example.right)
            row, told_row = student.row_for(layout), teacher.row_for(told)
            if row is None or told_row is None:
                misses += 1
                continue
            student.place(row, layout)
            if example.taught:
                teacher.place(told_row, told)
                taught += range(targets, targets + layout.answer)
            targets += layout.answer
        return Batch(student.packed(), teacher.packed(), torch.tensor(taught, dtype=torch.long))

    def loader(self, start: int, workers: int) -> DataLoader[Batch]:
        """The batches from step `start` on, made ahead by `workers` processes (0: by this one, when asked for)."""
        steps = range(start, 10**7)
        if not workers:
            return DataLoader(self, batch_size=None, sampler=steps)
        context = "fork"  # The mixture's index is shared, not copied.
        return DataLoader(self, batch_size=None, sampler=steps, num_workers=workers, multiprocessing_context=context)
