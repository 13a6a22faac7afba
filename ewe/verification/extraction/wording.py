"""Statements as English sentences that stand alone.

Owns: pronouns and short names replaced by what they mean, spacing, capitals, the full stop, and the claim's span. Knows
words and the context; not which statements are claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ewe.verification.extraction.context import Context
from ewe.verification.extraction.lists import DROPPED_ADVERBS
from ewe.verification.extraction.words import Tag, Word
from ewe.verification.wordlists import words_of

_PERSONAL = words_of("he she him her his hers")
_OTHERS = words_of("it they its their")
_NOMINAL = (Tag.NOUN, Tag.NAME, Tag.QUOTE, Tag.NUMBER, Tag.THIRD, Tag.BASE, Tag.ING, Tag.ED, Tag.ADVERB, Tag.DATE)
_NO_SPACE_BEFORE = frozenset(",.;:!?)]%’'")
_LOOSE = frozenset(";:–—-.!?")
_NO_SPACE_AFTER = frozenset("([$£€")


def resolve(words: Sequence[Word], context: Context, sentence: Sequence[Word] = ()) -> list[Word]:
    """The words with pronouns, "the band" and a short name in the subject's place replaced by full names.

    What follows a name of the same referent stays as it is ("Ada Byron sold her house"); so does what nothing is known
    of. sentence: all words of the sentence, where "the club" may take up a name.
    """
    resolved: list[Word] = []
    words = [word for word in words if not (word.tag is Tag.ADVERB and word.norm in DROPPED_ADVERBS)]
    index = 0
    opens = _subject_at(words)
    while index < len(words):
        word, behind = words[index], words[index + 1] if index + 1 < len(words) else None
        said = " ".join(one.text for one in resolved)
        name, used = "", 1
        owner = word.possessive
        if word.norm in _PERSONAL or (word.norm in _OTHERS and index == opens):
            name = context.referent(word.norm)
            owner = word.tag is Tag.POSSESSIVE and behind is not None and behind.tag in _NOMINAL
        elif index == opens and word.tag is Tag.NAME and " " not in word.text:
            name = context.full(word.text.removesuffix("'s").removesuffix("’s"))
        elif word.norm in ("the", "this") and behind is not None and behind.tag is Tag.NOUN:
            after = words[index + 2] if index + 2 < len(words) else None
            if (
                behind.possessive
                or after is None
                or (after.tag not in (Tag.NOUN, Tag.NAME, Tag.QUOTE) and after.norm not in ("of", "for"))
            ):
                before = [one for one in sentence if one.end <= word.start]
                name, used, owner = context.definite(behind.norm, before), 2, behind.possessive
        if not name or _is_named(name, said):
            resolved.append(word)
            used = 1
        else:
            resolved.append(_named(word, words[index + used - 1], name, owner))
        index += used
    return resolved


def _subject_at(words: Sequence[Word]) -> int:
    """Index of the first word of the subject: behind the comma of an introduction."""
    if words and words[0].tag in (Tag.PREPOSITION, Tag.SUBORDINATOR, Tag.ADVERB):
        return next((at + 1 for at, word in enumerate(words) if word.tag is Tag.COMMA and word.start < 0), 0)
    return 0


def _is_named(name: str, said: str) -> bool:
    """Whether the words before name the same one already, by the last word of the name."""
    known = said.replace("'s", "").replace("’s", "").split()
    return any(part in known for part in name.split() if len(part) > 2)


def _named(first: Word, last: Word, name: str, owner: bool) -> Word:
    ending = ("'" if name.endswith("s") else "'s") if owner else ""
    return replace(first, text=name + ending, norm=name.lower(), tag=Tag.NAME, end=last.end, possessive=owner)


def spell(words: Sequence[Word]) -> str:
    """The sentence of the words: one line, a capital at the beginning, a full stop at the end."""
    words = _trimmed(words)
    text, last = "", None
    for number, word in enumerate(words):
        shown = word.text.strip("*_") if word.tag is Tag.QUOTE else word.text
        if number and word.start == 0 and word.tag not in (Tag.NAME, Tag.QUOTE, Tag.DATE) and not word.text.isupper():
            shown = shown[:1].lower() + shown[1:]
        touches = last is not None and 0 <= last.end == word.start
        tight = shown[:1] in _NO_SPACE_BEFORE or (last is not None and last.text in _NO_SPACE_AFTER)
        text += shown if not text or touches or tight else " " + shown
        last = word
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    ends = text.rstrip("\"”’'")[-1:] in (".", "!", "?") if text else True
    return text if ends else text + "."


def _trimmed(words: Sequence[Word]) -> list[Word]:
    """The words without commas and conjunctions at the ends, and without commas in a row."""
    found = [
        word for at, word in enumerate(words) if not (word.tag is Tag.COMMA and at and words[at - 1].tag is Tag.COMMA)
    ]
    while found and (
        found[-1].tag in (Tag.COMMA, Tag.AND) or found[-1].text in _LOOSE or found[-1].norm in ("both", "such")
    ):
        found.pop()
    while found and (found[0].tag in (Tag.COMMA, Tag.AND) or found[0].text in _LOOSE):
        found.pop(0)
    return found


def span_of(words: Sequence[Word]) -> tuple[int, int] | None:
    """First and last code point of what the claim states itself; of all its words if it borrows them all."""
    own = [word for word in words if word.own and word.start >= 0 and word.tag is not Tag.COMMA]
    placed = own or [word for word in words if word.start >= 0]
    if not placed:
        return None
    return min(word.start for word in placed), max(word.end for word in placed)
