"""From examples to one flat batch without padding in the linear layers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from builtin_training.example import Example, Span
from builtin_training.layout import FLAT_STEP, Layout, build_layout

EMPHASIS = {"birth_place": 1.5, "work": 8.0, "work_year": 2.0, "prize": 8.0, "prize_year": 2.0}
"""Factors on the loss of fact types that are learned late: a person has two works, two prizes and two towns, and few
sentences say which work or prize is meant before they name it."""


@dataclass(frozen=True, slots=True)
class LossWeights:
    """Weights of the next-token loss, 1 for an answer's other tokens.

    unit: tokens of units (a third of them, drawn at random); value: values that memory holds and the text before them
    determines; unknown: values that memory lacks, which can only be guessed.
    """

    unit: float = 0.1
    value: float = 4.0
    unknown: float = 0.25

    def of(self, span: Span | None) -> float:
        """The weight of an answer's token that belongs to `span`."""
        if span is None:
            return 1.0
        if not span.copied:
            return self.unknown
        return self.value * EMPHASIS.get(span.kind, 1.0) if span.determined else 1.0


@dataclass(frozen=True, slots=True)
class Batch:
    """A flat batch of T tokens, padding at its end; ids and positions [1, T].

    predict [P]: flat indices of the tokens whose successor is learned; targets [P]: those successors; weights [P]:
    their share in the loss; is_value [P]: whether they belong to a copied value.
    """

    input_ids: Tensor
    position_ids: Tensor
    layout: Layout
    predict: Tensor
    targets: Tensor
    weights: Tensor
    is_value: Tensor
    num_contexts: int = field(default=0)


def collate(examples: Sequence[Example], unit_tokens: int, rng: random.Random, losses: LossWeights) -> Batch:
    """Packs examples; equal units are encoded once and shared. Contexts start at position `unit_tokens`."""
    places: dict[tuple[int, ...], int] = {}
    ids: list[int] = []
    positions: list[int] = []
    for unit in (unit for example in examples for unit in example.units):
        if unit not in places:
            places[unit] = len(ids)
            ids.extend(unit)
            positions.extend(range(len(unit)))
    starts = []
    for example in examples:
        starts.append(len(ids))
        ids.extend(example.context)
        positions.extend(range(unit_tokens, unit_tokens + len(example.context)))
    padding = -len(ids) % FLAT_STEP
    layout = build_layout(examples, places, starts, len(ids) + padding)
    predict, targets, weights, is_value = _targets(examples, places, starts, rng, losses)
    return Batch(
        torch.tensor([ids + [0] * padding]),
        torch.tensor([positions + [0] * padding]),
        layout,
        torch.tensor(predict),
        torch.tensor(targets),
        torch.tensor(weights, dtype=torch.float32),
        torch.tensor(is_value, dtype=torch.bool),
        len(examples),
    )


def _targets(
    examples: Sequence[Example],
    places: dict[tuple[int, ...], int],
    starts: Sequence[int],
    rng: random.Random,
    losses: LossWeights,
) -> tuple[list[int], list[int], list[float], list[bool]]:
    predict: list[int] = []
    targets: list[int] = []
    weights: list[float] = []
    is_value: list[bool] = []
    for example, start in zip(examples, starts, strict=True):
        span_of = {token: span for span in example.spans for token in range(span.start, span.end)}
        for token in range(example.answer_start, len(example.context)):
            predict.append(start + token - 1)
            targets.append(example.context[token])
            span = span_of.get(token)
            weights.append(losses.of(span))
            is_value.append(span is not None and span.copied)
    for unit, start in places.items():
        if losses.unit and rng.random() < 1 / 3:
            predict.extend(range(start, start + len(unit) - 1))
            targets.extend(unit[1:])
            weights.extend([losses.unit] * (len(unit) - 1))
            is_value.extend([False] * (len(unit) - 1))
    return predict, targets, weights, is_value
