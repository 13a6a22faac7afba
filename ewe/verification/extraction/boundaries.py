"""Where a clause begins: the words before its subject or its verb.

Owns: which conjunctions, commas and relative words open a clause. Knows words; no kinds of clauses.
"""

from __future__ import annotations

from collections.abc import Sequence

from ewe.verification.extraction.groups import VerbGroup, is_subordinating
from ewe.verification.extraction.words import Tag, Word

_CLAUSE_MARKS = frozenset(";:–—")


def is_clause_mark(word: Word) -> bool:
    """Whether a semicolon, colon or dash ends a clause here."""
    return word.tag is Tag.MARK and word.text in _CLAUSE_MARKS


def boundary_before(words: Sequence[Word], group: VerbGroup, floor: int, joined: bool) -> int:
    """Index of the word before the subject of `group`, floor - 1 if there is none.

    Without a clause before it, the subject may hold conjunctions ("X and Y were") and commas (appositions).
    """
    at = group.first - 1
    while at >= floor:
        word = words[at]
        if word.tag is Tag.RELATIVE or is_clause_mark(word):
            return at
        if word.tag is Tag.SUBORDINATOR and is_subordinating(words, at, group.first):
            return at
        if joined and word.tag is Tag.AND and _opens_relative(words, at, floor):
            at -= 1
            continue
        if joined and word.tag in (Tag.COMMA, Tag.AND):
            farther = [k for k in range(floor + 1, at) if words[k].tag is Tag.AND and words[k - 1].tag is Tag.COMMA]
            return farther[-1] if word.tag is Tag.AND and words[at - 1].tag is not Tag.COMMA and farther else at
        at -= 1
    return floor - 1


def _opens_relative(words: Sequence[Word], at: int, floor: int) -> bool:
    """Whether only a noun phrase lies between "where" or "because" and the conjunction at `at`."""
    while at > floor and words[at - 1].tag in (Tag.NOUN, Tag.NAME, Tag.DETERMINER, Tag.POSSESSIVE, Tag.QUOTE):
        at -= 1
    return at > floor and words[at - 1].tag in (Tag.RELATIVE, Tag.SUBORDINATOR)


def before_introduction(words: Sequence[Word], start: int, floor: int) -> int:
    """Where ", and in 1957," begins if that is what stands before a verb; else `start`."""
    if words[start].tag is not Tag.COMMA:
        return start
    opener = next((at for at in range(start - 1, max(floor, start - 8), -1) if words[at].tag is Tag.AND), None)
    if opener is None or words[opener + 1].tag not in (Tag.PREPOSITION, Tag.ADVERB, Tag.DATE, Tag.SUBORDINATOR):
        return start
    return opener - (words[opener - 1].tag is Tag.COMMA)
