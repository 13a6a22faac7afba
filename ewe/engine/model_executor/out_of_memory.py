"""Forward passes on a device that runs out of memory: in parts where the whole has no room: no answer is lost."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import torch

from ewe.engine.attention.metadata import ForwardRow
from ewe.engine.model_executor.model_runner import ForwardResult
from ewe.engine.sampling.sampler import SamplingRow
from ewe.errors import DeviceMemoryError

if TYPE_CHECKING:
    from ewe.engine.model_executor.text_attention import TextAttention

_log = logging.getLogger(__name__)
_ADVICE = "lower scheduler.max_num_batched_tokens, cache.memory_gib or cache.gpu_share"


@contextmanager
def memory_for_graphs(budget: str) -> Iterator[None]:
    """Raises DeviceMemoryError, with what to change, if the device runs out of memory inside."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise DeviceMemoryError(
            "there is no memory for the CUDA graphs: lower scheduler.max_num_seqs, cache.memory_gib or "
            f"cache.gpu_share, or set scheduler.cuda_graphs to false. The budget was {budget}"
        ) from error


class Runner(Protocol):
    """What runs forward passes."""

    def forward(self, rows: Sequence[ForwardRow], draws: Sequence[SamplingRow] | None = None) -> ForwardResult:
        """Runs all rows; see ModelRunner."""
        ...

    def text_attention(self, slots: npt.NDArray[np.int64], prompt: int) -> TextAttention:
        """What a text attended to; see ModelRunner."""
        ...

    def close(self) -> None:
        """Frees what it holds on the device; nothing is run from then on."""
        ...


class FrugalRunner:
    """Runs another runner's passes; one for which there is no memory is run in parts, and so are as large ones later.

    budget: how the memory is divided, for the messages. Cutting changes the rounding of results and nothing else, since
    neither rows nor tokens depend on later ones.
    """

    def __init__(self, runner: Runner, budget: str) -> None:
        self._runner = runner
        self._budget = budget
        self._most_tokens = sys.maxsize

    def forward(self, rows: Sequence[ForwardRow], draws: Sequence[SamplingRow] | None = None) -> ForwardResult:
        """Runs all rows; raises DeviceMemoryError if not even single tokens have room."""
        tokens = sum([len(row.token_ids) for row in rows])
        if tokens <= self._most_tokens:
            try:
                return self._runner.forward(rows, draws)
            except torch.OutOfMemoryError as error:
                self._shrink(tokens, error)
        pieces = [piece for number, row in enumerate(rows) for piece in _cut(number, row, self._most_tokens)]
        results = []
        for part in _packed(pieces, self._most_tokens):
            owners = [number for number, _ in part]
            results.append((owners, self.forward([row for _, row in part])))
        return _joined(len(rows), results)

    def text_attention(self, slots: npt.NDArray[np.int64], prompt: int) -> TextAttention:
        """As the runner's own."""
        return self._runner.text_attention(slots, prompt)

    def close(self) -> None:
        """As the runner's own."""
        self._runner.close()

    def _shrink(self, tokens: int, error: torch.OutOfMemoryError) -> None:
        """Takes note that so many tokens are too many; raises DeviceMemoryError if there is nothing left to cut."""
        if tokens == 1:
            raise DeviceMemoryError(
                f"the device has no memory left for one token: {_ADVICE}. The budget was {self._budget}"
            ) from error
        self._most_tokens = tokens // 2
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        _log.warning(
            "out of memory in a pass of %d tokens; passes hold at most %d from now on. To avoid it, %s. The budget was "
            "%s",
            *(tokens, self._most_tokens, _ADVICE, self._budget),
        )


def _cut(number: int, row: ForwardRow, most: int) -> Iterator[tuple[int, ForwardRow]]:
    """A row as rows of at most `most` tokens, each with the row's number."""
    count = len(row.token_ids)
    if count <= most:
        yield number, row
        return
    before = len(row.context_slots) - count
    for begin in range(0, count, most):
        end = min(begin + most, count)
        yield (
            number,
            replace(
                row,
                token_ids=row.token_ids[begin:end],
                start_position=row.start_position + begin,
                context_slots=row.context_slots[: before + end],
                wants_logits=row.wants_logits and end == count,
            ),
        )


def _packed(pieces: Sequence[tuple[int, ForwardRow]], most: int) -> Iterator[list[tuple[int, ForwardRow]]]:
    """The pieces in order, as many at a time as hold at most `most` tokens.

    Pieces of one row never share a pass: all but its last hold `most`.
    """
    part: list[tuple[int, ForwardRow]] = []
    for number, row in pieces:
        tokens = sum(len(item.token_ids) for _, item in part) + len(row.token_ids)
        if part and tokens > most:
            yield part
            part = []
        part.append((number, row))
    yield part


def _joined(num_rows: int, results: Sequence[tuple[list[int], ForwardResult]]) -> ForwardResult:
    """One result of several passes; results[i]: the rows that pass i held, and what it yielded.

    A row's shares of attention are those of its last piece, which is the one whose logits are looked at.
    """
    logits = torch.cat([result.logits for _, result in results])
    attention: list[np.ndarray | None] = [None] * num_rows
    for owners, result in results:
        for number, shares in zip(owners, result.attention, strict=True):
            attention[number] = shares
    return ForwardResult(logits, attention)
