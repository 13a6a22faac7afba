"""What evidence could settle, and what it could not.

Owns: which sentences and statements are left out: questions, requests, remarks about the text itself, opinions, empty
hedges, broken pieces. Knows words and the word lists.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ewe.verification.extraction.lists import EMPTY_NOUNS, FIRST_AND_SECOND, OPINION_VERBS, OPINIONS
from ewe.verification.extraction.words import Tag, Word
from ewe.verification.stems import stem
from ewe.verification.wordlists import FUNCTION_WORDS, words_of

_QUESTION = re.compile(r"[?？][)\]*_\s]*\Z|\A\s*[\"“].*[?？][\"”]\s*\Z", re.DOTALL)
_MARKER = r"\s*(?:[-*•–#>]+\s+|\d{1,3}[.)]\s+)?"
_IMPORTANT = r"it (?:is|should be|must be)(?: also)? (?:important |worth |interesting |essential )?"
_NOTING = r"(?:to note|to mention|to remember|noted|noting|mentioning)(?: here)?"
_REMARK = re.compile(rf"{_MARKER}(?:(?:{_IMPORTANT}{_NOTING}|(?:please )?note|keep in mind) that,?\s+)?", re.IGNORECASE)
_META = re.compile(
    r"\b(?:as an ai|language model|my (?:knowledge|training)|cut-?off|hope this helps|the above"
    r"|this (?:answer|response|article|essay|list|summary)|here (?:is|are) (?:a|an|the|some)\b"
    r"|in this (?:article|essay|answer|section))\b",
    re.IGNORECASE,
)
_HEDGES = words_of("may might possible possibly unclear unknown uncertain perhaps presumably likely")
_CERTAIN = (Tag.NAME, Tag.QUOTE, Tag.DATE, Tag.NUMBER)
_SMALL = FUNCTION_WORDS | words_of("also well way such as including known considered regarded became become has had")
_OPINION_STEMS = frozenset(stem(word) for word in OPINION_VERBS)
_MIN_WORDS = 3


def skip_remark(sentence: str) -> int:
    """How many characters at the beginning only introduce: a list marker, "It is worth noting that"."""
    match = _REMARK.match(sentence)
    return match.end() if match else 0


def may_state(sentence: str) -> bool:
    """Whether a sentence can hold claims at all: no question, no remark about the text itself."""
    return bool(sentence.strip()) and not _QUESTION.search(sentence) and not _META.search(sentence)


def is_checkable(words: Sequence[Word], subject_length: int) -> bool:
    """Whether a statement says what evidence could settle; the first `subject_length` words are its subject."""
    norms = {word.norm for word in words if word.tag is not Tag.QUOTE}
    if norms & FIRST_AND_SECOND:
        return False
    said = [word for word in words[subject_length:] if word.tag is not Tag.COMMA]
    certain = any(word.tag in _CERTAIN for word in said)
    if norms & _HEDGES and not certain:
        return False
    if words[0].norm in ("it", "there") and not any(word.tag in (*_CERTAIN, Tag.NOUN) for word in said):
        return False
    return certain or any(_says_something(word) for word in said)


def _says_something(word: Word) -> bool:
    """Whether a word is more than a function word, a judgement or an empty noun."""
    if word.tag in (Tag.ADVERB, Tag.BE, Tag.HAVE, Tag.DO, Tag.MODAL, Tag.PREPOSITION, Tag.DETERMINER, Tag.POSSESSIVE):
        return False
    if word.norm in _SMALL or word.norm in OPINIONS or word.norm in EMPTY_NOUNS:
        return False
    return stem(word.norm) not in _OPINION_STEMS and any(character.isalpha() for character in word.text)


def is_sound(words: Sequence[Word]) -> bool:
    """Whether a statement is more than a scrap: of three words or more, its brackets and quotation marks closed."""
    brackets = sum((word.tag is Tag.OPEN) - (word.tag is Tag.CLOSE) for word in words)
    text = "".join(word.text for word in words)
    closed = brackets == 0 and text.count('"') % 2 == 0 and text.count("“") == text.count("”")
    return closed and len(words) >= _MIN_WORDS
