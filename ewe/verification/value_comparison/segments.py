"""A sentence's items cut into segments: stretches between marks, relative words and clause conjunctions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ewe.verification.value_comparison.parts_of_speech import Item, ItemKind
from ewe.verification.value_comparison.values import Moment, Name

_BREAKS = frozenset(",;:–—()[]")
_LINKING = (ItemKind.COPULA, ItemKind.AUXILIARY)
_CLAUSE_WORDS = (ItemKind.RELATION, ItemKind.COPULA)


@dataclass(slots=True)
class Segment:
    """Items between two clause boundaries.

    opener: the mark, relative word or "and" before them ("" at the beginning). comma: whether a mark came before that.
    """

    opener: str
    items: list[Item]
    comma: bool = False

    @property
    def has_relation(self) -> bool:
        """Whether the segment holds a relation word or a copula."""
        return any(item.kind in _CLAUSE_WORDS for item in self.items)

    @property
    def values(self) -> list[Item]:
        """The items that are values."""
        return [item for item in self.items if item.value is not None]

    @property
    def names(self) -> list[Name]:
        """The names, without those that only describe a noun."""
        return [item.name for item in self.items if item.name is not None and not item.modifier]

    @property
    def is_phrase_about(self) -> bool:
        """Whether it says what the name before it is ("a botanist from Ulm")."""
        opens = self.opener in (",", "–", "—") and self.items[0].norm in ("a", "an", "the")
        return opens and len(self.items) > 1 and (self.items[1].kind is ItemKind.WORD or self.items[1].modifier)


def cut_segments(items: Sequence[Item]) -> list[Segment]:
    """The segments of a sentence, in order, none of them empty."""
    segments = [Segment("", [])]
    comma = False
    for index, item in enumerate(items):
        if item.kind is ItemKind.MARK:
            if item.norm in _BREAKS:
                segments.append(Segment(item.norm, []))
                comma = True
            continue
        here = segments[-1]
        if item.kind is ItemKind.RELATIVE and (here.items or segments[:-1]):
            segments.append(Segment(item.norm, [], comma))
        elif item.kind is ItemKind.CONJUNCTION and _begins_clause(items[index + 1 :], here):
            segments.append(Segment("and", [item], comma and not here.items))
        else:
            here.items.append(item)
        comma = False
    return [segment for segment in segments if segment.items]


def _begins_clause(following: Sequence[Item], here: Segment) -> bool:
    """Whether a conjunction joins clauses (or gapped ones) and not just two values or words."""
    if not here.items:
        return True
    if not here.has_relation:
        return False
    rest: list[Item] = []
    for item in following:
        ends = item.kind is ItemKind.MARK and item.norm in _BREAKS
        if ends or item.kind in (ItemKind.CONJUNCTION, ItemKind.RELATIVE):
            break
        rest.append(item)
    return any(item.kind in _CLAUSE_WORDS for item in rest) or is_gapped(rest)


def is_gapped(items: Iterable[Item]) -> bool:
    """Whether a name and a date stand without a relation of their own ("and to Anna Holm in 1935")."""
    values = [item.value for item in items if item.value is not None]
    return any(isinstance(value, Name) for value in values) and any(isinstance(value, Moment) for value in values)


def relation_groups(items: Sequence[Item]) -> list[list[Item]]:
    """Each relation with its values; relation words without a value between them belong together.

    A new relation begins after a value, unless it is only the verb of a noun ("the birth of X took place") or the
    participle of a copula, and at a noun behind a preposition ("until his death").
    """
    groups: list[list[Item]] = [[]]
    seen, valued = set[str](), False
    for index, item in enumerate(items):
        if item.kind is ItemKind.RELATION:
            before = items[index - 1].kind if index else None
            unknown = all(name.startswith("~") for name in item.relations)
            new = valued and not seen & item.relations and before not in _LINKING and not unknown
            start = _behind_preposition(items, index)
            if seen and (new or (start is not None and not seen & item.relations)):
                moved = groups[-1][start - index :] if start is not None else []
                groups[-1] = groups[-1][: len(groups[-1]) - len(moved)]
                groups.append(list(moved))
                seen, valued = set(), False
            seen |= item.relations
        elif item.value is not None and seen and not item.owner:
            valued = True
        groups[-1].append(item)
    return groups


def _behind_preposition(items: Sequence[Item], index: int) -> int | None:
    """Index of the preposition of "until his death", where `index` is the noun's; None if there is no such phrase."""
    if index < 2 or items[index - 2].kind is not ItemKind.PREPOSITION or items[index - 2].norm in ("of", "as"):
        return None
    ahead = items[index - 1]
    return index - 2 if ahead.owner or ahead.kind is ItemKind.DETERMINER else None
