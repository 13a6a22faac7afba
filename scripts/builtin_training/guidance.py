"""Where attention should go: to the token that is to be copied, and to the name of the person who is spoken of.

Owns: how these goals are found in a lesson's tokens. Knows `example`, facts and their places; no attention, no loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from builtin_training.example import Goal, Span
from ewe.world.people import Fact

AFTER_NAME = 4
"""Tokens of a unit, the name's last one first, that may hold a value that stands before the name."""

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text states a fact: tokens [start, end)."""

    fact: Fact
    start: int
    end: int


@dataclass(frozen=True)
class Guidance:
    """Finds goals; `spell` gives the tokens of a name as they stand within a text."""

    spell: Callable[[str], Tokens]

    def of_unit(self, unit: Tokens, places: Sequence[Place]) -> tuple[Goal, ...]:
        """For each token of a value: the full name before it of whom the unit says it."""
        return tuple(
            Goal(token, name)
            for place in places
            if (name := self._name_before(unit, place.fact.subject, place.start))
            for token in range(place.start, min(place.end, len(unit)))
        )

    def subjects(self, context: Tokens, stated: Sequence[tuple[Span, Fact]]) -> tuple[Goal, ...]:
        """For the query of each token of a value in the context: the last full name before it of whom it is said."""
        return tuple(
            Goal(token - 1, name)
            for span, fact in stated
            if (name := self._name_before(context, fact.subject, span.start))
            for token in range(span.start, span.end)
        )

    def copies(
        self, context: Tokens, span: Span, fact: Fact, visible: Sequence[tuple[int, Tokens, Sequence[Place]]]
    ) -> tuple[Goal, ...]:
        """For the query of each token of a copied value: where the visible units (index in memory's flat row, tokens,
        places) hold it. A value that stands before its person's name cannot know yet whose it is: its first token is to
        be found behind the name.
        """
        value = context[span.start : span.end]
        found: list[list[int]] = [[] for _ in value]
        for offset, unit, places in visible:
            for place in places:
                if place.fact != fact or unit[place.start : place.start + len(value)] != value:
                    continue
                firsts = [place.start]
                if not self._name_before(unit, fact.subject, place.start):
                    firsts = self._behind_name(unit, fact.subject, place.start)
                found[0] += [offset + token for token in firsts]
                for step in range(1, len(value)):
                    found[step].append(offset + place.start + step)
        return tuple(Goal(span.start + step - 1, tuple(keys)) for step, keys in enumerate(found) if keys)

    def _name_before(self, tokens: Tokens, name: str, end: int) -> Tokens:
        """Indices of the last mention of the name that ends at or before `end`; empty without one."""
        spelt = self.spell(name)
        for start in range(end - len(spelt), -1, -1):
            if tokens[start : start + len(spelt)] == spelt:
                return tuple(range(start, start + len(spelt)))
        return ()

    def _behind_name(self, tokens: Tokens, name: str, start: int) -> list[int]:
        spelt = self.spell(name)
        for first in range(start, len(tokens) - len(spelt) + 1):
            if tokens[first : first + len(spelt)] == spelt:
                last = first + len(spelt) - 1
                return list(range(last, min(last + AFTER_NAME, len(tokens))))
        return []
