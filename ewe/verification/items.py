"""What a sentence is made of for the comparison: values, relation words, small words, marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ewe.verification.values import Name, Value


class ItemKind(StrEnum):
    """What an item does in its sentence."""

    VALUE = "value"
    RELATION = "relation"
    COPULA = "copula"
    AUXILIARY = "auxiliary"
    PREPOSITION = "preposition"
    DETERMINER = "determiner"
    CONJUNCTION = "conjunction"
    RELATIVE = "relative"
    NEGATION = "negation"
    MARK = "mark"
    TIME = "time noun"
    WORD = "word"


@dataclass(frozen=True, slots=True)
class Item:
    """One item; start and end are code points of the sentence.

    explicit: False for a value that a pronoun or "the prize" stands for. owner: the value possesses what follows.
    modifier: the value only describes the noun after it ("a Polish botanist"). relations: what a word speaks of.
    """

    kind: ItemKind
    norm: str
    stem: str
    start: int
    end: int
    value: Value | None = None
    explicit: bool = True
    owner: bool = False
    modifier: bool = False
    relations: frozenset[str] = frozenset()

    @property
    def name(self) -> Name | None:
        """The value, if it is a name."""
        return self.value if isinstance(self.value, Name) else None


def is_governed(before: Sequence[Item]) -> bool:
    """Whether the item behind `before` belongs to a preposition: "in Ulm", but not "in later years Einstein"."""
    for item in reversed(before):
        if item.value is not None or item.kind in (ItemKind.MARK, ItemKind.TIME):
            return False
        if item.kind is ItemKind.PREPOSITION:
            return True
    return False
