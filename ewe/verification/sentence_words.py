"""A sentence as words: their stems, which of them are finite verbs, and the names among them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ewe.text.english import FUNCTION_WORDS, MONTHS, normal_form, words_of
from ewe.verification.extraction.verbs import AUXILIARY_FORMS, PLAIN_VERBS

WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
"""A number, or a word with its apostrophes, as it is written."""
_BREAK = re.compile(r"[,;:()–—]")
_VERBS = AUXILIARY_FORMS | PLAIN_VERBS
_JOINTS = (" ", "-", ". ")  # What stands between the words of one name.
_CACHED_TEXTS = 8192
_NO_NAMES = FUNCTION_WORDS | MONTHS.keys() | words_of("monday tuesday wednesday thursday friday saturday sunday")

Name = frozenset[str]
"""The stems of one name's words."""


@dataclass(frozen=True, slots=True)
class SentenceWords:
    """low: the words; stems: of each; is_verb: whether it is a finite verb; names: where one ends, and its words.

    breaks: places of words behind a mark of punctuation.
    """

    low: tuple[str, ...]
    stems: tuple[str, ...]
    is_verb: tuple[bool, ...]
    names: tuple[tuple[int, Name], ...]
    breaks: frozenset[int]

    @property
    def verb(self) -> int:
        """Where the first verb is; behind the last word if there is none."""
        return self.is_verb.index(True) if True in self.is_verb else len(self.low)


@lru_cache(maxsize=_CACHED_TEXTS)
def read_words(text: str) -> SentenceWords:
    """The words of a text; read once where it comes again."""
    low: list[str] = []
    stems: list[str] = []
    names: list[tuple[int, Name]] = []
    breaks: set[int] = set()
    name_end = word_end = 0
    for match in WORD.finditer(text):
        word = match[0].lower()
        if _BREAK.search(text, word_end, match.start()):
            breaks.add(len(low))
        word_end = match.end()
        low.append(word.replace("’", "'"))
        word = low[-1].removesuffix("'s")
        stems.append(normal_form(word))
        if match[0][0].isupper() and word not in _NO_NAMES:
            goes_on = bool(names) and names[-1][0] == len(low) - 1 and text[name_end : match.start()] in _JOINTS
            name = (names.pop()[1] if goes_on else frozenset()) | {stems[-1]}
            names.append((len(low), name))
            name_end = match.end()
    is_verb = tuple(word in _VERBS for word in low)
    return SentenceWords(tuple(low), tuple(stems), is_verb, tuple(names), frozenset(breaks))
