"""Where attention should go: to the token that is to be copied, to the name of the person who is spoken of, and to what
else the sentence has said of that person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from builtin_training.example import Goal
from ewe.evaluation.world.people import Fact

BEHIND = 4
"""Tokens, beginning with the last one that a value's owner or companion is known at, that may hold the value."""

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text states a fact: tokens [start, end) of its sentence number `sentence`."""

    fact: Fact
    start: int
    end: int
    sentence: int

    @property
    def tokens(self) -> range:
        """Indices of the value's tokens."""
        return range(self.start, self.end)


@dataclass(frozen=True)
class Guidance:
    """Finds goals; `spell` gives the tokens of a name as they stand within a text."""

    spell: Callable[[str], Tokens]

    def of_unit(self, unit: Tokens, places: Sequence[Place]) -> tuple[Goal, ...]:
        """For each token of a value: the last name before it of whom it is said, and the values beside it so far."""
        return tuple(
            Goal(kind, token, keys)
            for place in places
            for kind, keys in self._known(unit, places, place).items()
            for token in place.tokens
            if keys
        )

    def of_context(self, context: Tokens, places: Sequence[Place]) -> tuple[Goal, ...]:
        """The same for the queries that write values: those of the tokens before theirs."""
        return tuple(
            Goal(kind, token - 1, keys)
            for place in places
            for kind, keys in self._known(context, places, place).items()
            for token in place.tokens
            if keys
        )

    def copies(
        self,
        context: Tokens,
        places: Sequence[Place],
        place: Place,
        visible: Sequence[tuple[int, Tokens, Sequence[Place]]],
    ) -> tuple[Goal, ...]:
        """For the query of each token of the value at `place`: where the visible units (index in memory's flat row,
        tokens, places) hold it.

        A unit's value that stands before the name, or before a companion that the answer has named already, cannot know
        yet whose it is: its first token is to be found behind them, and so are the next as long as another value in
        sight begins in the same way.
        """
        value = context[place.start : place.end]
        companions = [other.fact for other in _companions(places, place)]
        seen = {unit[source.start : source.end] for _, unit, stated in visible for source in stated}
        ambiguous = max((_common_prefix(value, other) for other in seen - {value}), default=0)
        found: list[list[int]] = [[] for _ in value]
        for offset, unit, stated in visible:
            for source in stated:
                if source.fact != place.fact or unit[source.start : source.end] != value:
                    continue
                late = self._known_late(unit, stated, source, companions)
                behind = range(offset + late, offset + min(late + BEHIND, len(unit)))
                for step, keys in enumerate(found):
                    keys += behind if late and step <= ambiguous else [offset + source.start + step]
        return tuple(Goal("copy", place.start + step - 1, tuple(keys)) for step, keys in enumerate(found) if keys)

    def _known(self, tokens: Tokens, places: Sequence[Place], place: Place) -> dict[str, Tokens]:
        companions = (token for other in _companions(places, place) for token in other.tokens)
        return {"subject": self._name_before(tokens, place), "companion": tuple(companions)}

    def _known_late(self, unit: Tokens, stated: Sequence[Place], source: Place, companions: Sequence[Fact]) -> int:
        """The token behind the value at which name and companions are first all known; 0 if they stand before it."""
        ends = [
            other.end - 1
            for other in stated
            if other.sentence == source.sentence and other.fact in companions and other.start > source.start
        ]
        if not self._name_before(unit, source):
            ends += [name.stop - 1 for name in self._mentions(unit, source.fact.subject) if name.start > source.start][
                :1
            ]
        return max(ends, default=0)

    def _name_before(self, tokens: Tokens, place: Place) -> Tokens:
        """Indices of the last full name of the value's person that ends before the value; empty without one."""
        before = [name for name in self._mentions(tokens, place.fact.subject) if name.stop <= place.start]
        return tuple(before[-1]) if before else ()

    def _mentions(self, tokens: Tokens, name: str) -> list[range]:
        spelt = self.spell(name)
        starts = range(len(tokens) - len(spelt) + 1)
        return [
            range(i, i + len(spelt)) for i in starts if tokens[i] == spelt[0] and tokens[i : i + len(spelt)] == spelt
        ]


def _companions(places: Sequence[Place], place: Place) -> list[Place]:
    """What the same sentence says of the same person before the value."""
    return [
        other
        for other in places
        if other.sentence == place.sentence and other.fact.subject == place.fact.subject and other.end <= place.start
    ]


def _common_prefix(first: Tokens, second: Tokens) -> int:
    """How many tokens both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
