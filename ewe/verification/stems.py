"""Crude stems of English words, so that the inflections of one verb or noun fall together."""

from __future__ import annotations

import re
from functools import lru_cache


def _forms(table: str) -> dict[str, str]:
    """{inflected form: base form} from lines "base form form"."""
    return {form: line.split()[0] for line in table.strip().splitlines() for form in line.split()[1:]}


_IRREGULAR = _forms("""
be am is are was were been being
have has had having
become became
begin began begun
bear bore borne
bring brought
build built
buy bought
choose chose chosen
come came
die died dies dying
do did done does
draw drew drawn
earn earned
fall fell fallen
fight fought
find found
fly flew flown
get got gotten
give gave given
go went gone goes
grow grew grown
hold held
keep kept
know knew known
lay laid
lead led
leave left
lie lay lain lying lies
lose lost
make made
marry married marries
meet met
pay paid
put
read
rise rose risen
run ran
say said
see saw seen
sell sold
send sent
set
shoot shot
sing sang sung
sink sank sunk
speak spoke spoken
spend spent
stand stood
strike struck
swim swam
take took taken
teach taught
tell told
think thought
wed wedded
win won
write wrote written
child children
man men
woman women
wife wives
life lives
""")
# "found" is far more often the verb of foundation in descriptive prose ("he found" is caught by the comparison).
del _IRREGULAR["found"]


def is_irregular_past(word: str) -> bool:
    """Whether a folded word is an irregular past tense or participle."""
    return word in _IRREGULAR


_SUFFIX = re.compile(r"(?:ings?|ies|ied|ers?|ors?|ed|es|s|e|y)$")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A crude stem of a folded word; inflections of one verb or noun fall together ("studied" and "study")."""
    word = _IRREGULAR.get(word, word)
    if len(word) <= 3 or not word.isalpha():
        return word
    match = _SUFFIX.search(word)
    base = word if match is None or match.start() < 3 else word[: match.start()]
    return base[:-1] if len(base) > 3 and base[-1] == base[-2] else base
