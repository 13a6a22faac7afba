"""Older statements that a new one may take the place of: found by their words, and by the words of its attributes."""

import re
from collections.abc import Sequence

from ewe.longterm.change.change_attributes import readings
from ewe.longterm.change.change_clauses import clauses
from ewe.longterm.change.change_reading import Comparison, Stance, adds_nothing, compare
from ewe.longterm.records import Memory
from ewe.longterm.store import MemoryStore
from ewe.longterm.store.memory_rows import Statement
from ewe.text.words import fold

MOST_OLDER = 24
"""At most so many older statements are compared with a new one; the closest by their words."""
_LONGEST = 60  # words; longer texts are read for what they say first
# By what words people speak of an attribute, whatever its value is.
_SPOKEN = {
    "home": "live living flat apartment house home place moved based",
    "employer": "work working job boss employed company office",
    "occupation": "work working job as am is",
    "study": "study student studying degree university",
    "university": "study student studying degree",
    "enrolled": "study student year semester university",
    "bond": "single girlfriend boyfriend partner husband wife fiance fiancee engaged married together",
    "drives": "car drive drives",
    "commute": "work office bus train tram bike car walk cycle",
    "standing": "student unemployed job looking work retired",
    "expecting": "pregnant expecting baby born due",
    "household": "alone live flat share flatmate",
    "diet": "vegan vegetarian meat eat eats",
    "alcohol": "drink alcohol wine beer",
    "smoking": "smoke smokes smoking cigarette",
    "weight": "weigh weighs kilos kg",
    "hair": "hair",
    "hair colour": "hair",
    "salary": "earn earns salary",
    "hours": "work hours days full part time",
    "stage": "kindergarten nursery school",
}
_WIDER = {
    "puppy": "dog pet pets",
    "kitten": "cat pet pets",
    "dog": "pet pets",
    "cat": "pet pets",
    "son": "kids children",
}
_WIDER |= {"daughter": "kids children", "baby": "kids children pregnant"}


def older_statements(memory: Memory, store: MemoryStore) -> list[tuple[Memory, Comparison]]:
    """The memories of the same scope that a new one changes or says again, or that change it, the closest first.

    They hold today, or held when the new one began: a history can be told in any order.
    """
    scopes, close = [memory.scope], dict[int, Comparison]()
    with store.seeing(scopes):
        within = store.scope_numbers(scopes)
        hits = store.lexicon.search(_asked(_beginning(memory.content)), within, MOST_OLDER)
        said = store.statements([number for number, _ in hits], within)
        for number, _ in hits:
            older = said.get(number)
            if (
                older is None
                or older.id == memory.id
                or not (older.valid_until is None or older.holds_at(memory.begins))
            ):
                continue
            if (comparison := compared(memory, older)).stance is not Stance.APART:
                close[number] = comparison
        rows = store.rows(list(close), scopes)
    return [(rows[number], comparison) for number, comparison in close.items() if number in rows]


def compared(memory: Memory, other: Memory | Statement) -> Comparison:
    """How a new memory stands to one that is there: the one that began later is read as the newer statement."""
    content = _beginning(memory.content)
    if other.begins > memory.begins:
        return compare(content, other.content)
    return compare(other.content, content)


def said_already(memory: Memory, older: Sequence[tuple[Memory, Comparison]]) -> Memory | None:
    """Which of its `older_statements` says what a new memory says in other words, which add nothing.

    Turns of a conversation all stay.
    """
    if memory.kind == "turn":
        return None
    again = (other for other, one in older if one.stance is Stance.AGAIN)
    same = (other for other in again if other.kind == memory.kind and adds_nothing(other.content, memory.content))
    return next(same, None)


def _beginning(content: str) -> str:
    return " ".join(content.split()[:_LONGEST])


def _asked(content: str) -> str:
    """The words to look for: those of the statement, and how people speak of what it is about."""
    spoken = [_SPOKEN.get(reading.attribute, "") for reading in readings(content)]
    known = [word for clause in clauses(content) for word in re.findall(r"\w+", fold(clause.text))]
    return " ".join([content, *dict.fromkeys(spoken), *(_WIDER[word] for word in known if word in _WIDER)])
