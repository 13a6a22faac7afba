"""Attributes that people speak of in many ways, each of one value at a time: home, employer, studies, partner ..."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ewe.longterm.change.change_clauses import NEGATED, Clause, clauses, owner_of, stems
from ewe.longterm.change.change_patterns import attribute_patterns, bond_patterns
from ewe.longterm.change.change_words import normal
from ewe.text.english import words_of
from ewe.text.words import fold

_COUNTRIES = words_of(
    """england scotland wales ireland britain uk france germany italy spain portugal norway sweden denmark finland
    iceland poland austria switzerland netherlands holland belgium greece turkey russia ukraine czechia hungary romania
    bulgaria croatia serbia slovenia slovakia estonia latvia lithuania usa america canada mexico brazil argentina chile
    peru colombia china japan korea vietnam thailand india pakistan indonesia malaysia singapore australia zealand egypt
    morocco kenya nigeria ghana ethiopia israel iran iraq europe asia africa california texas florida bavaria tuscany
    andalusia brittany cornwall kent yorkshire luxembourg malta cyprus"""
)
_NO_EMPLOYER = words_of(
    """home night nights day weekends weekend least first present moment time office desk reception front factory
    everyone everybody us me you him them her free fun money living children people clients kids
    animals customers patients myself school-holidays once all it that this full part"""
)
_NO_STUDY = words_of("hard harder home night library lot exam exams test tests together abroad weekend")


@dataclass(frozen=True, slots=True)
class Reading:
    """What somebody said of an attribute. owners: whose it is. value: stems, none where it is not named.

    holds: whether it is so; false where it has ended, or is not so. sure: whether it is said, or a sign of change
    stands beside it, so that an older value has to give way.
    """

    owners: frozenset[str]
    attribute: str
    value: frozenset[str]
    holds: bool = True
    sure: bool = True


_VEHICLES = {
    "bike": "bike bikes cycle cycles cycling bicycle e-bike", "car": "car drive drives driving", "bus": "bus",
    "train": "train", "tram": "tram", "metro": "metro tube subway underground", "foot": "walk walks walking foot",
    "scooter": "scooter",
}  # fmt: skip
_OTHERS_BOND = re.compile(
    r"\b(?:ex[- ]\w+|business partner|(?:sister|brother|friend|cousin|mother|father|mum|mom|dad|boss|neighbour|"
    r"colleague|"
    r"son|daughter)s?'s? (?:husband|wife|boyfriend|girlfriend|fianc))",
    re.IGNORECASE,
)
_OWN_BOND = re.compile(r"\b(?:is|are) (?:\w+ )?(?:my|our) (?:girlfriend|boyfriend|partner|fiance|husband|wife)\b")
_STEPS = {"single": 0, "together": 1, "engaged": 2, "married": 3, "apart": 4}


@lru_cache(maxsize=1 << 14)
def readings(text: str) -> tuple[Reading, ...]:
    """What a statement says of attributes; nothing of what was long ago, might be, or is for some days only."""
    found = [reading for clause in clauses(text) if _tells(clause) for reading in _by_patterns(clause)]
    found += [bond for clause in clauses(text) if clause.real and not clause.past for bond in _bonds(clause)]
    return tuple(dict.fromkeys(found))


def _tells(clause: Clause) -> bool:
    return clause.real and not clause.ahead and not clause.past and not clause.brief


def _by_patterns(clause: Clause) -> Iterator[Reading]:
    person = clause.by_person
    for pattern in attribute_patterns():
        if not (person or pattern.anybody or "owner" in pattern.text.groupindex):
            continue
        if (found := pattern.text.search(clause.text)) is None or (clause.event and not pattern.event and pattern.sure):
            continue
        groups = found.groupdict()
        said = next((groups[name] for name in ("value", "value2", "value3") if groups.get(name)), None)
        value = _value(pattern.attribute, said) if said else frozenset({pattern.value} - {""})
        if pattern.attribute == "commute":
            value = _vehicles(clause)
        if said and not value:
            continue
        owners = owner_of(groups["owner"], clause) if groups.get("owner") else clause.owners
        if pattern.attribute in _BY_ROLES:
            roles = (*_ROLES, *_PARENTS) if pattern.attribute == "expecting" else _ROLES
            owners = frozenset(owner.partition("/")[0] if owner.endswith(roles) else owner for owner in owners)
        negated = NEGATED.search(clause.low[: found.end()]) is not None
        if negated and pattern.value in ("some", "meat"):
            continue
        denied = negated and pattern.holds and pattern.attribute not in _WITH_NOT
        if denied and pattern.value:
            continue
        sure = (pattern.sure or clause.marked) and not (denied and not value)
        yield Reading(owners, pattern.attribute, value, pattern.holds and not denied, sure)


# Who has a boss or a flatmate is spoken of, when they are.
_BY_ROLES = frozenset({"household", "tenure", "standing", "expecting"})
_ROLES = tuple(
    f"/{normal(role)}" for role in ["boss", "manager", "colleague", "colleagues", "flatmate", "landlord", "baby"]
)
_PARENTS = tuple(f"/{normal(role)}" for role in ("wife", "girlfriend", "partner", "fiancee"))
_WITH_NOT = frozenset({"alcohol", "smoking", "diet", "expecting", "standing", "licence"})


def _vehicles(clause: Clause) -> frozenset[str]:
    return frozenset(kind for kind, forms in _VEHICLES.items() if not clause.words.isdisjoint(forms.split()))


def _value(attribute: str, said: str) -> frozenset[str]:
    words = re.findall(r"[\w&'-]+|\d+[.,]\d+", fold(said))
    if attribute == "employer" and words and words[-1 if len(words) == 1 else 0] in _NO_EMPLOYER:
        return frozenset()
    if attribute == "study" and not _NO_STUDY.isdisjoint(words):
        return frozenset()
    if attribute == "home" and not _COUNTRIES.isdisjoint(words) and len(words) == 1:
        return frozenset({f"country {words[0]}"})
    if attribute in ("weight", "age", "height", "salary"):
        return frozenset(words)
    if attribute in ("shift", "hours", "hair", "hair colour", "diet"):
        return frozenset(normal(part) for word in words for part in word.split("-"))
    return stems(fold(said)) or frozenset(words[-1:])


def _bonds(clause: Clause) -> Iterator[Reading]:
    """How a clause says that somebody stands to a partner."""
    if _OTHERS_BOND.search(clause.text):
        return
    for status, pattern in bond_patterns():
        if pattern.search(clause.text) is not None and not clause.negated:
            owners = frozenset(
                owner.partition("/")[0] if "/" in owner and owner.partition("/")[2] in _BOUND else owner
                for owner in clause.owners
            )
            if _OWN_BOND.search(clause.low):  # "Jonna is my girlfriend"
                owners |= {clause.speaker}
            yield Reading(owners, "bond", frozenset({status}))


_BOUND = frozenset(map(normal, words_of("husband wife boyfriend girlfriend fiance partner")))


_ALLOWED: dict[str, dict[str, tuple[str, ...]]] = {
    "standing": {
        "working": ("unemployed", "student", "retired", "leave"),
        "unemployed": ("working", "employed"),
        "retired": ("working", "unemployed", "employed"),
        "employed": ("unemployed",),
        "student": ("working",),
    },
    "diet": {
        "meat": ("vegan", "vegetarian"),
        "vegetarian": ("meat", "vegan", "pescatarian"),
        "vegan": ("meat", "vegetarian", "pescatarian"),
        "pescatarian": ("meat", "vegan", "vegetarian"),
    },
    "alcohol": {"none": ("some",), "some": ("none",)},
    "smoking": {"none": ("some",), "some": ("none",)},
    "tenure": {"own": ("rent",)},
    "licence": {"some": ("none",)},
    "workplace": {"home": ("office",), "office": ("home",)},
    "stage": {"school": ("nursery",)},
    "household": {"alone": ("others",), "others": ("alone",)},
}
"""{attribute: {new value: the values it takes the place of}} where others can hold beside each other."""


def replaces(newer: Reading, older: Reading) -> bool:
    """Whether the newer reading takes the place of the older one: another value, or the end of that one."""
    if newer.attribute != older.attribute or newer.owners.isdisjoint(older.owners):
        return False
    if newer.attribute == "bond":
        [new], [old] = newer.value, older.value
        return new != old and (_STEPS[new] > _STEPS[old] or old == "apart")
    shared = newer.value & older.value
    if not newer.holds:
        return older.holds and (not newer.value or bool(shared))
    if not older.holds:
        return newer.sure and bool(shared)
    if newer.attribute in _ALLOWED:
        [new], [old] = newer.value or {""}, older.value or {""}
        return old in _ALLOWED[newer.attribute].get(new, ())
    if newer.attribute == "home" and len({one.startswith("country ") for one in newer.value | older.value}) > 1:
        return False
    if newer.attribute == "age" and newer.value <= older.value:
        return False
    return newer.sure and bool(newer.value) and bool(older.value) and not shared
