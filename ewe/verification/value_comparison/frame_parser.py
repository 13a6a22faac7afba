"""From a sentence to its frames."""

from collections.abc import Sequence
from dataclasses import replace

from ewe.verification.value_comparison.coreference import Discourse
from ewe.verification.value_comparison.frame_normalization import Draft, finish
from ewe.verification.value_comparison.frames import Argument, Frame, Role, bind_values
from ewe.verification.value_comparison.lexicon import ONCE_PER_RESULT, NameKind
from ewe.verification.value_comparison.parts_of_speech import Item, ItemKind, is_governed
from ewe.verification.value_comparison.segments import Segment, cut_segments, is_gapped, relation_groups
from ewe.verification.value_comparison.tagging import read_items
from ewe.verification.value_comparison.values import Moment, Name

_LONGEST = 2_000  # Longer "sentences" are tables or noise, and what is said of them would be wrong.
_ASIDES = frozenset({"(", "who", "which", "that", "whom", "whose", "where", "when"})
_DONE_TO = ONCE_PER_RESULT | {"award", "name"}


def parse_frames(sentence: str, discourse: Discourse) -> list[Frame]:
    """The frames of a sentence, in order; `discourse` resolves its pronouns and learns its names and subject.

    Questions have none. Only the first 2,000 characters are read. Never raises.
    """
    items = read_items(sentence[:_LONGEST], discourse)
    if sentence.rstrip().endswith("?"):
        return []
    drafts = _Builder(discourse).build(cut_segments(items))
    frames = [finish(draft, discourse) for draft in drafts if draft.relations]
    if frames and frames[0].head is not None:
        discourse.focus = frames[0].head
    return frames


class _Builder:
    """Builds drafts segment by segment; keeps the sentence's main subject and what still waits for a relation."""

    def __init__(self, discourse: Discourse) -> None:
        self._discourse = discourse
        self._drafts: list[Draft] = []
        self._base: Draft | None = None
        self._waiting: list[Item] = []
        self._main: Name | None = None
        self._last_name: Name | None = None

    def build(self, segments: Sequence[Segment]) -> list[Draft]:
        """The drafts of all segments in order."""
        for index, segment in enumerate(segments):
            following = segments[index + 1 :]
            if segment.has_relation:
                self._clause(segment)
            elif segment.items and not self._life_span(segment, following[:1]):
                self._fragment(segment, following)
            self._last_name = segment.names[-1] if segment.names else self._last_name
        main = self._main or self._discourse.focus
        for draft in self._drafts:
            draft.head = draft.head or main
        return self._drafts

    def _clause(self, segment: Segment) -> None:
        """A segment with a relation word: one draft per relation that has values of its own."""
        has_copula = any(item.kind is ItemKind.COPULA for item in segment.items)
        subject_at = _subject_of(segment.items, may_be_of=has_copula or not segment.opener)
        subject = segment.items[subject_at] if subject_at is not None else None
        is_aside = segment.opener in _ASIDES or (subject is None and _describes(segment))
        if subject is not None:
            head = subject.name
        elif is_aside:
            head = self._last_name
        else:
            head = self._understood(segment)
        if not is_aside:
            self._main = self._main or head
        for number, group in enumerate(relation_groups(segment.items)):
            items = group
            if number == 0 and not is_aside:
                items, self._waiting = [*self._waiting, *group], []
            draft = _draft(head, items, subject)
            draft.of_head = subject_at is not None and subject_at > 0 and segment.items[subject_at - 1].norm == "of"
            self._add(draft)

    def _understood(self, segment: Segment) -> Name | None:
        """The subject of a clause that does not name it."""
        previous = self._drafts[-1].head if self._drafts else None
        if segment.opener == "and" and not segment.comma and previous is not None:
            return previous
        return self._main

    def _add(self, draft: Draft) -> None:
        """Append a draft, or let the one before absorb it if it tells of the same event or gives it its verb."""
        resumes = self._base is not None and self._base.of_head and draft.items[0].kind is ItemKind.COPULA
        if self._base is not None and draft.head is not None and (resumes or draft.continues(self._base)):
            self._base.absorb(draft)
        else:
            self._drafts.append(draft)
            self._base = draft

    def _fragment(self, segment: Segment, following: Sequence[Segment]) -> None:
        """A segment without a relation word: an apposition, a gapped clause, or more values of the clause before."""
        if segment.is_phrase_about and self._last_name is not None:
            arguments = bind_values(segment.items, in_complement=True)
            self._drafts.append(Draft({"be"}, self._last_name, arguments, list(segment.items)))
        elif self._base is None:
            if self._main is None and segment.names and segment.items[0].kind is ItemKind.VALUE:
                self._main = segment.names[-1]
            elif segment.values:  # "in comparison," says nothing that could be checked
                self._waiting.extend(segment.items)
        elif segment.opener == "(" and self._dated_name(segment):
            return
        elif is_gapped(segment.items):
            self._gapped(bind_values(segment.items), segment.items)
        elif segment.opener in ("and", ";") and any(later.has_relation for later in following):
            self._waiting.extend(segment.items)
        else:
            roles = [argument.role for argument in self._base.arguments if argument.role is not Role.OTHER]
            self._base.arguments.extend(bind_values(segment.items, roles[-1] if roles else Role.OBJECT))
            self._base.items.extend(segment.items)

    def _life_span(self, segment: Segment, following: Sequence[Segment]) -> bool:
        """(7 May 1867 – 4 July 1934) after a name that can be a person's: birth and death."""
        items = [*segment.items, *(item for later in following if later.opener in "–—" for item in later.items)]
        moments = [item for item in items if isinstance(item.value, Moment)]
        name = self._last_name
        if segment.opener != "(" or len(moments) != 2 or len(items) != 2 or name is None:
            return False
        if name.kind not in (NameKind.UNKNOWN, NameKind.PERSON):
            return False
        for relation, item in zip(("birth", "death"), moments, strict=True):
            assert item.value is not None
            self._drafts.append(Draft({relation}, name, [Argument(item.value, Role.OTHER, item.norm)], [item]))
        for later in following:
            later.items.clear()
        return True

    def _dated_name(self, segment: Segment) -> bool:
        """A year in brackets belongs to the name before it: "The Red Door (1931)"."""
        moments = [item.value for item in segment.values if isinstance(item.value, Moment)]
        if len(moments) != 1 or len(segment.values) != 1 or self._last_name is None:
            return False
        self._gapped([Argument(self._last_name, Role.OBJECT), Argument(moments[0], Role.OTHER)], segment.items)
        return True

    def _gapped(self, arguments: list[Argument], items: Sequence[Item]) -> None:
        """A draft like the last clause with some of its values replaced."""
        base = self._base
        assert base is not None
        replaced = {type(argument.value) for argument in arguments if not isinstance(argument.value, Name)}
        roles = {argument.role for argument in arguments if isinstance(argument.value, Name)}
        kept = [
            argument
            for argument in base.arguments
            if (
                argument.role not in roles if isinstance(argument.value, Name) else type(argument.value) not in replaced
            )
        ]
        draft = replace(base, relations=set(base.relations), arguments=[*kept, *arguments], items=list(items))
        self._drafts.append(draft)


def _draft(head: Name | None, items: Sequence[Item], subject: Item | None) -> Draft:
    """Relations, values and terms of one clause."""
    draft = Draft(head=head, items=list(items))
    has_word = any(item.kind is ItemKind.RELATION for item in items)
    for index, item in enumerate(items):
        if item.kind is ItemKind.RELATION:
            draft.relations |= item.relations
            draft.passive |= index > 0 and items[index - 1].kind is ItemKind.COPULA
        elif item.kind is ItemKind.COPULA and not has_word:
            draft.relations.add("be")
    draft.arguments = bind_values([item for item in items if item is not subject], Role.SUBJECT)
    return draft


def _subject_of(items: Sequence[Item], may_be_of: bool) -> int | None:
    """Index of the name before the first relation word that no preposition governs; an owner counts.

    "The author of Emma is ..." and "the birth of Emma took place ..." speak of Emma.
    """
    found = None
    for index, item in enumerate(items):
        if item.kind in (ItemKind.RELATION, ItemKind.COPULA) or (item.kind is ItemKind.AUXILIARY and found is not None):
            break
        if item.name is not None and not item.modifier and not is_governed(items[:index]):
            found = index
    if found is not None or items[0].norm not in ("the", "a", "an") or not may_be_of:
        return found
    for index, item in enumerate(items):
        if item.kind is ItemKind.COPULA:
            break
        if item.name is not None and items[index - 1].norm == "of":
            return index
    return None


def _describes(segment: Segment) -> bool:
    """Whether a clause without a subject says more of the name before it.

    So do phrases with an article ("the author of Emma") and participles of what is done to things ("published in
    1815") unless an object follows them.
    """
    if segment.opener not in (",", "–", "—"):
        return False
    head = segment.items[0]
    if head.norm in ("a", "an", "the"):
        return True
    if head.kind is not ItemKind.RELATION or not head.relations & _DONE_TO:
        return False
    behind = segment.items[1] if len(segment.items) > 1 else None
    if behind is None or not behind.explicit:  # "X, awarded it in 1931"
        return True
    return behind.name is None and behind.kind is not ItemKind.DETERMINER
