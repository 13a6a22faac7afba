"""Choosing the next token of every row in two kernels, for GPUs; `sampler` is what it must equal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from ewe_kernels.sampling import penalise, sample_tokens
from torch import Tensor

from ewe.attention.packed import to_device
from ewe.engine.device import launching_on
from ewe.engine.philox import first_uniforms
from ewe.engine.sampler import Drawing, SamplingRow, Token

_CHANGED_BY = ("rows", "tokens", "counts", "biases", "repetition", "presence", "frequency")
_DRAWN_BY = ("temperatures", "top_ks", "top_ps", "min_ps", "points")
_PER_ROW = (*_DRAWN_BY, "repetition", "presence", "frequency")


def sample_fused(logits: Tensor, rows: Sequence[SamplingRow], with_entropy: bool) -> Drawing:
    """As `sampler.sample`, in whose words the arguments are described."""
    pairs = [(number, *pair) for number, row in enumerate(rows) for pair in _pairs(row)]
    tensors = to_device({**_parameters(rows), **_columns(pairs)}, logits.device)
    # Log-probabilities are those of the untouched logits.
    adjusted = logits.clone() if pairs or any(row.allowed is not None for row in rows) else logits
    if pairs:
        with launching_on(logits.device):
            penalise(adjusted, *(tensors[name] for name in _CHANGED_BY))
    for number, row in enumerate(rows):
        if row.allowed is not None:
            forbidden = torch.from_numpy(~row.allowed)
            if logits.is_cuda:
                forbidden = forbidden.pin_memory().to(logits.device, non_blocking=True)
            adjusted[number].masked_fill_(forbidden, -math.inf)
    with launching_on(logits.device):
        ids, logprobs = sample_tokens(logits, adjusted, *(tensors[name] for name in _DRAWN_BY))
    fetched = _Fetched(ids, logprobs, _entropies(logits) if with_entropy else None, *_top(logits, rows))
    return Drawing(ids, partial(_tokens, fetched, [row.params.logprobs or 0 for row in rows]))


def _parameters(rows: Sequence[SamplingRow]) -> dict[str, np.ndarray]:
    """Per row what the kernels ask for, by name."""
    table = [
        (
            row.temperature,
            max(row.params.top_k, 0),
            row.params.top_p,
            row.params.min_p,
            point,
            row.params.repetition_penalty,
            row.params.presence_penalty,
            row.params.frequency_penalty,
        )
        for row, point in zip(rows, _points(rows), strict=True)
    ]
    columns = np.array(table, np.float32).T
    arrays = {name: np.ascontiguousarray(column) for name, column in zip(_PER_ROW, columns, strict=True)}
    return {**arrays, "top_ks": np.array([line[1] for line in table], np.int32)}


def _points(rows: Sequence[SamplingRow]) -> list[float]:
    """`sampler.uniform` of every row that draws, 0 for the others."""
    points = np.zeros(len(rows))
    drawn = [number for number, row in enumerate(rows) if row.temperature]
    if drawn:
        streams = [rows[number].random_stream for number in drawn]
        keys, counters = (np.array(part, np.uint64) for part in zip(*streams, strict=True))
        points[drawn] = first_uniforms(keys, counters)
    return points.tolist()


def _pairs(row: SamplingRow) -> list[tuple[int, int, float]]:
    """The row's tokens whose logits change: (token, count in the output or -1 if it is nowhere, bias)."""
    params = row.params
    counts: dict[int, int] = {}
    if params.repetition_penalty != 1:
        counts = dict.fromkeys(row.prompt_ids, 0)
    if params.repetition_penalty != 1 or params.presence_penalty or params.frequency_penalty:
        counts |= Counter(row.output_ids)
    biases = {**params.logit_bias, **dict.fromkeys(row.banned, -math.inf)}
    return [(token, counts.get(token, -1), biases.get(token, 0.0)) for token in {**counts, **biases}]


def _columns(pairs: Sequence[tuple[int, int, int, float]]) -> dict[str, np.ndarray]:
    rows, tokens, counts, biases = zip(*pairs, strict=True) if pairs else ((), (), (), ())
    return {
        "rows": np.array(rows, np.int32),
        "tokens": np.array(tokens, np.int32),
        "counts": np.array(counts, np.int32),
        "biases": np.array(biases, np.float32),
    }


def _entropies(logits: Tensor) -> Tensor:
    entropies: Tensor = torch.special.entr(torch.softmax(logits, -1)).sum(-1)
    return entropies


def _top(logits: Tensor, rows: Sequence[SamplingRow]) -> tuple[Tensor | None, Tensor | None]:
    """Log-probabilities and ids [rows, n] of the likeliest tokens, as many as any row asks for, if one does."""
    most = min(max(row.params.logprobs or 0 for row in rows), logits.shape[1])
    if not most:
        return None, None
    values, ids = torch.log_softmax(logits, -1).topk(most)
    return values, ids


class _Fetched:
    """Copies of tensors on their way to the host."""

    def __init__(self, first: Tensor, *others: Tensor | None) -> None:
        self._copies = [None if item is None else item.to("cpu", non_blocking=True) for item in (first, *others)]
        self._arrived = torch.cuda.Event() if first.is_cuda else None  # type: ignore[no-untyped-call]
        if self._arrived is not None:
            self._arrived.record()

    def lists(self) -> list[Any]:
        """Their numbers, once they have arrived."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return [None if copy is None else copy.tolist() for copy in self._copies]


def _tokens(fetched: _Fetched, counts: Sequence[int]) -> list[Token]:
    """The tokens of all rows; counts: how many of the likeliest ones each row asks for."""
    found, logprobs, entropies, values, ids = fetched.lists()
    return [
        Token(
            token,
            logprobs[row],
            entropies[row] if entropies else 0.0,
            dict(zip(ids[row][:count], values[row][:count], strict=True)) if count else None,
        )
        for row, (token, count) in enumerate(zip(found, counts, strict=True))
    ]
