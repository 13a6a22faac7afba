"""Words that people ask with and words that they tell the same with: "Where do I live?", "I moved to Bergen"."""

from ewe.longterm.store.lexical import terms
from ewe.text.english import stem
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
