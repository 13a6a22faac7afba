"""A pass that has been launched: whose next tokens it draws, and how they come home."""

from __future__ import annotations

import time
from collections.abc import Sequence as Batch
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from ewe.attention.metadata import TokenOnDevice
from ewe.attention.packed import to_device
from ewe.engine.sampler import sample
from ewe.engine.sampling_rows import Drawing, PlaceholderToken, SamplingRow, Token
from ewe.engine.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Writer:
    """A sequence whose next token is drawn from row `position` of a pass's logits; shares: of attention, per unit."""

    sequence: Sequence
    position: int
    shares: npt.NDArray | None  # type: ignore[type-arg]


class Processor(Protocol):
    """What may replace distributions between a pass and the draw of its tokens; draws then wait for one another."""

    def __call__(
        self, logits: torch.Tensor, sequences: Batch[Sequence], rows: Batch[SamplingRow]
    ) -> tuple[torch.Tensor, Batch[SamplingRow]]:
        """New logits float32 [rows, vocab] and rows for the sampler, in the same order."""
        ...


@dataclass(slots=True, eq=False)
class InflightBatch:
    """One pass on its way. busy: the sequences that it works for; drawing: None if it draws no tokens."""

    busy: list[Sequence]
    drawing: Drawing | None = None
    launched: float = field(default_factory=time.monotonic)
    may_be_followed: bool = False
    _drawn: list[tuple[Sequence, PlaceholderToken, dict[str, float] | None]] = field(default_factory=list)

    def draw(
        self,
        logits: torch.Tensor,
        writers: Batch[Writer],
        rows: Batch[SamplingRow],
        with_entropy: bool,
        processor: Processor | None = None,
    ) -> None:
        """Draws a token for every writer; its sequence has an placeholder token from now on.

        logits: float32 [positions, vocab]. The pass may be followed by another before its tokens are read unless a
        sequence's next draw depends on what they are.
        processor: has the last word on what is drawn from.
        """
        positions = np.array([writer.position for writer in writers], np.int64)
        if not np.array_equal(positions, np.arange(len(logits))):
            logits = logits.index_select(0, to_device({"positions": positions}, logits.device)["positions"])
        if processor is not None:
            logits, rows = processor(logits, [writer.sequence for writer in writers], rows)
        self.drawing = sample(logits, rows, with_entropy)
        self.may_be_followed = processor is None and not any(
            row.looks_back or writer.sequence.feedback.hot_sentence is not None
            for row, writer in zip(rows, writers, strict=True)
        )
        for index, writer in enumerate(writers):
            token = PlaceholderToken(TokenOnDevice(self.drawing.ids, index))
            writer.sequence.schedule.placeholder = token
            self._drawn.append((writer.sequence, token, _by_passage(writer)))

    def read(self) -> list[tuple[Sequence, Token]]:
        """Waits for the tokens; those of texts that have ended or gone another way are left out."""
        if self.drawing is None:
            return []
        tokens = self.drawing.read()
        taken = []
        for (sequence, placeholder, attention), token in zip(self._drawn, tokens, strict=True):
            if sequence.schedule.placeholder is placeholder:
                sequence.schedule.placeholder = None
            if not placeholder.is_void and not sequence.is_finished:
                taken.append((sequence, token if attention is None else replace(token, attention=attention)))
        return taken


def _by_passage(writer: Writer) -> dict[str, float] | None:
    """The shares of attention by passage, of the memory that the pass ran under."""
    if writer.shares is None:
        return None
    total: dict[str, float] = {}
    for unit, share in zip(writer.sequence.memory.units, writer.shares.tolist(), strict=False):
        total[unit.passage.id] = total.get(unit.passage.id, 0.0) + share
    return total
