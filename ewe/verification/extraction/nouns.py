"""Noun phrases: where they begin, and whether they name something definite.

Owns: the words of a noun phrase to the left of a place. Knows words; no clauses.
"""

from __future__ import annotations

from collections.abc import Sequence

from ewe.verification.extraction.words import Tag, Word

_INSIDE = (Tag.NOUN, Tag.NAME, Tag.QUOTE, Tag.NUMBER, Tag.THIRD, Tag.BASE, Tag.ING, Tag.ED, Tag.PARTICIPLE, Tag.DATE)
_OPENING = (Tag.DETERMINER, Tag.POSSESSIVE)


def noun_phrase(words: Sequence[Word], end: int, floor: int = 0) -> tuple[int, int]:
    """[start, end) of the noun phrase that ends before `end` and begins at or behind `floor`; empty if there is none.

    Brackets and dates behind it are passed over: of "the Ulm Mill in 1936" the phrase is "the Ulm Mill".
    """
    while end > floor:
        if words[end - 1].tag is Tag.CLOSE:
            end = _before_bracket(words, end, floor)
        elif words[end - 1].tag is Tag.DATE and end - 2 >= floor and words[end - 2].tag is Tag.PREPOSITION:
            end -= 2
        elif words[end - 1].tag in (Tag.COMMA, Tag.ADVERB, Tag.RELATIVE):
            end -= 1
        else:
            break
    start = end
    while start > floor and words[start - 1].tag in _INSIDE and not _is_verb(words, start - 1, floor):
        start -= 1
    while start > floor and words[start - 1].tag in (*_OPENING, Tag.ADVERB, Tag.NOUN) and start < end:
        start -= 1
        if words[start].tag in _OPENING:
            break
    while start < end and words[start].tag is Tag.ADVERB:
        start += 1
    return start, end


def _is_verb(words: Sequence[Word], at: int, floor: int) -> bool:
    """Whether a word that may be a noun is a bare verb here ("helped them win", "to find and remove")."""
    if at <= floor:
        return False
    if words[at].tag is Tag.ING and at + 1 < len(words):  # "cases involving issues"
        if words[at - 1].tag in (Tag.PAST, Tag.ED):  # "began creating cartoons"
            return True
        return words[at - 1].norm.endswith("s") and words[at + 1].tag is Tag.NOUN and words[at - 1].tag is not Tag.NAME
    if words[at].tag is not Tag.BASE:
        return False
    before = words[at - 1]
    numbered = at + 1 < len(words) and words[at + 1].tag is Tag.NUMBER
    return (
        before.tag in (Tag.TO, Tag.PRONOUN)
        or (before.tag is Tag.AND and at > 1 and words[at - 2].tag is Tag.BASE)
        or numbered
    )


def _before_bracket(words: Sequence[Word], end: int, floor: int) -> int:
    """Index of the bracket that opens what closes before `end`."""
    at = end - 1
    while at > floor and words[at].tag is not Tag.OPEN:
        at -= 1
    return at


def is_definite(phrase: Sequence[Word]) -> bool:
    """Whether a noun phrase names one certain thing: a name, "the ...", "his ..."."""
    if not phrase:
        return False
    first = phrase[0]
    named = any(word.tag in (Tag.NAME, Tag.QUOTE) for word in phrase[-1:])
    if first.tag is Tag.DETERMINER and first.norm != "the":
        return named and len(phrase) > 2 and first.norm not in ("a", "an")
    return named or first.norm == "the" or first.tag is Tag.POSSESSIVE or first.possessive


def singular(noun: str) -> str | None:
    """The singular of a regular plural ("films", "stories", "churches"); None if it looks like no plural."""
    if not noun.endswith("s") or noun.endswith(("ss", "us", "is")) or len(noun) < 4:
        return None
    if noun == "series":
        return noun
    if noun.endswith("ies"):
        return noun[:-3] + "y" if noun != "movies" else "movie"
    return noun[:-2] if noun.endswith(("ches", "shes", "xes", "sses")) else noun[:-1]
