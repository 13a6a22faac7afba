"""The words of a sentence, those joined that are one: "14-year-old", "as well as", "Hull, England".

Owns: `read_words`, which words belong together. Knows words; no clauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ewe.verification.extraction.words import Tag, Word, single_words
from ewe.verification.wordlists import words_of

_VERBS = (Tag.ED, Tag.PAST, Tag.BE, Tag.HAVE, Tag.THIRD, Tag.MODAL, Tag.ADVERB, Tag.DO)
_BEFORE_PLACES = words_of("in at near from of to outside around")


def read_words(sentence: str) -> list[Word]:
    """The words of a sentence in order, without its closing punctuation; never raises."""
    words = _without_marks_in_brackets(_joined(sentence, single_words(sentence)))
    return _with_regions(sentence, words)


def _with_regions(sentence: str, words: Sequence[Word]) -> list[Word]:
    """A place with the region behind its comma as one word, unless it may be a list ("in Ulm, Bonn and Hof")."""
    found: list[Word] = []
    index = 0
    while index < len(words):
        end = _end_of_place(words, index) if found and found[-1].norm in _BEFORE_PLACES else index + 1
        found.append(_merged(sentence, words[index], words[end - 1], Tag.NAME) if end > index + 1 else words[index])
        index = end
    return found


def _end_of_place(words: Sequence[Word], start: int) -> int:
    """Where the place that begins at `start` ends, its regions included."""
    end = start + 1
    if words[start].tag is not Tag.NAME or words[start].possessive:
        return end
    while end + 1 < len(words) and words[end].tag is Tag.COMMA and words[end + 1].tag is Tag.NAME:
        end += 2
    if end > start + 1 and end < len(words) and words[end].tag in _VERBS:
        end -= 2  # "Born in Ulm, Einstein studied"
    joint = end + (end < len(words) and words[end].tag is Tag.COMMA)
    listed = joint + 1 < len(words) and words[joint].tag is Tag.AND and words[joint + 1].tag in (Tag.NAME, Tag.QUOTE)
    return start + 1 if listed or words[end - 1].possessive else end


def _without_marks_in_brackets(words: Sequence[Word]) -> list[Word]:
    """The words, marks in brackets as plain words: they end no clause."""
    depth, found = 0, list[Word]()
    for word in words:
        depth = max(0, depth + (word.tag is Tag.OPEN) - (word.tag is Tag.CLOSE))
        found.append(replace(word, tag=Tag.NOUN) if depth and word.tag is Tag.MARK else word)
    return found


def _joined(sentence: str, words: Sequence[Word]) -> list[Word]:
    """Words that touch as one: "U.S. Army", "14-year-old", "8-9", and the possessive of a plural."""
    joined: list[Word] = []
    index = 0
    while index < len(words):
        word, last = words[index], joined[-1] if joined else None
        index += 1
        if last is None:
            joined.append(word)
        elif (
            last.tag is word.tag is Tag.NAME
            and last.text.endswith(".")
            and not last.possessive
            and (sentence[last.end : word.start] in ("", " "))
        ):
            joined[-1] = _merged(sentence, last, word, Tag.NAME)
        elif word.norm == "as" and [one.norm for one in joined[-2:]] == ["as", "well"]:
            joined[-2:] = [_merged(sentence, joined[-2], word, Tag.AND)]
        elif word.text == "." and last.end == word.start and index < len(words) and last.tag in (Tag.NAME, Tag.NOUN):
            joined[-1] = _merged(sentence, last, word, last.tag)
        elif last.end != word.start or last.tag is Tag.COMMA:
            joined.append(word)
        elif word.text in "'’" and last.text[-1] in "sxz":
            joined[-1] = replace(_merged(sentence, last, word, last.tag), possessive=True)
        elif word.text in "-‐‑–/" and index < len(words) and words[index].start == word.end:
            tag = Tag.NUMBER if words[index].tag is Tag.NUMBER else Tag.NOUN
            tag = Tag.NAME if Tag.NAME in (last.tag, words[index].tag) else tag
            joined[-1] = _merged(sentence, last, words[index], tag)
            index += 1
        else:
            joined.append(word)
    return joined


def _merged(sentence: str, left: Word, right: Word, tag: Tag) -> Word:
    text = sentence[left.start : right.end]
    return replace(left, text=text, norm=text.lower(), tag=tag, end=right.end, possessive=right.possessive)
