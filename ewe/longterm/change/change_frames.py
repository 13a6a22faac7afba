"""Two statements of one frame that give it two values of a kind: "the stand-up is at 9:15", "... is at 9:45 now"."""

import re
from functools import lru_cache

from ewe.longterm.change.change_clauses import Clause, stems
from ewe.longterm.change.change_values import Value, values_of
from ewe.longterm.change.change_words import PEOPLE, kind_of, normal
from ewe.text.english import words_of

_IS = re.compile(
    r"^(?P<subject>(?:[\w'&-]+,? ){0,7}?[\w&-]+)(?: is| are| will be| ends in| ending in|'s(?= (?:at|on|in|now|going|"
    r"from|with|next|a|an)\b)) (?P<rest>.*)$"
)
_ONE_AT_A_TIME = re.compile(
    r"\b(?:starts?|begins?|opens?|closes?|ends?|leaves?|arrives?|departs?|gets? up|finish(?:es)?|costs?|weighs?|"
    r"earns?|pays?|"
    r"charges?|lasts?|sleeps?|takes? \d|takes? (?:one|two|three|four|five)|works? \d|runs? on)\b"
)
_THING = re.compile(r"(?:my|our|his|her|their|the) (?:new |old )?([\w-]+) ")
_MANY = words_of("also another other too both")
_ORDERED = re.compile(r"^which ")
_EXCLUSIVE = frozenset(
    {"reach", "mail", "clock", "date", "money", "kg", "dose", "number", "percent", "metre", "cm", "code", "colour"}
)
_COUNTED = frozenset(
    {
        "child",
        "cat",
        "dog",
        "hen",
        "people",
        "room",
        "bedroom",
        "times",
        "day",
        "hour",
        "minute",
        "sugar",
        "km",
        "mile",
        "litre",
        "degree",
        "page",
        "stone",
        "pound",
    }
)
_NEW_VALUE = re.compile(
    r"\b(?:to|is|are|at|on|with|into|for|in|it is|ending in|now|use|says|of|by|from|was|as)\s+(?:[\w]+\s+){0,2}?$"
)
_MOST_CLAUSE_WORDS = 18
_SWITCHED = re.compile(
    r"\b(?:changed?|switched|moved?|move|renamed|relocated|replaced|swapped|went over|booked|transferred|migrated|"
    r"successor)\b"
)
_NOW = re.compile(r"\b(?:now|these days|no longer|any ?more|instead|this term|from next|the new|my new|our new)\b")
_MOST_WORDS_NOW = 10
_CHANGED = re.compile(
    r"\b(?:changed?|switched|moved?|move|took in|adopted|repainted|painted|dyed|ups|pushed|postponed|rescheduled|"
    r"brought forward|raised|lowered|reduced|increased|cut|upped|"
    r"renamed|went (?:up|down|over|with)|gone (?:up|down)|put (?:\w+ ){1,3}(?:up|down)|now|down to|up to|dropped|"
    r"rose|instead|"
    r"no longer|these days|from next|starting|as of|from now on|settled|beat|replaced|this term|new|full|closed|dead|"
    r"any ?more|in the end|since|successor|again|double-booked|got)\b"
)


def gives_another(older: Clause, newer: Clause) -> str:
    """The kind of value of which both give one, so that the newer one holds now; empty where both can hold."""
    if not _comparable(older, newer):
        return ""
    new = values_of(newer)
    old = values_of(older) if new else ()
    for value in new:
        before = [one for one in old if one.kind == value.kind]
        if before and all(one.text != value.text for one in before) and _one_frame(older, newer, value, old, new):
            return value.kind
    return ""


def is_another_make(older: Clause, newer: Clause) -> str:
    """The kind of thing of which both name a make, the newer with a word of change; empty where there is none."""
    if not _comparable(older, newer) or not (newer.changes or newer.marked):
        return ""
    makes = [{kind: one for one in clause.content if (kind := kind_of(one))} for clause in (older, newer)]
    return next((kind for kind, one in makes[0].items() if makes[1].get(kind, one) != one), "")


def _comparable(older: Clause, newer: Clause) -> bool:
    if not (older.real and newer.real) or older.negated or newer.negated or older.past or newer.past:
        return False
    if max(len(older.low.split()), len(newer.low.split())) > _MOST_CLAUSE_WORDS:
        return False
    return not older.event and not newer.brief and _MANY.isdisjoint(newer.words)


def _one_frame(older: Clause, newer: Clause, value: Value, old: tuple[Value, ...], new: tuple[Value, ...]) -> bool:
    names = (
        {word for one in (*old, *new) if one.kind == "name" for word in one.text.split()}
        if value.kind == "name"
        else set()
    )
    owners = older.owners | newer.owners if value.kind == "name" else frozenset[str]()
    drop = _UNITS | frozenset(map(normal, names | owners))
    about, about_new = older.content - drop, newer.content - drop
    if value.kind != "name" and not _same_names(older, newer):
        return False
    if value.kind == "name" and names & (older.owners | newer.owners):
        return False
    subject, subject_new = _subject(older), _subject(newer)
    is_frame = bool(subject and subject_new)
    if is_frame and (subject <= subject_new or subject_new <= subject):
        return _holds_one(value, older, newer)
    if value.kind == "place":
        return False
    loose = value.kind in ("name", "part", "weekday")
    if value.kind == "clock" and _names_a_day(newer) and not (_names_a_day(older) or newer.changes):
        return False  # "I get up at six" holds beside "On Sundays I get up at nine"
    marked = _is_switched(older, newer) if loose else _CHANGED.search(newer.low) is not None
    shared = about & about_new
    if marked and shared and _heads_meet(older, newer, shared):
        return value.kind != "number" or "number" in newer.words or "number" in older.words
    alike = bool(shared) and (about <= about_new or about_new <= about)
    return (
        alike
        and not _of_another_thing(older, newer)
        and not newer.event
        and value.kind in _EXCLUSIVE
        and _ONE_AT_A_TIME.search(newer.low) is not None
    )


def _names_a_day(clause: Clause) -> bool:
    return any(value.kind == "weekday" for value in values_of(clause)) or "weekend" in clause.low


def _of_another_thing(older: Clause, newer: Clause) -> bool:
    """Whether the newer one begins with a thing that the older one does not name: "I weigh", "my suitcase weighs"."""
    thing = _THING.match(newer.low)
    return thing is not None and thing[1] not in PEOPLE and normal(thing[1]) not in older.content


def _is_switched(older: Clause, newer: Clause) -> bool:
    """Whether a verb of change, or in short statements a word like "now", says that one name gave way to another."""
    if _SWITCHED.search(newer.low) is not None:
        return True
    if older.owners.isdisjoint(newer.owners):
        return False
    short = max(len(older.low.split()), len(newer.low.split())) <= _MOST_WORDS_NOW
    return short and _NOW.search(newer.low) is not None


def _holds_one(value: Value, older: Clause, newer: Clause) -> bool:
    """Whether what something "is" is one: a time or number always, a name behind both verbs only."""
    if value.kind in ("part", "place"):
        return _CHANGED.search(newer.low) is not None or (
            value.kind == "place" and newer.low.endswith(value.text) and older.low.endswith(_places(older))
        )
    if value.kind in _EXCLUSIVE or value.kind == "weekday" or _ORDERED.match(value.kind):
        return True
    if value.kind == "name":
        return bool(_NAMED.search(older.low) and _NAMED.search(newer.low))
    return value.kind in _COUNTED and not newer.event


def _places(clause: Clause) -> tuple[str, ...]:
    return tuple(value.text for value in values_of(clause) if value.kind == "place") or ("?",)


_NAMED = re.compile(r"(?: is|'s)(?: now| called| named| with| in| at)* [\w.&-]+(?: [\w.&-]+)?(?: now| these days)?$")
_UNITS = frozenset(
    map(normal, words_of("kg kilo kilos euro euros km mg m minutes hours o'clock grade year semester room size"))
)


def _same_names(older: Clause, newer: Clause) -> bool:
    """Whether one names nobody and nothing that the other one does not: "my call with Priya", "my call with Jens"."""
    one, other = older.names - older.owners - _CALENDAR, newer.names - newer.owners - _CALENDAR
    return one <= other or other <= one


_CALENDAR = words_of(
    """monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
    sundays january february march april may june july august september october november december"""
)


@lru_cache(maxsize=1 << 14)
def _subject(clause: Clause) -> frozenset[str]:
    found = _IS.match(clause.low)
    people = frozenset(map(normal, (PEOPLE - {"boss", "teacher", "coach"}) | clause.owners))
    return stems(found["subject"]) - people if found else frozenset()


def _heads_meet(older: Clause, newer: Clause, shared: frozenset[str]) -> bool:
    """Whether what both speak of is the subject or the object, not a mere detail of the older one."""
    words = [normal(word) for word in re.findall(r"[\w-]+", older.low)]
    places = [place for place, word in enumerate(words) if word in shared]
    return bool(places) and places[0] < 8
