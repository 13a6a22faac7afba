"""From a sentence to its frames: clauses told apart by marks, conjunctions and relative words.

Owns: clause boundaries, subjects, and the binding of values to the nearest relation. Knows items, frames, discourse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ewe.verification.binding import bind_values
from ewe.verification.discourse import Discourse
from ewe.verification.frames import Argument, Frame, Role
from ewe.verification.items import Item, ItemKind, read_items
from ewe.verification.lexicon import FUNCTION_WORDS, NameKind
from ewe.verification.values import Moment, Name

_BREAKS = frozenset(",;:–—()[]")
_PERSONAL_RELATIONS = frozenset({"birth", "death", "study", "teach", "work", "marry", "live", "retire", "member"})

_LEARNT_KINDS = {
    ("create", Role.OBJECT): NameKind.WORK,
    ("award", Role.OBJECT): NameKind.AWARD,
    ("birth", Role.PLACE): NameKind.PLACE,
    ("death", Role.PLACE): NameKind.PLACE,
    ("live", Role.PLACE): NameKind.PLACE,
}


@dataclass(slots=True)
class _Segment:
    """Items between two clause boundaries; opener is the mark or word before them, comma whether a mark preceded it."""

    opener: str
    items: list[Item]
    comma: bool = False

    @property
    def relations(self) -> list[int]:
        return [i for i, item in enumerate(self.items) if item.kind in (ItemKind.RELATION, ItemKind.COPULA)]

    @property
    def values(self) -> list[Item]:
        return [item for item in self.items if item.value is not None]


@dataclass(slots=True)
class _Draft:
    """A frame in the making."""

    relations: set[str] = field(default_factory=set)
    subject: Name | None = None
    arguments: list[Argument] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    passive: bool = False


def parse_frames(sentence: str, discourse: Discourse) -> list[Frame]:
    """The frames of a sentence, in order; `discourse` resolves its pronouns and learns its names and subject.

    Questions have none. Never raises.
    """
    items = read_items(sentence, discourse)
    if sentence.rstrip().endswith("?"):
        return []
    drafts = _Builder(discourse).build(_segments(items))
    frames = [_finish(draft) for draft in drafts if draft.relations]
    for frame in frames:
        _learn(frame, discourse)
    if frames and frames[0].subject is not None:
        discourse.focus = frames[0].subject
    return frames


def _learn(frame: Frame, discourse: Discourse) -> None:
    """What a frame says about the kinds of its names, for the pronouns and "the novel" of later sentences."""
    if frame.subject is not None and frame.relations & _PERSONAL_RELATIONS:
        discourse.mark_person(frame.subject)
    for argument in frame.arguments:
        for relation in frame.relations:
            kind = _LEARNT_KINDS.get((relation, argument.role))
            if kind is not None and isinstance(argument.value, Name):
                discourse.learn_kind(argument.value, kind)


def _finish(draft: _Draft) -> Frame:
    content = [i for i in draft.items if i.kind in (ItemKind.RELATION, ItemKind.WORD) and i.norm not in FUNCTION_WORDS]
    return Frame(
        relations=frozenset(draft.relations),
        subject=draft.subject,
        arguments=tuple(draft.arguments),
        stems=frozenset(item.stem for item in content),
        start=min((item.start for item in draft.items), default=0),
        end=max((item.end for item in draft.items), default=0),
        negated=any(item.kind is ItemKind.NEGATION for item in draft.items),
        passive=draft.passive,
    )


def _segments(items: Sequence[Item]) -> list[_Segment]:
    """The sentence cut at marks, relative words and those conjunctions that begin a clause."""
    segments = [_Segment("", [])]
    comma = False
    for index, item in enumerate(items):
        if item.kind is ItemKind.MARK:
            if item.norm in _BREAKS:
                segments.append(_Segment(item.norm, []))
                comma = True
            continue
        here = segments[-1]
        if item.kind is ItemKind.RELATIVE and (here.items or segments[:-1]):
            segments.append(_Segment(item.norm, [], comma))
        elif item.kind is ItemKind.CONJUNCTION and _begins_clause(items, index, here):
            segments.append(_Segment("and", [item], comma and not here.items))
        else:
            here.items.append(item)
        comma = False
    return [segment for segment in segments if segment.items]


def _begins_clause(items: Sequence[Item], index: int, here: _Segment) -> bool:
    """Whether a conjunction joins clauses (or gapped ones) and not just two values or words."""
    if not here.items:
        return True
    if not here.relations:
        return False
    rest: list[Item] = []
    for item in items[index + 1 :]:
        if item.kind in (ItemKind.CONJUNCTION, ItemKind.RELATIVE) or (
            item.kind is ItemKind.MARK and item.norm in _BREAKS
        ):
            break
        rest.append(item)
    if any(item.kind in (ItemKind.RELATION, ItemKind.COPULA) for item in rest):
        return True
    return _is_gapped(rest)


def _is_gapped(items: Iterable[Item]) -> bool:
    """Whether values of two types stand without a relation ("and to Anna Holm in 1935")."""
    values = [item.value for item in items if item.value is not None]
    return any(isinstance(value, Name) for value in values) and any(isinstance(value, Moment) for value in values)


class _Builder:
    """Builds drafts segment by segment; keeps the sentence's main subject and what still waits for a relation."""

    def __init__(self, discourse: Discourse) -> None:
        self._discourse = discourse
        self._drafts: list[_Draft] = []
        self._base: _Draft | None = None
        self._waiting: list[Item] = []
        self._main: Name | None = None
        self._last_name: Name | None = None

    def build(self, segments: Sequence[_Segment]) -> list[_Draft]:
        """The drafts of all segments in order."""
        for index, segment in enumerate(segments):
            following = segments[index + 1 :]
            if segment.relations:
                self._clause(segment)
            elif segment.items and not self._life_span(segment, following[:1]):
                self._fragment(segment, following)
            names = [item.name for item in segment.items if item.name is not None and not item.modifier]
            self._last_name = names[-1] if names else self._last_name
        main = self._main or self._discourse.focus
        for draft in self._drafts:
            draft.subject = draft.subject or main
        return self._drafts

    def _clause(self, segment: _Segment) -> None:
        """A segment with a relation word: one draft per relation that has values of its own."""
        items = [*self._waiting, *segment.items] if segment.opener != "(" else segment.items
        if items is not segment.items:
            self._waiting = []
        first = next(i for i, item in enumerate(items) if item.kind in (ItemKind.RELATION, ItemKind.COPULA))
        subject_at = _subject_before(items, first)
        subject = items[subject_at].name if subject_at is not None else self._understood_subject(segment)
        if self._main is None and segment.opener not in ("(", "who", "which", "whose", "where", "when"):
            self._main = subject
        groups = _relation_groups(items)
        for number, (start, end) in enumerate(groups):
            draft = _Draft(subject=subject)
            part = items[0 if number == 0 else start : end]
            self._fill(draft, part, items[subject_at] if subject_at is not None else None)
            self._drafts.append(draft)
            self._base = draft

    def _understood_subject(self, segment: _Segment) -> Name | None:
        """The subject of a clause that does not name it."""
        if segment.opener in ("who", "which", "that", "whose", "("):
            return self._last_name
        previous = self._drafts[-1].subject if self._drafts else None
        if segment.opener == "and" and not segment.comma and previous is not None:
            return previous
        return self._main

    def _fill(self, draft: _Draft, items: Sequence[Item], subject: Item | None) -> None:
        """Relations, values and terms of one clause into `draft`."""
        draft.items.extend(items)
        has_word = any(item.kind is ItemKind.RELATION for item in items)
        for index, item in enumerate(items):
            if item.kind is ItemKind.RELATION:
                draft.relations |= item.relations
                draft.passive |= index > 0 and items[index - 1].kind is ItemKind.COPULA
            elif item.kind is ItemKind.COPULA and not has_word:
                draft.relations.add("be")
        draft.arguments.extend(bind_values([item for item in items if item is not subject]))
        names = [draft.subject, *(argument.value for argument in draft.arguments)]
        awards = any(isinstance(name, Name) and name.kind is NameKind.AWARD for name in names)
        if awards and draft.relations and all(name.startswith("~") for name in draft.relations):
            draft.relations.add("award")  # "the prize went to ...", "shared the prize"

    def _fragment(self, segment: _Segment, following: Sequence[_Segment]) -> None:
        """A segment without a relation word: an apposition, a gapped clause, or more values of the clause before."""
        if _is_apposition(segment) and self._last_name is not None:
            draft = _Draft(relations={"be"}, subject=self._last_name, items=list(segment.items))
            draft.arguments.extend(bind_values(segment.items, in_complement=True))
            self._drafts.append(draft)
        elif self._base is None:
            self._waiting.extend(segment.items)
        elif segment.opener == "(" and self._pairs(segment):
            return
        elif _is_gapped(segment.items):
            self._gapped(bind_values(segment.items), segment.items)
        elif _is_fronted(segment) and any(later.relations for later in following):
            self._waiting.extend(segment.items)
        else:
            roles = [argument.role for argument in self._base.arguments if argument.role is not Role.OTHER]
            self._base.arguments.extend(bind_values(segment.items, roles[-1] if roles else Role.OBJECT))
            self._base.items.extend(segment.items)

    def _life_span(self, segment: _Segment, following: Sequence[_Segment]) -> bool:
        """ "(7 May 1867 – 4 July 1934)" after a name that can be a person's: birth and death."""
        items = [*segment.items, *(item for later in following if later.opener in "–—" for item in later.items)]
        moments = [item for item in items if isinstance(item.value, Moment)]
        name = self._last_name
        if segment.opener != "(" or len(moments) != 2 or len(items) != 2 or name is None:
            return False
        if name.kind not in (NameKind.UNKNOWN, NameKind.PERSON):
            return False
        for relation, item in zip(("birth", "death"), moments, strict=True):
            assert item.value is not None
            argument = Argument(item.value, Role.OTHER, item.norm)
            self._drafts.append(_Draft({relation}, name, [argument], [item]))
        for later in following:
            later.items.clear()
        return True

    def _pairs(self, segment: _Segment) -> bool:
        """A year in brackets belongs to the name before it: "The Red Door (1931)"."""
        moments = [item.value for item in segment.values if isinstance(item.value, Moment)]
        if len(moments) != 1 or len(segment.values) != 1 or self._last_name is None:
            return False
        self._gapped([Argument(self._last_name, Role.OBJECT), Argument(moments[0], Role.OTHER)], segment.items)
        return True

    def _gapped(self, arguments: list[Argument], items: Sequence[Item]) -> None:
        """A draft like the last one with some of its values replaced."""
        previous = self._base
        assert previous is not None
        replaced = {type(argument.value) for argument in arguments if not isinstance(argument.value, Name)}
        roles = {argument.role for argument in arguments if isinstance(argument.value, Name)}
        kept = [
            argument
            for argument in previous.arguments
            if type(argument.value) not in replaced
            and not (isinstance(argument.value, Name) and argument.role in roles)
        ]
        draft = replace(previous, relations=set(previous.relations), arguments=[*kept, *arguments], items=list(items))
        self._drafts.append(draft)


def _subject_before(items: Sequence[Item], first: int) -> int | None:
    """Index of the name before the first relation word that no preposition governs; an owner counts.

    "The author of Emma is ..." speaks of Emma.
    """
    found = None
    governed = False
    for index, item in enumerate(items[:first]):
        if item.kind is ItemKind.PREPOSITION:
            governed = True
        elif item.value is not None:
            if item.name is not None and not governed and not item.modifier:
                found = index
            governed = False
    if found is None and items[0].norm == "the":
        for index, item in enumerate(items):
            if item.kind is ItemKind.COPULA:
                break
            if item.name is not None and items[index - 1].norm == "of":
                return index
    return found


def _relation_groups(items: Sequence[Item]) -> list[tuple[int, int]]:
    """[start, end) of each relation with its values; relation words without a value between them belong together."""
    groups: list[tuple[int, int]] = []
    start, seen, valued = 0, set[str](), False
    for index, item in enumerate(items):
        if item.kind is ItemKind.RELATION:
            if seen and valued and not seen & item.relations and items[index - 1].kind is not ItemKind.COPULA:
                groups.append((start, index))
                start, seen, valued = index, set(), False
            seen |= item.relations
        elif item.value is not None and seen and not item.owner:
            valued = True
    return [*groups, (start, len(items))]


def _is_apposition(segment: _Segment) -> bool:
    """Whether a fragment says what the name before it is ("a botanist from Ulm")."""
    head = segment.items[0]
    return (
        segment.opener in (",", "–", "—")
        and head.norm in ("a", "an", "the")
        and len(segment.items) > 1
        and (segment.items[1].kind is ItemKind.WORD or segment.items[1].modifier)
    )


def _is_fronted(segment: _Segment) -> bool:
    """Whether a fragment begins with a preposition or conjunction, as one that belongs to the next clause does."""
    return segment.opener in ("and", ";") or segment.items[0].kind is ItemKind.CONJUNCTION
