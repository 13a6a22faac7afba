"""Where the tokens of a batch lie, who sees whom, and where the tokens to copy are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from builtin_training.example import Example, Goal

GROUP_SIZE = 8
"""Contexts that are padded to a common length."""

FLAT_STEP, ROW_STEP, MEMORY_STEP = 512, 16, 64
"""Sizes are rounded up to multiples of these: on a CPU the matrix library compiles and keeps a kernel per shape."""


@dataclass(frozen=True, slots=True)
class Goals:
    """rows [P]: queries among the padded rows; keys [P, K]: whether each key is one that the query should find."""

    rows: Tensor
    keys: Tensor

    def to(self, device: str | torch.device) -> Goals:
        """The same goals on `device`."""
        return Goals(self.rows.to(device), self.keys.to(device))


GoalsByKind = Mapping[str, Goals]


@dataclass(frozen=True, slots=True)
class ContextGroup:
    """Contexts of similar length, padded to the longest (C tokens) and to the largest memory (S tokens).

    index [contexts, C] and memory_index [contexts, S], int64 into the flat batch, padded with 0; mask
    [contexts, C, S + C]: additive, -inf where hidden, with the biases of eq. 1 in it.
    """

    index: Tensor
    memory_index: Tensor
    mask: Tensor
    goals: GoalsByKind


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the tokens of one flat batch of T tokens lie.

    unit_index [units, U]: int64 into the flat batch, padded at the end with 0; unit_mask [U, U]: additive causal mask.
    unpad_index [T]: for each flat token its place among the padded rows of the units, then of the groups.
    """

    unit_index: Tensor
    unit_mask: Tensor
    unit_goals: GoalsByKind
    groups: tuple[ContextGroup, ...]
    unpad_index: Tensor

    def to(self, device: str | torch.device, dtype: torch.dtype) -> Layout:
        """The same layout on `device`, masks in `dtype`."""
        groups = tuple(
            ContextGroup(
                group.index.to(device),
                group.memory_index.to(device),
                group.mask.to(device, dtype),
                {kind: goals.to(device) for kind, goals in group.goals.items()},
            )
            for group in self.groups
        )
        return Layout(
            self.unit_index.to(device),
            self.unit_mask.to(device, dtype),
            {kind: goals.to(device) for kind, goals in self.unit_goals.items()},
            groups,
            self.unpad_index.to(device),
        )


def merge_biases(weights: Sequence[float]) -> tuple[list[float], float]:
    """(log w_i for each unit's logits, log(1 + sum w) for the context's): eq. 1, folded."""
    return [math.log(weight) for weight in weights], math.log1p(sum(weights))


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step


def build_layout(
    examples: Sequence[Example], places: dict[tuple[int, ...], int], starts: Sequence[int], flat_length: int
) -> Layout:
    """The layout of a flat batch of `flat_length` tokens: units at `places`, the examples' contexts at `starts`."""
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
    goals_of = {
        unit: goals for example in examples for unit, goals in zip(example.units, example.unit_goals, strict=False)
    }
    unit_goals = _goals([goals_of.get(unit, ()) for unit in places], width, width)
    return Layout(torch.from_numpy(unit_index), unit_mask, unit_goals, tuple(groups), torch.from_numpy(unpad))


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
    return ContextGroup(
        torch.from_numpy(index),
        torch.from_numpy(memory_index),
        torch.from_numpy(mask),
        _goals([_visible_goals(example, memory_length) for example in examples], length, memory_length + length),
    )


def _visible_goals(example: Example, memory_length: int) -> list[Goal]:
    """The goals of a context over its keys, which are those of memory, then its own."""
    own = [Goal(goal.kind, goal.query, tuple(memory_length + key for key in goal.keys)) for goal in example.goals]
    return [*example.copies, *own]


def _goals(goals_of_rows: Sequence[Sequence[Goal]], length: int, num_keys: int) -> GoalsByKind:
    """Goals of padded rows of `length` queries over `num_keys` keys."""
    found: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    for row, goals in enumerate(goals_of_rows):
        for goal in goals:
            found.setdefault(goal.kind, []).append((row * length + goal.query, goal.keys))
    result = {}
    for kind, pairs in found.items():
        keys = np.zeros((len(pairs), num_keys), bool)
        for number, (_, places) in enumerate(pairs):
            keys[number, list(places)] = True
        result[kind] = Goals(torch.tensor([query for query, _ in pairs]), torch.from_numpy(keys))
    return result


def _mask(example: Example, length: int, memory_length: int) -> np.ndarray:
    """Additive mask [length, memory_length + length] of one context: visible units with log w, causal context with
    log(1 + sum w), both by the query's view; rows of padding see the context only.
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
