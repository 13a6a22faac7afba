"""One claim against one evidence frame: which of its values the evidence states, and which it contradicts.

A value contradicts only if everything else that identifies the statement agrees: the relation, the subject, and the
other names (for a date or number), so that exactly one value of one type differs. Whether a difference is a
contradiction then depends on the slot. Some are filled once by their nature: dates and places of birth, death and
foundation, the maker and date of a work, the date of an event whose names all agree. Others can be filled many times
(works, prizes, posts); a different value there contradicts only for a collection that is taken to be complete about
what it covers (partial completeness: if it knows a value of this relation for this subject, it knows all).
"""

from dataclasses import dataclass
from enum import StrEnum

from ewe.verification.value_comparison.frames import Argument, Frame, Role
from ewe.verification.value_comparison.lexicon import ONCE_IN_A_LIFE, ONCE_PER_RESULT, ONE_PLACE, ONE_WAY, NameKind
from ewe.verification.value_comparison.values import Agreement, Moment, Name, Quantity, Term, Value, compare

_PLACES = frozenset({Role.PLACE, Role.SITE, Role.SOURCE})
_MAKERS = frozenset({Role.SUBJECT, Role.AGENT})
_CORE = frozenset({Role.OBJECT, Role.RECIPIENT, Role.AGENT, Role.OF})
_RESULTS = frozenset({Role.OBJECT, Role.OF})
_BOUNDS = frozenset({Role.START, Role.END})


class Stance(StrEnum):
    """What an evidence frame says about one value of a claim.

    DIFFERS: another value stands there, in a slot that may hold several. CONTRADICTS: in a slot that holds one.
    """

    STATES = "states"
    CONTRADICTS = "contradicts"
    DIFFERS = "differs"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Finding:
    """A stance, and the values of the evidence that stand in the claim's place if they are others."""

    stance: Stance
    others: tuple[Value, ...] = ()


_SILENT = Finding(Stance.SILENT)
_STATES = Finding(Stance.STATES)


def checkable_arguments(frame: Frame) -> list[Argument]:
    """The arguments of a claim that evidence has to settle: all but further mentions of the subject."""
    return [argument for argument in frame.arguments if frame.subject is None or not _is(argument.value, frame.subject)]


def compare_frames(claim: Frame, evidence: Frame) -> list[Finding]:
    """A finding for the claim's subject, then one per checkable argument; all silent if the relation differs."""
    arguments = checkable_arguments(claim)
    shared = claim.relations & evidence.relations
    if claim.subject is None or evidence.negated or not shared:
        return [_SILENT] * (1 + len(arguments))
    pair = _Pair(claim, evidence, arguments, shared, _result(claim) if shared & ONCE_PER_RESULT else None)
    return [pair.subject_finding(), *(pair.finding(argument) for argument in arguments)]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A claim and an evidence frame that share relations; made is what the claim says was made, if it says so."""

    claim: Frame
    evidence: Frame
    arguments: list[Argument]
    relations: frozenset[str]
    made: Name | None

    def subject_finding(self) -> Finding:
        """Whether the evidence has another subject for what is otherwise the same statement."""
        subject = self.claim.subject
        assert subject is not None
        if self._states(subject, Role.SUBJECT):
            return _STATES
        rivals = [rival for rival in self._rivals(Argument(subject, Role.SUBJECT)) if rival.role in _MAKERS]
        others = tuple(r.value for r in rivals if _differs(subject, r.value) and not self._is_taken(r))
        if not others:
            return _SILENT
        if self.made is not None and self.made is not subject:
            return Finding(Stance.CONTRADICTS, others) if self._states(self.made) else _SILENT
        values = [argument.value for argument in self.arguments if isinstance(argument.value, Name | Moment)]
        whole = any(isinstance(v, Name) for v in values) and any(isinstance(v, Moment) for v in values)
        if self.relations & ONCE_IN_A_LIFE or not whole or not all(self._states(value) for value in values):
            return _SILENT
        return Finding(Stance.DIFFERS, others)

    def finding(self, argument: Argument) -> Finding:
        """What the evidence says about `argument`, if it speaks of the same thing."""
        if not self._is_about_the_same(argument):
            return _SILENT
        if self._states(argument.value, argument.role):
            return _STATES
        rivals = [rival for rival in self._rivals(argument) if not self._is_taken(rival)]
        rivals = [rival for rival in rivals if _differs(argument.value, rival.value)]
        same = tuple(rival.value for rival in rivals if _same_place(argument, rival))
        if same and self._is_single(argument):
            return Finding(Stance.CONTRADICTS, same)
        if not isinstance(argument.value, Name | Term):
            return _SILENT
        if len(rivals) == 1 and rivals[0].role is not Role.MODIFIER and self._is_only_open_name(argument):
            same = (rivals[0].value,)
        return Finding(Stance.DIFFERS, same) if same and argument.role is not Role.MODIFIER else _SILENT

    def _is_about_the_same(self, argument: Argument) -> bool:
        """Whether the evidence has the names that identify the statement around `argument`."""
        subject = self.claim.subject
        assert subject is not None
        if self.relations & ONE_WAY:
            return self.evidence.subject is not None and _is(subject, self.evidence.subject)
        if self.made is not None and argument.role not in _RESULTS:
            return self._states(self.made)
        return self._states(subject) and all(self._states(name) for name in self._anchors(argument))

    def _anchors(self, argument: Argument) -> list[Name]:
        """The names besides the subject that must agree before a date or number can be compared."""
        if isinstance(argument.value, Name | Term):
            return []
        others = [other for other in self.arguments if isinstance(other.value, Name)]
        core = [other for other in others if other.role in _CORE]
        return [other.value for other in core or others if isinstance(other.value, Name)]

    def _is_single(self, argument: Argument) -> bool:
        """Whether the slot of `argument` holds one value only."""
        value = argument.value
        if isinstance(value, Moment):
            return bool(self.relations & ONCE_IN_A_LIFE or self.made is not None or self._anchors(argument))
        if not isinstance(value, Name):
            return isinstance(value, Quantity)
        if self.relations & ONE_PLACE and value.kind in (NameKind.UNKNOWN, NameKind.PLACE):
            at_birth = bool(self.relations & ONCE_IN_A_LIFE) and argument.role in (Role.OBJECT, Role.OF)
            return argument.role in _PLACES or at_birth
        return self.made is not None and argument.role in _MAKERS

    def _states(self, value: Value, role: Role = Role.OTHER) -> bool:
        """Whether the evidence holds `value` in a place where it can mean the same."""
        return any(_is(value, rival.value) for rival in self._rivals(Argument(value, role)))

    def _rivals(self, argument: Argument) -> list[Argument]:
        """Values of the evidence of the same type, its subject among them; ends of periods are kept apart."""
        rivals = [rival for rival in self.evidence.arguments if type(rival.value) is type(argument.value)]
        if isinstance(argument.value, Moment):
            return [rival for rival in rivals if not ({rival.role, argument.role} >= _BOUNDS)]
        if isinstance(argument.value, Name) and self.evidence.subject is not None:
            return [Argument(self.evidence.subject, Role.SUBJECT), *rivals]
        return rivals

    def _is_taken(self, rival: Argument) -> bool:
        """Whether a value of the evidence already answers to another value of the claim."""
        mine = [self.claim.subject, *(argument.value for argument in self.arguments)]
        return any(_is(value, rival.value) for value in mine if value is not None)

    def _is_only_open_name(self, argument: Argument) -> bool:
        """Whether `argument` is the one name of the claim that the evidence does not state."""
        names = [other for other in self.arguments if isinstance(other.value, Name) and other is not argument]
        return isinstance(argument.value, Name) and all(self._states(other.value) for other in names)


def _same_place(argument: Argument, rival: Argument) -> bool:
    """Whether two values stand in the same place of a relation: same kind of role, or names of one known kind."""
    if isinstance(argument.value, Moment | Quantity):
        return True
    roles = {argument.role, rival.role}
    if len(roles) == 1 or roles <= _PLACES or roles <= _MAKERS:
        return True
    if Role.MODIFIER in roles or not (isinstance(argument.value, Name) and isinstance(rival.value, Name)):
        return False
    kinds = {argument.value.kind, rival.value.kind}
    return len(kinds) == 1 and NameKind.UNKNOWN not in kinds


def _result(frame: Frame) -> Name | None:
    """What is made in a frame of making, in the active voice: the object, or the subject of a verb without one."""
    made = [a.value for a in frame.arguments if a.role in _RESULTS and isinstance(a.value, Name)]
    return made[0] if made else frame.subject


def _is(value: Value, other: Value) -> bool:
    return compare(value, other) is Agreement.EQUAL


def _differs(value: Value, other: Value) -> bool:
    return compare(value, other) is Agreement.DIFFERENT
