"""The place that a clause leaves to its neighbour: behind "where", and in place of "there".

Owns: which phrase is that place, and where it stands in the clause. Knows words and noun phrases; no statements.
"""

from __future__ import annotations

from collections.abc import Sequence

from ewe.verification.extraction.clauses import Clause
from ewe.verification.extraction.nouns import is_definite, noun_phrase
from ewe.verification.extraction.words import Tag, Word, put_in
from ewe.verification.wordlists import words_of

_AT_PLACES = words_of("in at on near to")
_OF_NAMES = (Tag.NAME, Tag.DETERMINER)


def at_place_before(words: Sequence[Word], clause: Clause, rest: Sequence[Word]) -> list[Word]:
    """What follows the verb of a clause behind "where", with the place before it, if it names no place itself.

    The place comes behind an object ("wrote two plays in Ulm"), but before a time ("lived in Ulm until 1943").
    """
    start, end = noun_phrase(words, clause.start)
    phrase = words[start:end]
    settled = any(word.tag is Tag.NAME for word in rest) or not is_definite(phrase)
    if settled or (len(phrase) > 1 and phrase[0].tag not in (Tag.DETERMINER, Tag.POSSESSIVE)):
        return list(rest)
    place = [put_in("in", Tag.PREPOSITION), *(word.borrowed() for word in phrase)]
    return [*place, *rest] if rest and rest[0].norm in ("until", "till") else [*rest, *place]


def there_spelt_out(rest: Sequence[Word], before: Sequence[Word]) -> list[Word]:
    """What follows a verb, with the place that the verb before it had for "there" ("moved to Ulm and lived there")."""
    place = _last_place(before)
    return [part for word in rest for part in (place if place and word.norm == "there" else [word])]


def _last_place(words: Sequence[Word]) -> list[Word]:
    """ "in Ulm" of "moved to Ulm in 1920"; empty where no place has a name."""
    for index in reversed(range(len(words))):
        end = index + 1
        while end < len(words) and words[end].tag in _OF_NAMES:
            end += 1
        if words[index].norm in _AT_PLACES and words[end - 1].tag is Tag.NAME:
            told = words[index].borrowed() if words[index].norm != "to" else put_in("in", Tag.PREPOSITION)
            return [told, *(word.borrowed() for word in words[index + 1 : end])]
    return []
