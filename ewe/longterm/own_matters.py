"""Questions that people ask of themselves ("Where do I live?"), and how memories of themselves begin."""

import re
from collections.abc import Iterable

from ewe.text.english import words_of
from ewe.text.words import words

_I = words_of("i i'm i've i'd i'll me we we're we've us")
_MINE = words_of("my our mine")


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
