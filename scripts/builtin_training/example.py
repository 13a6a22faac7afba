"""Examples: lessons in tokens, with what each token sees and what is to be learned of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class View:
    """The units that are in memory at one time (indices into Example.units) and their weights."""

    units: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A stated value: context tokens [start, end), its fact type, whether a visible unit holds it, and whether the text
    before it leaves only this one true value (of a person's two works either may come first).
    """

    start: int
    end: int
    kind: str
    copied: bool
    determined: bool = True


@dataclass(frozen=True, slots=True)
class Goal:
    """Where the attention of one query should go: indices of tokens; kind is "subject", "companion" or "copy"."""

    kind: str
    query: int
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """One lesson in tokens.

    context: BOS, prompt, answer, EOS. answer_start: index of the answer's first token. view_of[c]: which of `views`
    the query at context token c uses.

    Goals (see `guidance`): goals, of context queries among the context, copies, among the tokens of all units laid end
    to end; unit_goals, per unit, of its tokens among its tokens (borrowed units have none).
    """

    units: tuple[tuple[int, ...], ...]
    context: tuple[int, ...]
    answer_start: int
    views: tuple[View, ...]
    view_of: tuple[int, ...]
    spans: tuple[Span, ...] = ()
    goals: tuple[Goal, ...] = ()
    copies: tuple[Goal, ...] = ()
    unit_goals: tuple[tuple[Goal, ...], ...] = ()

    @property
    def num_tokens(self) -> int:
        """Tokens of its context and of all its units."""
        return len(self.context) + sum(map(len, self.units))


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
        result.append(replace(example, units=units, views=views))
    return result
