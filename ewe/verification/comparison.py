"""One claim against one evidence frame: which of its values the evidence states, and which it contradicts.

Owns: when a different value in the same place is a contradiction. Knows frames, values and the word lists; no passages
and no weights.

A value contradicts only if everything else that identifies the statement agrees: the relation, the subject, and the
other names (for a date or number), so that exactly one value of one type differs. Whether a difference is a
contradiction then depends on the slot. Some are filled once by their nature: dates and places of birth, death and
foundation, the maker and date of a work, the date of an event whose names all agree. Others can be filled many times
(works, prizes, posts); a different value there contradicts only for a collection that is taken to be complete about
what it covers (partial completeness: if it knows a value of this relation for this subject, it knows all).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ewe.verification.frames import Argument, Frame, Role
from ewe.verification.lexicon import ONCE_IN_A_LIFE, ONCE_PER_RESULT, ONE_PLACE, NameKind
from ewe.verification.values import Agreement, Moment, Name, Quantity, Term, compare

_PLACES = frozenset({Role.PLACE, Role.SOURCE, Role.OBJECT})
_MAKERS = frozenset({Role.SUBJECT, Role.AGENT})
_CORE = frozenset({Role.SUBJECT, Role.OBJECT, Role.RECIPIENT, Role.AGENT, Role.OF})
_BOUNDS = frozenset({Role.START, Role.END})


class Finding(StrEnum):
    """What an evidence frame says about one value of a claim.

    DIFFERS: another value stands there, in a slot that may hold several. CONTRADICTS: in a slot that holds one.
    """

    STATES = "states"
    CONTRADICTS = "contradicts"
    DIFFERS = "differs"
    SILENT = "silent"


def checkable_arguments(frame: Frame) -> list[Argument]:
    """The arguments of a claim that evidence has to settle: all but further mentions of the subject."""
    return [argument for argument in frame.arguments if frame.subject is None or not _is(argument.value, frame.subject)]


def compare_frames(claim: Frame, evidence: Frame) -> list[Finding]:
    """A finding for the claim's subject, then one per checkable argument; all silent if the relation differs."""
    arguments = checkable_arguments(claim)
    silent = [Finding.SILENT] * (1 + len(arguments))
    if claim.subject is None or evidence.negated or not claim.relations & evidence.relations:
        return silent
    pair = _Pair(claim, evidence, arguments, claim.relations & evidence.relations)
    if pair.shares_subject():
        return [Finding.STATES, *(pair.finding(argument) for argument in arguments)]
    return [pair.subject_finding(), *silent[1:]]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A claim and an evidence frame that share relations."""

    claim: Frame
    evidence: Frame
    arguments: list[Argument]
    relations: frozenset[str]

    def shares_subject(self) -> bool:
        """Whether the evidence speaks of the claim's subject, in any role; for births and deaths as subject only."""
        assert self.claim.subject is not None
        if self.relations & ONCE_IN_A_LIFE:
            return self.evidence.subject is not None and _is(self.claim.subject, self.evidence.subject)
        return _find(self.claim.subject, self.evidence.names())

    def subject_finding(self) -> Finding:
        """Whether the evidence has another subject for what is otherwise the same statement."""
        assert self.claim.subject is not None
        values = [argument.value for argument in self.arguments]
        names = [value for value in values if isinstance(value, Name)]
        rest_agrees = all(self._states(value) for value in values if isinstance(value, Name | Moment))
        if self.relations & ONCE_IN_A_LIFE or not names or not rest_agrees:
            return Finding.SILENT
        subject = Argument(self.claim.subject, Role.SUBJECT)
        rivals = [rival for rival in self._rivals(subject) if not self._is_taken(rival)]
        if not any(self._same_place(subject, r) and _differs(subject.value, r.value) for r in rivals):
            return Finding.SILENT
        made = _result(self.claim)
        is_made = self.relations & ONCE_PER_RESULT and made is not None and made is not self.claim.subject
        dated = any(isinstance(value, Moment) for value in values)
        return Finding.CONTRADICTS if is_made else Finding.DIFFERS if dated else Finding.SILENT

    def finding(self, argument: Argument) -> Finding:
        """What the evidence, whose subject is the claim's, says about `argument`."""
        if self._states(argument.value, argument.role):
            return Finding.STATES if self._anchors_agree(argument) else Finding.SILENT
        rivals = [r for r in self._rivals(argument) if not self._is_taken(r) and self._same_place(argument, r)]
        if not any(_differs(argument.value, rival.value) for rival in rivals):
            return Finding.SILENT
        if self._anchors_agree(argument) and self._is_single(argument):
            return Finding.CONTRADICTS
        return Finding.DIFFERS if isinstance(argument.value, Name | Term) else Finding.SILENT

    def _states(self, value: object, role: Role = Role.OTHER) -> bool:
        """Whether the evidence holds `value` in a place where it can mean the same."""
        rivals = self._rivals(Argument(value, role))  # type: ignore[arg-type]
        return any(_is(value, rival.value) for rival in rivals)

    def _rivals(self, argument: Argument) -> list[Argument]:
        """Values of the evidence of the same type, its subject among them; ends of periods are kept apart."""
        rivals = [rival for rival in self.evidence.arguments if type(rival.value) is type(argument.value)]
        if isinstance(argument.value, Moment):
            return [rival for rival in rivals if not ({rival.role, argument.role} >= _BOUNDS)]
        if isinstance(argument.value, Name) and self.evidence.subject is not None:
            return [Argument(self.evidence.subject, Role.SUBJECT), *rivals]
        return rivals

    def _anchors_agree(self, argument: Argument) -> bool:
        """Whether every name that identifies the statement around `argument` is in the evidence too."""
        return all(_find(name, self.evidence.names()) for name in self._anchors(argument))

    def _anchors(self, argument: Argument) -> list[Name]:
        """The names that must agree before `argument` can be compared, apart from the subject."""
        if isinstance(argument.value, Name | Term) or self.relations & ONCE_IN_A_LIFE:
            return []
        if self.relations & ONCE_PER_RESULT:
            made = _result(self.claim)
            return [made] if made is not None else []
        others = [other for other in self.arguments if isinstance(other.value, Name) and other is not argument]
        core = [other for other in others if other.role in _CORE]
        return [other.value for other in core or others if isinstance(other.value, Name)]

    def _is_single(self, argument: Argument) -> bool:
        """Whether the slot of `argument` holds one value only."""
        value = argument.value
        if isinstance(value, Moment):
            return bool(self.relations & (ONCE_IN_A_LIFE | ONCE_PER_RESULT) or self._anchors(argument))
        if not isinstance(value, Name):
            return isinstance(value, Quantity)
        if argument.role in _PLACES and self.relations & ONE_PLACE:
            named_place = value.kind in (NameKind.UNKNOWN, NameKind.PLACE)
            return named_place and (argument.role is not Role.OBJECT or bool(self.relations & ONCE_IN_A_LIFE))
        made = _result(self.claim) if self.relations & ONCE_PER_RESULT else None
        return made is not None and argument.role in _MAKERS and _find(made, self.evidence.names())

    def _is_taken(self, rival: Argument) -> bool:
        """Whether a value of the evidence already answers to another value of the claim."""
        mine = [self.claim.subject, *(argument.value for argument in self.arguments)]
        return any(_is(value, rival.value) for value in mine if value is not None)

    def _same_place(self, argument: Argument, rival: Argument) -> bool:
        """Whether two values stand in the same place of the relation: same role, or the ones of a known kind."""
        if isinstance(argument.value, Moment | Quantity):
            return True
        roles = {argument.role, rival.role}
        if len(roles) == 1 or roles <= {Role.PLACE, Role.SOURCE} or roles <= _MAKERS:
            return True
        if Role.MODIFIER in roles or not (isinstance(argument.value, Name) and isinstance(rival.value, Name)):
            return False
        kinds = {argument.value.kind, rival.value.kind}
        return len(kinds) == 1 and NameKind.UNKNOWN not in kinds


def _result(frame: Frame) -> Name | None:
    """What is made in a frame of making: the object, or the subject of a passive or of a verb without an object."""
    objects = [a.value for a in frame.arguments if a.role in (Role.OBJECT, Role.OF) and isinstance(a.value, Name)]
    has_maker = any(argument.role is Role.AGENT for argument in frame.arguments)
    return objects[0] if objects and not has_maker else frame.subject


def _is(value: object, other: object) -> bool:
    return compare(value, other) is Agreement.EQUAL  # type: ignore[arg-type]


def _differs(value: object, other: object) -> bool:
    return compare(value, other) is Agreement.DIFFERENT  # type: ignore[arg-type]


def _find(name: Name, among: Sequence[Name]) -> bool:
    return any(_is(name, other) for other in among)
