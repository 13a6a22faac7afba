"""Words that people ask with and words that they tell the same with: "Where do I live?", "I moved to Bergen".

Also how memories of those begin who ask of themselves.
"""

import re
from collections.abc import Iterable

from ewe.longterm.store.lexical import terms
from ewe.text.english import stem, words_of
from ewe.text.words import words

# Of the matters that people tell assistants of themselves and theirs, in both English spellings.
_MATTERS = """
live living reside residence home house flat apartment bungalow address moved rent renting lodging accommodation
work job employed employer company office career profession occupation hired trade
mum mom mam mother
dad father
parents mum mom dad mother father
gran nan granny grandma grandmother
grandad granddad grandpa grandfather
kids children son daughter baby twins
siblings brother sister
partner spouse wife husband girlfriend boyfriend fiancé fiancée dating married engaged relationship
roommate flatmate housemate
boss manager supervisor
car vehicle drive van truck pickup
bike bicycle motorbike cycle scooter
pets dog cat puppy kitten
medicine medication medicament pills tablets dose prescription
doctor physician gp consultant
studies university uni college degree course student
eat food diet vegetarian vegan
allergic allergy allergies intolerant intolerance
laptop computer pc
phone mobile
hobby hobbies club
exercise sport gym run swim
"""
_I = words_of("i i'm i've i'd i'll me we we're we've us")
_MINE = words_of("my our mine")


def _others() -> dict[str, frozenset[str]]:
    """{stem: the words of its matters that are others}."""
    found: dict[str, frozenset[str]] = {}
    for line in _MATTERS.strip().splitlines():
        matter = frozenset(words(line))
        for word in matter:
            others = {other for other in matter if stem(other) != stem(word)}
            found[stem(word)] = found.get(stem(word), frozenset()) | others
    return found


_OTHERS = _others()


def told_with(query: str) -> frozenset[str]:
    """Words that what a query asks for may be told with, beside its own."""
    own = set(terms(query))
    return frozenset(other for word in own for other in _OTHERS.get(word, ()) if stem(other) not in own)


def own_beginning(query: str, users: Iterable[str]) -> re.Pattern[str] | None:
    """How what a user's question of themselves asks for begins; None for a question of somebody or something else.

    "Where do I live?" asks for "Ann lives in Bergen", not for "Ann's sister lives in Oslo"; "my sister" asks for that.
    """
    asked = {word.replace("’", "'") for word in words(query)}
    of_theirs = not asked.isdisjoint(_MINE)
    if not of_theirs and asked.isdisjoint(_I):
        return None
    names = "|".join(re.escape(name) for name in (*filter(None, users), "the user"))
    if of_theirs:
        return re.compile(rf"(?:(?:{names})(?:['’]s)?|i|we|my|our)\b(?!['’]s\b)", re.IGNORECASE)
    return re.compile(rf"(?:{names}|i|we)\b(?!['’]s\b)", re.IGNORECASE)
