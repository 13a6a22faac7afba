"""One claim against one statement of the evidence: which of its values it states, and which it contradicts.

A value contradicts only if everything else that identifies the statement agrees: the relation, the subject, and the
other names (for a date or number). Whether a difference is a contradiction then depends on the slot. Some are filled
once by their nature: dates and places of birth, death and foundation, the maker and date of a work, the date of an
event whose names all agree. Others can be filled many times (works, prizes, posts); a different value there contradicts
only for a collection that is taken to be complete about what it covers (partial completeness: if it knows a value of
this relation for this subject, it knows all).
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from ewe.verification.value_comparison.clauses import MODIFIER, Argument, Clause
from ewe.verification.value_comparison.lexicon import (
    ONCE_IN_A_LIFE,
    ONCE_PER_RESULT,
    ONE_PLACE,
    ONE_WAY,
    SYMMETRIC,
    NameKind,
)
from ewe.verification.value_comparison.values import Agreement, Bound, Moment, Name, Quantity, Value, compare

_SUBJECT = "subject"  # In the place of the preposition.
_RESULTS = frozenset({"", "of"})
_PLACES = frozenset({"in", "at", "from"})
_MAKERS = frozenset({_SUBJECT, "by"})
_STARTS, _ENDS = frozenset({"from", "since"}), frozenset({"until", "to"})
_ENDPOINTS = _STARTS | _ENDS


class Stance(StrEnum):
    """What a statement says about one value of a claim.

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


def checkable_arguments(claim: Clause) -> list[Argument]:
    """The arguments of a claim that evidence has to settle: all but further mentions of the subject."""
    return [a for a in claim.arguments if claim.subject is None or not _is(a.value, claim.subject)]


def compare_statements(claim: Clause, evidence: Clause) -> list[Finding]:
    """A finding for the claim's subject, then one per checkable argument; all silent if the relation differs."""
    arguments = checkable_arguments(claim)
    shared = claim.relations & evidence.relations
    if claim.subject is None or evidence.negated or not shared or _is_exchanged(claim, evidence, shared):
        return [_SILENT] * (1 + len(arguments))
    made = None
    if shared & ONCE_PER_RESULT:
        results = (a.value for a in arguments if a.preposition in _RESULTS and isinstance(a.value, Name))
        made = next(results, claim.subject)
    pair = _Pair(claim.subject, arguments, evidence, shared, made)
    return [pair.subject_finding(), *(pair.finding(argument) for argument in arguments)]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A claim and a statement that share relations; made is what the claim says was made, if it says so."""

    subject: Name
    arguments: list[Argument]
    evidence: Clause
    relations: set[str]
    made: Name | None

    def subject_finding(self) -> Finding:
        """Whether the evidence has another subject for what is otherwise the same statement."""
        if self._states(self.subject):
            return _STATES
        rivals = [rival for rival in self._rivals(Argument(self.subject, _SUBJECT)) if rival.preposition in _MAKERS]
        others = tuple(rival.value for rival in rivals)
        if not others:
            return _SILENT
        if self.made is not None and self.made is not self.subject:
            return Finding(Stance.CONTRADICTS, others) if self._states(self.made) else _SILENT
        values = [argument.value for argument in self.arguments if isinstance(argument.value, Name | Moment)]
        is_whole = {type(value) for value in values} == {Name, Moment}
        if self.relations & ONCE_IN_A_LIFE or not is_whole or not all(map(self._states, values)):
            return _SILENT
        return Finding(Stance.DIFFERS, others)  # "Ada won the prize in 1931", not Jan

    def finding(self, argument: Argument) -> Finding:
        """What the evidence says about `argument`, if it speaks of the same thing."""
        if not self._is_about_the_same(argument):
            return _SILENT
        if self._states(argument.value, argument.preposition):
            return _STATES
        rivals = self._rivals(argument)
        same = tuple(rival.value for rival in rivals if _same_place(argument, rival))
        if same and self._is_single(argument):
            return Finding(Stance.CONTRADICTS, same)
        if isinstance(argument.value, Moment | Quantity):
            return _SILENT
        if len(rivals) == 1 and self._is_only_open_name(argument):
            same = (rivals[0].value,)
        return Finding(Stance.DIFFERS, same) if same else _SILENT

    def _is_about_the_same(self, argument: Argument) -> bool:
        """Whether the evidence has the names that identify the statement around `argument`."""
        if self.relations & ONE_WAY:
            return self.evidence.subject is not None and _is(self.subject, self.evidence.subject)
        if self.made is not None and argument.value is not self.made:
            return self._states(self.made)
        return self._states(self.subject) and all(self._states(name) for name in self._anchors(argument))

    def _anchors(self, argument: Argument) -> list[Name]:
        """The names besides the subject that must agree before a date or number can be compared."""
        if not isinstance(argument.value, Moment | Quantity):
            return []
        return [other.value for other in self.arguments if isinstance(other.value, Name)]

    def _is_single(self, argument: Argument) -> bool:
        """Whether the slot of `argument` holds one value only."""
        value = argument.value
        if isinstance(value, Moment):
            return bool(self.relations & ONCE_IN_A_LIFE or self.made is not None or self._anchors(argument))
        if not isinstance(value, Name):
            return isinstance(value, Quantity)
        if self.relations & ONE_PLACE and value.kind in (NameKind.UNKNOWN, NameKind.PLACE):
            return argument.preposition in _PLACES
        return self.made is not None and argument.preposition in _MAKERS

    def _states(self, value: Value, preposition: str = "") -> bool:
        """Whether the evidence holds `value` in a place where it can mean the same."""
        return any(_is(value, rival.value) for rival in self._values(Argument(value, preposition)))

    def _rivals(self, argument: Argument) -> list[Argument]:
        """The other values of the evidence in the place of `argument`; not those that the claim has elsewhere."""
        mine = [self.subject, *(other.value for other in self.arguments)]
        return [
            rival
            for rival in self._values(argument)
            if MODIFIER not in (argument.preposition, rival.preposition)
            and compare(argument.value, rival.value) is Agreement.DIFFERENT
            and not any(_is(rival.value, value) for value in mine)  # a date that a bound admits is none it states
            and not _may_both_hold(argument, rival)
        ]

    def _values(self, argument: Argument) -> list[Argument]:
        """Values of the evidence of the same type, its subject among them; ends of periods are kept apart."""
        subject = [] if self.evidence.subject is None else [Argument(self.evidence.subject, _SUBJECT)]
        values = [v for v in [*subject, *self.evidence.arguments] if type(v.value) is type(argument.value)]
        return [value for value in values if not _is_other_end(argument.preposition, value.preposition)]

    def _is_only_open_name(self, argument: Argument) -> bool:
        """Whether `argument` is the one name of the claim that the evidence does not state."""
        names = [other.value for other in self.arguments if isinstance(other.value, Name) and other is not argument]
        return isinstance(argument.value, Name) and all(self._states(name) for name in names)


def _is_exchanged(claim: Clause, evidence: Clause, relations: set[str]) -> bool:
    """Whether subject and another name have each other's places: "A succeeded B" beside "B succeeded A"."""
    mine, theirs = claim.subject, evidence.subject
    if mine is None or theirs is None or relations <= SYMMETRIC or _is(mine, theirs):
        return False
    places = {argument.preposition for argument in claim.arguments if _is(argument.value, theirs)}
    return any(argument.preposition in places for argument in evidence.arguments if _is(argument.value, mine))


def _same_place(argument: Argument, rival: Argument) -> bool:
    """Whether two values stand in the same place of a relation: alike prepositions, or names of one known kind."""
    if isinstance(argument.value, Moment | Quantity):
        return True
    prepositions = {argument.preposition, rival.preposition}
    if len(prepositions) == 1 or prepositions <= _PLACES or prepositions <= _MAKERS:
        return True
    kinds = {value.kind for value in (argument.value, rival.value) if isinstance(value, Name)}
    return len(kinds) == 1 and NameKind.UNKNOWN not in kinds


def _is_other_end(one: str, other: str) -> bool:
    return (one in _STARTS and other in _ENDS) or (one in _ENDS and other in _STARTS)


def _may_both_hold(argument: Argument, rival: Argument) -> bool:
    """Whether a date and an end of a period are both true: "in 1850" or "before 1850", and "until 1860".

    The end of the claim's period is compared with a single date as it is: "since 1990" is wrong of what began in 1994.
    """
    is_bound = isinstance(rival.value, Moment) and rival.value.bound is not None
    return _leaves_open(rival, argument) or (is_bound and _leaves_open(argument, rival))


def _leaves_open(end: Argument, date: Argument) -> bool:
    """Whether a period with this beginning or end ("since 1840", "until 1860") may have lasted at another date."""
    if not isinstance(end.value, Moment) or end.preposition not in _ENDPOINTS or date.preposition in _ENDPOINTS:
        return False
    lasted = replace(end.value, bound=Bound.AFTER if end.preposition in _STARTS else Bound.BY)
    return compare(lasted, date.value) is not Agreement.DIFFERENT


def _is(value: Value, other: Value) -> bool:
    return compare(value, other) is Agreement.EQUAL
