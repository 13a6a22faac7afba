"""Frames in the making, and their common form: one voice, kinds of names, terms as descriptions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ewe.text.english import FUNCTION_WORDS, RESTRICTIONS
from ewe.verification.value_comparison.coreference import Discourse
from ewe.verification.value_comparison.frames import Argument, Frame, Role
from ewe.verification.value_comparison.lexicon import KIND_OF_NOUN, ONCE_IN_A_LIFE, ONCE_PER_RESULT, NameKind
from ewe.verification.value_comparison.parts_of_speech import Item, ItemKind
from ewe.verification.value_comparison.values import Agreement, Moment, Name, Quantity, Term

_PERSONAL = frozenset(
    {"birth", "death", "study", "teach", "marry", "live", "retire", "award", "member", "work", "nationality", "travel"}
)
_HOMES = frozenset({"birth", "death", "burial", "live"})
_MADE_BY_PEOPLE = frozenset({"create", "discover"})
_DOER = re.compile(r"(?:er|or|ist|ect)s?$")
_TITLED = {"create": NameKind.WORK, "devise": NameKind.THING}
_SETTLED = ("birth", "death", "burial", "live", "place", "found", "build", "study", "work", "teach", "retire")
_KINDS = {
    ("award", Role.OBJECT): NameKind.AWARD,
    **{(relation, Role.PLACE): NameKind.PLACE for relation in _SETTLED},
    **{("travel", role): NameKind.EVENT for role in (Role.OBJECT, Role.COMPANION, Role.PLACE, Role.SITE)},
    **{(relation, Role.OBJECT): NameKind.THING for relation in ("build", "discover")},
    ("found", Role.OBJECT): NameKind.ORGANISATION,
    **{("study", role): NameKind.PERSON for role in (Role.COMPANION, Role.AGENT, Role.OF)},
    **{("teach", role): NameKind.PERSON for role in (Role.COMPANION, Role.AGENT, Role.OBJECT)},
}


@dataclass(slots=True)
class Draft:
    """A frame in the making; head is its grammatical subject.

    of_head: the head comes from "the author of <head> is ...".
    """

    relations: set[str] = field(default_factory=set)
    head: Name | None = None
    arguments: list[Argument] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    passive: bool = False
    of_head: bool = False

    def names(self) -> list[Name]:
        """All names, the head first."""
        own = [argument.value for argument in self.arguments if isinstance(argument.value, Name)]
        return [self.head, *own] if self.head is not None else own

    def names_doer(self) -> bool:
        """Whether its noun means the one who does ("the author of Emma"), not what is done ("the works of Austen")."""
        return any(item.kind is ItemKind.RELATION and _DOER.search(item.norm) for item in self.items[:3])

    def continues(self, earlier: Draft) -> bool:
        """Whether this tells more of the event of `earlier`: same relation, no new names, no second date or number.

        "She won the Harrow Prize, awarded in 1931" is one event, and so is "It was written by X and published in 1931".
        """
        if not self.relations & earlier.relations:
            return False
        if not _within(self.names(), earlier.names()):
            once = self.relations & earlier.relations & (ONCE_PER_RESULT | ONCE_IN_A_LIFE)
            if not once or not _within(earlier.names(), self.names()):
                return False
        types = {type(argument.value) for argument in earlier.arguments} & {Moment, Quantity}
        return not any(type(argument.value) in types for argument in self.arguments)

    def absorb(self, later: Draft) -> None:
        """Take over what `later` tells of the same event."""
        known = self.names()
        self.relations |= later.relations
        self.items.extend(later.items)
        for argument in later.arguments:
            if not isinstance(argument.value, Name) or not _within([argument.value], known):
                self.arguments.append(argument)


def _within(names: Sequence[Name], others: Sequence[Name]) -> bool:
    return all(any(name.compare(other) is Agreement.EQUAL for other in others) for name in names)


def finish(draft: Draft, discourse: Discourse) -> Frame:
    """The frame of a draft in its common form; `discourse` learns the kinds of its names."""
    relations = set(draft.relations)
    names = draft.names()
    if all(name.startswith("~") for name in relations) and any(name.kind is NameKind.AWARD for name in names):
        relations.add("award")  # "the prize went to ...", "shared the prize"
    if any(isinstance(argument.value, Term) and argument.role is Role.CAPACITY for argument in draft.arguments):
        relations.add("occupation")  # "was a botanist", "worked as a botanist", "became a botanist"
    for argument in draft.arguments:
        if isinstance(argument.value, Term) and draft.head is not None and argument.role is Role.CAPACITY:
            discourse.learn_kind(draft.head, KIND_OF_NOUN.get(argument.text, NameKind.UNKNOWN))
    subject, arguments = _active(draft, frozenset(relations))
    if draft.head is not None and draft.passive and relations & ONCE_PER_RESULT:
        discourse.learn_kind(draft.head, next((_TITLED[name] for name in _TITLED if name in relations), NameKind.THING))
    if subject is not None:
        is_noun = any(a.role is Role.OF and isinstance(a.value, Name) for a in draft.arguments)
        made = relations & _MADE_BY_PEOPLE and any(_is_object(argument) for argument in arguments)
        if subject is not draft.head or (relations & _PERSONAL and not is_noun) or made:
            discourse.mark_person(subject)
        subject = replace(subject, kind=NameKind.PERSON) if discourse.is_person(subject) else subject
    content = [i for i in draft.items if i.kind in (ItemKind.RELATION, ItemKind.WORD) and i.norm not in FUNCTION_WORDS]
    return Frame(
        relations=frozenset(relations),
        subject=subject,
        head=draft.head,
        arguments=tuple(_with_kind(argument, relations, discourse) for argument in arguments),
        stems=frozenset(item.stem for item in content),
        start=min((item.start for item in draft.items), default=0),
        end=max((item.end for item in draft.items), default=0),
        negated=any(item.kind is ItemKind.NEGATION for item in draft.items),
        restricted=any(item.norm in RESTRICTIONS for item in draft.items),
    )


def _active(draft: Draft, relations: frozenset[str]) -> tuple[Name | None, list[Argument]]:
    """Subject and arguments in the active voice: who makes or receives is the subject, what is made the object."""
    head = draft.head
    if head is None:
        return None, draft.arguments
    if relations & _HOMES:
        return _at_home(draft, head)
    if "study" in relations:
        return _taught(draft, head)
    doers = []
    if relations & ONCE_PER_RESULT or "award" in relations:
        doers = [a for a in draft.arguments if a.role is Role.AGENT and isinstance(a.value, Name)]
    if draft.of_head and relations & ONCE_PER_RESULT and draft.names_doer():
        doers = [a for a in draft.arguments if a.role is Role.OBJECT and isinstance(a.value, Name)]
    if "award" in relations and not doers and (draft.passive or head.kind is NameKind.AWARD):
        doers = [a for a in draft.arguments if a.role is Role.RECIPIENT and isinstance(a.value, Name)]
    if doers:
        doer = doers[0].value
        assert isinstance(doer, Name)
        rest = [argument for argument in draft.arguments if argument is not doers[0]]
        return doer, [Argument(head, Role.OBJECT), *rest]
    if relations & ONCE_PER_RESULT and not any(_is_object(argument) for argument in draft.arguments):
        return head, [replace(a, role=Role.OBJECT) if a.role is Role.OF else a for a in draft.arguments]
    return head, draft.arguments


def _at_home(draft: Draft, head: Name) -> tuple[Name, list[Argument]]:
    """Whose the place is as the subject: "Ulm was the birthplace of X"."""
    whose = [a for a in draft.arguments if a.role is Role.OF and isinstance(a.value, Name)]
    copula = any(item.kind is ItemKind.COPULA for item in draft.items)
    if whose and copula and not draft.of_head and isinstance(whose[0].value, Name):
        rest = [argument for argument in draft.arguments if argument is not whose[0]]
        return whose[0].value, [Argument(head, Role.PLACE), *rest]
    return head, draft.arguments


def _taught(draft: Draft, head: Name) -> tuple[Name, list[Argument]]:
    """Who is taught as the subject, by a companion: "X taught Y", "X was the teacher of Y", "Y's teacher was X"."""
    speaks = next((item.norm for item in draft.items if "teach" in item.relations), "")
    if not speaks:
        return head, draft.arguments
    is_noun = bool(_DOER.search(speaks))
    people = (NameKind.UNKNOWN, NameKind.PERSON)
    role = Role.OF if is_noun else Role.OBJECT
    others = [a for a in draft.arguments if isinstance(a.value, Name) and a.value.kind in people]
    taught = [a for a in others if a.role is role and not draft.of_head and not (draft.passive and not is_noun)]
    if taught and isinstance(taught[0].value, Name):
        rest = [argument for argument in draft.arguments if argument is not taught[0]]
        return taught[0].value, [Argument(head, Role.COMPANION), *rest]
    by = (Role.AGENT, Role.OBJECT) if is_noun or draft.passive else (Role.AGENT,)
    return head, [replace(a, role=Role.COMPANION) if a in others and a.role in by else a for a in draft.arguments]


def _is_object(argument: Argument) -> bool:
    return argument.role is Role.OBJECT and isinstance(argument.value, Name)


def _with_kind(argument: Argument, relations: set[str], discourse: Discourse) -> Argument:
    """The argument, its name with the kind that its place gives it."""
    name = argument.value
    if not isinstance(name, Name):
        return argument
    titled = next((relation for relation in _TITLED if relation in relations and argument.role is Role.OBJECT), None)
    if titled is not None:  # whatever noun is in a title: "Mansfield Park" is written
        discourse.learn_kind(name, _TITLED[titled], even_if_known=True)
        return replace(argument, value=replace(name, kind=_TITLED[titled]))
    if name.kind is not NameKind.UNKNOWN:
        return argument
    if discourse.is_person(name):
        return replace(argument, value=replace(name, kind=NameKind.PERSON))
    for relation in sorted(relations):
        kind = _KINDS.get((relation, argument.role))
        if kind is not None:
            discourse.learn_kind(name, kind)
            return replace(argument, value=replace(name, kind=kind))
    return argument
