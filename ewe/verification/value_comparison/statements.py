"""From a sentence to what it states: clauses with their subjects, in the active voice, one per event."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ewe.verification.value_comparison.clause_reader import cut_clauses
from ewe.verification.value_comparison.clauses import Argument, Clause
from ewe.verification.value_comparison.coreference import Discourse
from ewe.verification.value_comparison.lexicon import ONCE_IN_A_LIFE, ONCE_PER_RESULT, RELATIONS, NameKind
from ewe.verification.value_comparison.values import Agreement, Moment, Name, Quantity

_LONGEST = 2_000  # Longer "sentences" are tables or noise, and what is said of them would be wrong.
_PERSONAL = frozenset(
    {"birth", "death", "study", "teach", "marry", "live", "retire", "award", "member", "work", "nationality", "travel"}
)
_HOMES = frozenset({"birth", "death", "burial", "live"})
_ASIDES = frozenset({"(", "who", "which", "that", "whom", "whose", "where", "when"})
_PASSIVE = ONCE_PER_RESULT | {"award", "name"}
_DOER = re.compile(r"(?:er|or|ist|ect)s?$")
_TEACHERS = {"": "with", "by": "with"}
_KINDS = {
    ("study", "with"): NameKind.PERSON,
    ("award", ""): NameKind.AWARD,
    ("create", ""): NameKind.WORK,
    **{(relation, "in"): NameKind.PLACE for relation in (*_HOMES, "place", "found", "build", "study", "work", "teach")},
}
_PEOPLE = (NameKind.UNKNOWN, NameKind.PERSON)


def read_statements(sentence: str, discourse: Discourse) -> list[Clause]:
    """The statements of a sentence, in order; `discourse` resolves its pronouns and learns its names and subject.

    Questions have none. Only the first 2,000 characters are read. Never raises.
    """
    clauses = cut_clauses(sentence[:_LONGEST], discourse)
    if sentence.rstrip().endswith("?"):
        return []
    statements = _Builder(discourse).build(clauses)
    if statements and statements[0].subject is not None:
        discourse.focus = statements[0].subject
    for statement in statements:
        head = statement.subject
        _normalize(statement)
        is_maker = "create" in statement.relations and any(
            isinstance(argument.value, Name) and not argument.preposition for argument in statement.arguments
        )
        is_personal = statement.subject is not head or statement.relations & _PERSONAL or is_maker
        if statement.subject is not None and is_personal:
            discourse.mark_person(statement.subject)
    return statements


class _Builder:
    """Joins clauses to statements; keeps the sentence's main subject and what still waits for a relation."""

    def __init__(self, discourse: Discourse) -> None:
        self._discourse = discourse
        self._statements: list[Clause] = []
        self._base: Clause | None = None
        self._waiting: list[Clause] = []
        self._main: Name | None = None
        self._last_name: Name | None = None

    def build(self, clauses: Sequence[Clause]) -> list[Clause]:
        """The statements of all clauses in order."""
        for clause in clauses:
            if clause.relations:
                self._clause(clause)
            elif not self._life_span(clause):
                self._fragment(clause)
            self._last_name = clause.last_name or self._last_name
        main = self._main or self._discourse.focus
        for statement in self._statements:
            statement.subject = statement.subject or main
        return self._statements

    def _clause(self, clause: Clause) -> None:
        first = clause.arguments[0].value if clause.arguments else None
        if clause.subject is None and clause.of_noun and isinstance(first, Name) and not clause.opener:
            clause.subject, clause.arguments = first, clause.arguments[1:]
        is_aside = clause.opener in _ASIDES or (clause.subject is None and self._describes(clause))
        if clause.subject is None:
            understood = self._main or (self._base.subject if self._base is not None else None)
            clause.subject = self._last_name if is_aside else understood
        if not is_aside:
            self._main = self._main or clause.subject
            for waiting in self._waiting:
                clause.arguments = [*waiting.values(), *clause.arguments]
                clause.start = min(clause.start, waiting.start)
            self._waiting.clear()
        earlier = self._base
        resumes = (
            earlier is not None and earlier.of_noun and clause.relations == {"be"} and clause.subject is self._main
        )
        if earlier is not None and clause.subject is not None and (resumes or _continues(clause, earlier)):
            known = earlier.names()
            new = [a for a in clause.values() if not isinstance(a.value, Name) or not _within([a.value], known)]
            _extend(earlier, clause, new)
        else:
            self._statements.append(clause)
            self._base = clause

    def _describes(self, clause: Clause) -> bool:
        """Whether a clause without a subject says more of the name before it: "published in 1815", "a botanist"."""
        opening = clause.opening
        if clause.opener not in (",", "–", "—") or opening is None:
            return False
        has_object = any(a.preposition == "" and isinstance(a.value, Name) for a in clause.arguments)
        is_participle = bool(RELATIONS.get(opening.stem, frozenset()) & _PASSIVE) and not has_object
        return opening.norm in ("a", "an", "the") or is_participle

    def _fragment(self, clause: Clause) -> None:
        """A clause without a relation: a gapped one, or more values of the one before."""
        earlier = self._base
        values = clause.values()
        if earlier is None:
            if clause.subject is not None and self._main is None and not clause.arguments:
                self._main = clause.subject
            else:
                self._waiting.append(clause)
            return
        dates = [argument for argument in values if isinstance(argument.value, Moment)]
        if clause.opener == "(" and len(dates) == len(values) == 1 and self._last_name is not None:
            values = [Argument(self._last_name), *values]  # "The Red Door (1931)"
        elif not clause.is_gapped:
            last = earlier.arguments[-1].preposition if earlier.arguments else ""
            _extend(earlier, clause, (replace(a, preposition=a.preposition or last) for a in values))
            return
        relations, told = set(earlier.relations), (clause.negated, clause.restricted)
        self._statements.append(Clause("", relations, earlier.subject, values, clause.start, clause.end, *told))

    def _life_span(self, clause: Clause) -> bool:
        """(7 May 1867 – 4 July 1934) after a name that can be a person's: birth and death."""
        name, dates = self._last_name, clause.arguments
        if clause.opener != "(" or name is None or name.kind not in _PEOPLE or clause.subject is not None:
            return False
        if len(dates) != 2 or not all(isinstance(argument.value, Moment) for argument in dates):
            return False
        for relation, date in zip(("birth", "death"), dates, strict=True):
            self._statements.append(Clause("(", {relation}, name, [date], clause.start, clause.end))
        return True


def _continues(later: Clause, earlier: Clause) -> bool:
    """Whether a clause tells more of the event of an earlier one: same relation, no new names, no second date.

    "She won the Harrow Prize, awarded in 1931" is one event, and so is "It was written by X and published in 1931".
    """
    shared = later.relations & earlier.relations - {"be", "occupation"}
    if not shared:
        return False
    if not _within(later.names(), earlier.names()):
        once = shared & (ONCE_PER_RESULT | ONCE_IN_A_LIFE)
        if not once or not _within(earlier.names(), later.names()):
            return False
    types = {type(argument.value) for argument in earlier.arguments} & {Moment, Quantity}
    return not any(type(argument.value) in types for argument in later.arguments)


def _extend(earlier: Clause, later: Clause, arguments: Iterable[Argument]) -> None:
    """Has an earlier clause say what a later one adds."""
    earlier.relations |= later.relations
    earlier.arguments += arguments
    earlier.end = max(earlier.end, later.end)
    earlier.negated |= later.negated
    earlier.restricted |= later.restricted


def _within(names: Sequence[Name], others: Sequence[Name]) -> bool:
    return all(any(name.compare(other) is Agreement.EQUAL for other in others) for name in names)


def _normalize(statement: Clause) -> None:
    """The active voice: who makes or receives is the subject; who is born, lives or is taught, too."""
    is_passive = "be" in statement.relations or any(a.preposition == "by" for a in statement.arguments)
    if len(statement.relations) > 1:
        statement.relations -= {"be"}
    head, relations = statement.subject, statement.relations
    is_home, is_taught = bool(relations & _HOMES), "study" in relations
    wanted = "of" if is_home or is_taught else None
    if relations == {"teach", "study"} and not is_passive:
        wanted = ""  # "Jan Holm taught Ada Byron", not "Ada Byron learnt with the teacher Jan Holm"
    if relations & _PASSIVE or (is_passive and any(name.startswith("~") for name in relations)):
        wanted = "" if _DOER.search(statement.of_noun) else "by"  # "The author of Emma is Jane Austen"
    doer = next((a for a in statement.arguments if a.preposition == wanted and isinstance(a.value, Name)), None)
    if head is not None and doer is not None and isinstance(doer.value, Name):
        statement.subject = doer.value
        rest = [argument for argument in statement.arguments if argument is not doer]
        statement.arguments = [Argument(head, "in" if is_home else ""), *rest]
    with_whom = _TEACHERS if "teach" in relations and is_taught else {}
    statement.arguments = [
        _in_place(argument, relations, with_whom.get(argument.preposition, argument.preposition))
        for argument in statement.arguments
    ]


def _in_place(argument: Argument, relations: set[str], preposition: str) -> Argument:
    """The argument behind this preposition; its name with the kind that its place gives it."""
    value = argument.value
    if isinstance(value, Name) and value.kind is NameKind.UNKNOWN:
        kinds = (_KINDS[name, preposition] for name in sorted(relations) if (name, preposition) in _KINDS)
        value = replace(value, kind=next(kinds, NameKind.UNKNOWN))
    return Argument(value, preposition)
