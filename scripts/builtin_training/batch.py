"""From examples (token ids, visibility, what to learn) to one flat batch without padding in the linear layers.

Owns: `Example`, `Batch`, and how visibility and weights become indices and additive masks. Knows nothing of text.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from builtin_training.attention import ContextGroup, Layout, merge_biases

EMPHASIS = {"occupation": 4.0, "teacher": 2.0}
"""Factors on the loss of fact types that are learned late: their values occur with no other type."""

GROUP_SIZE = 8
"""Contexts that are padded to a common length."""

FLAT_STEP, ROW_STEP, MEMORY_STEP = 512, 16, 64
"""Sizes are rounded up to multiples of these: on a CPU the matrix library compiles and keeps a kernel per shape."""


@dataclass(frozen=True, slots=True)
class View:
    """The units that are in memory at one time (indices into Example.units) and their weights."""

    units: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A stated value: context tokens [start, end), its fact type, whether a visible unit holds it, and whether the text
    before it leaves only this one true value (of a person's two works either may come first).

    sources: the (unit, first token) places where visible units state it in the same tokens.
    """

    start: int
    end: int
    kind: str
    copied: bool
    determined: bool = True
    sources: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """One lesson in tokens.

    context: BOS, prompt, answer, EOS. answer_start: index of the answer's first token. view_of[c]: which of `views`
    the query at context token c uses.
    """

    units: tuple[tuple[int, ...], ...]
    context: tuple[int, ...]
    answer_start: int
    views: tuple[View, ...]
    view_of: tuple[int, ...]
    spans: tuple[Span, ...] = ()

    @property
    def num_tokens(self) -> int:
        """Tokens of its context and of all its units."""
        return len(self.context) + sum(map(len, self.units))


@dataclass(frozen=True, slots=True)
class LossWeights:
    """Weights of the next-token loss, 1 for an answer's other tokens.

    unit: tokens of units (a third of them, drawn at random); value: values that memory holds; unknown: values that it
    lacks, which can only be guessed.
    """

    unit: float = 0.1
    value: float = 4.0
    unknown: float = 0.25

    def of(self, span: Span | None) -> float:
        """The weight of an answer's token that belongs to `span`."""
        if span is None:
            return 1.0
        return self.value * EMPHASIS.get(span.kind, 1.0) if span.copied else self.unknown


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


def add_distractors(examples: Sequence[Example], rng: random.Random, max_units: int, share: float) -> list[Example]:
    """With probability `share` each, examples get units of others in the batch until up to `max_units` are visible.

    Units are taken by reference, so the batch still encodes each only once.
    """
    pool = [unit for example in examples for unit in example.units]
    result = []
    for example in examples:
        room = max_units - max((len(view.units) for view in example.views), default=0)
        own = set(example.units)
        others = [unit for unit in rng.sample(pool, min(len(pool), 2 * max_units)) if unit not in own]
        extra = others[: rng.randint(0, max(room, 0))] if rng.random() < share else []
        if not extra:
            result.append(example)
            continue
        indices = tuple(range(len(example.units), len(example.units) + len(extra)))
        views = tuple(View(view.units + indices, view.weights + (1.0,) * len(extra)) for view in example.views)
        units = example.units + tuple(extra)
        result.append(Example(units, example.context, example.answer_start, views, example.view_of, example.spans))
    return result


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
    layout = _layout(examples, places, starts, len(ids) + padding)
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


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step


def _layout(
    examples: Sequence[Example], places: dict[tuple[int, ...], int], starts: Sequence[int], flat_length: int
) -> Layout:
    width = _round_up(max(map(len, places), default=0), ROW_STEP)
    unit_index = np.zeros((_round_up(len(places), ROW_STEP), width), np.int64)
    unpad = np.zeros(flat_length, np.int64)
    for row, (unit, start) in enumerate(places.items()):
        unit_index[row, : len(unit)] = np.arange(start, start + len(unit))
        unpad[start : start + len(unit)] = row * width + np.arange(len(unit))
    by_length = sorted(range(len(examples)), key=lambda row: len(examples[row].context))
    groups, offset = [], unit_index.size
    for first in range(0, len(by_length), GROUP_SIZE):
        members = by_length[first : first + GROUP_SIZE]
        length = _round_up(max(len(examples[member].context) for member in members), ROW_STEP)
        for row, member in enumerate(members):
            used = len(examples[member].context)
            unpad[starts[member] : starts[member] + used] = offset + row * length + np.arange(used)
        groups.append(_group([examples[m] for m in members], [starts[m] for m in members], places, length))
        offset += len(members) * length
    unit_mask = torch.full((width, width), -torch.inf).triu(1)
    return Layout(torch.from_numpy(unit_index), unit_mask, tuple(groups), torch.from_numpy(unpad))


def _group(
    examples: Sequence[Example], starts: Sequence[int], places: dict[tuple[int, ...], int], length: int
) -> ContextGroup:
    memory_length = _round_up(max(sum(map(len, example.units)) for example in examples), MEMORY_STEP)
    index = np.zeros((len(examples), length), np.int64)
    memory_index = np.zeros((len(examples), memory_length), np.int64)
    mask = np.full((len(examples), length, memory_length + length), -np.inf, np.float32)
    for row, (example, start) in enumerate(zip(examples, starts, strict=True)):
        index[row, : len(example.context)] = np.arange(start, start + len(example.context))
        memory = [np.arange(places[unit], places[unit] + len(unit)) for unit in example.units]
        flat = np.concatenate([*memory, np.zeros(0, np.int64)])
        memory_index[row, : len(flat)] = flat
        mask[row] = _mask(example, length, memory_length)
    rows, sources = _pointers(examples, length, memory_length)
    return ContextGroup(
        torch.from_numpy(index),
        torch.from_numpy(memory_index),
        torch.from_numpy(mask),
        torch.tensor(rows, dtype=torch.int64),
        torch.from_numpy(sources),
    )


def _pointers(examples: Sequence[Example], length: int, memory_length: int) -> tuple[list[int], np.ndarray]:
    """For each token of a copied value: its query's place among the group's padded rows, and which keys hold it."""
    rows: list[int] = []
    keys: list[list[int]] = []
    for row, example in enumerate(examples):
        ends = np.cumsum([0, *map(len, example.units)])
        for span in example.spans:
            for token in range(span.start, span.end) if span.sources else ():
                rows.append(row * length + token - 1)
                keys.append([int(ends[unit]) + first + token - span.start for unit, first in span.sources])
    sources = np.zeros((len(rows), memory_length + length), bool)
    for number, places in enumerate(keys):
        sources[number, places] = True
    return rows, sources


def _mask(example: Example, length: int, memory_length: int) -> np.ndarray:
    """Additive mask [length, memory_length + length] of one context: visible units with log w, causal context with
    log(1 + sum w), both by the query's view (design 2.1); rows of padding see the context only.
    """
    ends = np.cumsum([0, *map(len, example.units)])
    memory = np.full((len(example.views), memory_length), -np.inf, np.float32)
    context = np.zeros(len(example.views), np.float32)
    for index, view in enumerate(example.views):
        logs, context[index] = merge_biases(view.weights)
        for unit, log_weight in zip(view.units, logs, strict=True):
            memory[index, ends[unit] : ends[unit + 1]] = log_weight
    view_of = np.array(example.view_of)
    used = len(example.context)
    causal = np.where(np.tri(length, dtype=bool), np.float32(0), np.float32(-np.inf))
    causal[:used] += context[view_of][:, None]
    visible = np.full((length, memory_length), -np.inf, np.float32)
    visible[:used] = memory[view_of]
    return np.concatenate([visible, causal], 1)


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
