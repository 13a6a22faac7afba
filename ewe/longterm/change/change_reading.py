"""What a newer statement says of an older one: that the world has changed, the same again, or neither."""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from ewe.longterm.change.change_attributes import readings, replaces
from ewe.longterm.change.change_beginnings import has_one, is_found, is_open, is_there_now, new_things
from ewe.longterm.change.change_clauses import Clause, clauses, whole
from ewe.longterm.change.change_endings import ended_by, has_left, is_gone, is_over, tells_end
from ewe.longterm.change.change_frames import gives_another, is_another_make
from ewe.longterm.change.change_values import Value, values_of
from ewe.longterm.change.change_words import differ, normal
from ewe.longterm.scoring.contradictions import same_attribute

_GERUND = re.compile(r"[a-z]+ing\b")  # "Taking care of oneself is vital": a remark, of which there are many
_MANY_VALUES = frozenset({normal("prefer")})  # "I prefer trains", "I prefer window seats"; but one in the morning
_MOST_WORDS = 30
_MOST_CLAUSES = 4
_MOST_CLAUSE_WORDS = 20
_LEAST_SHARED = 2
_AGES = re.compile(r"\b(?:older|elder|eldest|oldest|younger|youngest)\b")
_RELATIVE = re.compile(
    r"\b[Mm]y (?:\w+ )?(sister|brother|daughter|son|niece|nephew|cousin|aunt|uncle|friend|colleague|neighbour) "
    r"([A-Z]\w+)"
)


class Stance(Enum):
    """How a newer statement stands to an older one."""

    CHANGED = "changed"
    AGAIN = "again"
    APART = "apart"


@dataclass(frozen=True, slots=True)
class Comparison:
    """stance: how they stand. because: the attribute that changed, or the rule that says so; empty for APART."""

    stance: Stance
    because: str = ""


_APART = Comparison(Stance.APART)


@lru_cache(maxsize=1 << 14)
def compare(older: str, newer: str) -> Comparison:
    """Whether the newer statement takes the older one's place, says it again, or leaves it; no model is asked.

    Long texts say several things, of which no more than one would have changed: they are left, unless both are one.
    """
    if older == newer:
        return Comparison(Stance.AGAIN, "the same words")
    if len(older.split()) > _MOST_WORDS or len(clauses(older)) > _MOST_CLAUSES:
        return _APART
    if _of_two_relatives(older, newer):
        return _APART
    because = _changed_attribute(older, newer) or _changed_thing(older, newer) or _changed_value(older, newer)
    if because:
        return Comparison(Stance.CHANGED, because)
    return Comparison(Stance.AGAIN, "the same again") if says_again(older, newer) else _APART


def _of_two_relatives(older: str, newer: str) -> bool:
    """Whether both speak of relatives of one kind, by two names or ages: "my sister Ana", "my older son"."""
    one, other = (dict(_RELATIVE.findall(text)) for text in (older, newer))
    ages = [{found.startswith("young") for found in _AGES.findall(text)} for text in (older, newer)]
    apart = bool(ages[0] and ages[1]) and ages[0].isdisjoint(ages[1])
    return apart or any(other.get(kind, name) != name for kind, name in one.items())


def _changed_attribute(older: str, newer: str) -> str:
    for new in readings(newer):
        for old in readings(older):
            if replaces(new, old):
                return new.attribute
    return ""


def _changed_thing(older: str, newer: str) -> str:
    for new in clauses(newer):
        if not (new.real and new.content) or len(new.words) > _MOST_CLAUSE_WORDS:
            continue
        for old in clauses(older):
            if because := _rule(old, new):
                return because
    old, new = whole(older), whole(newer)
    if not _of_one(old, new) or differ(old.sides, new.sides, new.changes):
        return ""
    return is_another_make(old, new) or gives_another(old, new)


def _changed_value(older: str, newer: str) -> str:
    """Whether both are alike but for one value, behind a word that takes one at a time."""
    old, new = whole(older), whole(newer)
    named = {word.rpartition("/")[2] for word in old.owners | new.owners} | {normal(word) for word in old.names}
    named |= _MANY_VALUES
    may = (
        old.real
        and new.real
        and bool((old.content & new.content) - named)
        and not _GERUND.match(new.low)
        and _of_one(old, new)
        and not differ(old.sides, new.sides)
    )
    return "value" if may and same_attribute(older, newer) else ""


def _of_one(old: Clause, new: Clause) -> bool:
    return not old.owners.isdisjoint(new.owners) or _same_things(old, new)


def _rule(old: Clause, new: Clause) -> str:
    """The first rule by which a clause takes the place of another one; empty where none does."""
    if not (is_open(old) or tells_end(new) or new_things(new) or values_of(new)) or differ(
        old.sides, new.sides, new.changes
    ):
        return ""
    mine = not old.owners.isdisjoint(new.owners)
    if is_gone(new, old):
        return "gone"
    if any(
        is_over(ended, old)
        and (mine or ended & old.owners or new.names & old.owners or (_bases(old) & _bases(new) and ended <= old.names))
        for ended in ended_by(new)
    ):
        return "ended"
    for owners, head in new_things(new):
        if not {owner.partition("/")[0] for owner in owners}.isdisjoint(_bases(old)) and has_one(old, head):
            return f"new {head}"
    if mine and has_left(new, old):
        return "role"
    if mine and is_there_now(old, new):
        return "there now"
    if mine and is_found(old, new):
        return "found"
    return gives_another(old, new) if mine or _same_things(old, new) else ""


def _bases(clause: Clause) -> frozenset[str]:
    """The owners without the persons of theirs: of "my boss", me."""
    return frozenset(owner.partition("/")[0] for owner in clause.owners)


def _same_things(old: Clause, new: Clause) -> bool:
    """Whether the owner of one is a thing of the other's, whose name begins the clause: "Pottery is on Thursdays"."""
    return any(owner in other.words for one, other in ((old, new), (new, old)) for owner in one.owners)


def says_again(older: str, newer: str) -> bool:
    """Whether both say the same of the same, in other words: nothing that tells them apart is left."""
    one, other = clauses(older), clauses(newer)
    if not one or not other or any(clause.negated for clause in one) != any(clause.negated for clause in other):
        return False
    values, others = _values(older), _values(newer)
    first, second = _content(older), _content(newer)
    if any(clause.changes for clause in other) or values != others:
        return False
    if one[0].owners.isdisjoint(other[0].owners):
        return first == second and len(first) > 1
    known = {(read.attribute, read.value) for read in readings(older)} & {
        (read.attribute, read.value) for read in readings(newer)
    }
    enough = len(first & second) + len(known) >= _LEAST_SHARED
    few = min(len(first - second), len(second - first)) == 0 or (bool(known) and len(first ^ second) <= _LEAST_SHARED)
    return first == second or (enough and few and bool(first & second))


def adds_nothing(older: str, newer: str) -> bool:
    """Whether a statement that is said again names nothing that the older one does not."""
    return _content(newer) <= _content(older)


@lru_cache(maxsize=1 << 14)
def _values(text: str) -> frozenset[Value]:
    found = clauses(text)
    values = {value for clause in found for value in values_of(clause) if value.kind not in ("name", "place", "part")}
    return frozenset(values | {Value("name", name) for clause in found for name in clause.names})


@lru_cache(maxsize=1 << 14)
def _content(text: str) -> frozenset[str]:
    return frozenset(stem for clause in clauses(text) for stem in clause.content)
