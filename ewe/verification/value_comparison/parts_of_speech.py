"""What the words of a sentence do in it: values, relation words, small words, marks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ewe.text.english import FUNCTION_WORDS, stem
from ewe.verification.value_comparison.values import Name, Value


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


_ORIGIN = re.compile(r"(?:ish|ese|ian|ean|ican|rman|nch|tch|iss|reek|lsh|aeli|aqi|stani)$")
_HAVE = stem("have")


def settle(items: list[Item]) -> list[Item]:
    """Items whose part in the sentence shows only with what follows them: modifiers, and nouns of a complement."""
    settled: list[Item] = []
    complement = False
    for index, item in enumerate(items):
        behind = items[index + 1] if index + 1 < len(items) else None
        ahead = items[index - 1] if index else None
        if item.kind is ItemKind.DETERMINER:
            complement = _opens_complement(item, settled)
        elif item.kind not in (ItemKind.WORD, ItemKind.RELATION, ItemKind.CONJUNCTION, ItemKind.VALUE):
            complement = False
        if complement and item.kind is ItemKind.RELATION and not _governs(items[index + 1 : index + 3]):
            item = replace(item, kind=ItemKind.WORD, relations=frozenset())
        elif item.name is not None and item.explicit and ahead is not None and behind is not None:
            indefinite = ahead.norm in ("a", "an") and behind.kind in (ItemKind.WORD, ItemKind.RELATION)
            described = ahead.kind in (ItemKind.DETERMINER, ItemKind.WORD) and behind.kind is ItemKind.WORD
            plain = behind.norm not in FUNCTION_WORDS and not item.owner
            item = replace(item, modifier=(indefinite or described) and plain)
        elif item.kind is ItemKind.AUXILIARY and item.stem == _HAVE and _is_main_verb(items[index + 1 :]):
            item = replace(item, kind=ItemKind.RELATION, relations=frozenset({"have"}))
        if item.name is not None and ahead is not None and ahead.kind is ItemKind.COPULA and _is_adjective(item.name):
            item = replace(item, modifier=True)
        settled.append(item)
    return settled


def _is_adjective(name: Name) -> bool:
    """Whether a name behind a copula looks like an adjective of origin ("is English")."""
    return len(name.words) == 1 and bool(_ORIGIN.search(name.words[0]))


def _is_main_verb(following: Sequence[Item]) -> bool:
    """Whether no other verb or relation word follows an auxiliary in its clause ("has 1,665 steps")."""
    for item in following:
        if item.kind in (ItemKind.RELATION, ItemKind.COPULA):
            return False
        if item.kind in (ItemKind.MARK, ItemKind.RELATIVE):
            break
    return True


def _opens_complement(article: Item, before: Sequence[Item]) -> bool:
    """Whether an article begins a phrase that says what something is: behind a copula, a mark, or "worked as"."""
    if not before or before[-1].kind is ItemKind.COPULA:
        return bool(before)
    if before[-1].norm == "as":
        return any(item.kind in (ItemKind.RELATION, ItemKind.COPULA) for item in before)
    return article.norm in ("a", "an") and before[-1].kind is not ItemKind.PREPOSITION


def _governs(following: Sequence[Item]) -> bool:
    """Whether a noun goes on to what it relates to ("author of"); else it only says what its subject is."""
    if not following:
        return False
    behind = following[0]
    if behind.norm == "by":  # "a novel by X", but "a sculptor by trade"
        return len(following) > 1 and (following[1].value is not None or following[1].kind is ItemKind.DETERMINER)
    return behind.kind in (ItemKind.RELATION, ItemKind.VALUE) or behind.norm in ("of", "at", "in", "for", "to")
