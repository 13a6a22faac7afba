"""Sentence boundaries in finished and in streaming text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import nupunkt

from ewe.text.abbreviations import BEFORE_NUMBERS, is_abbreviation

Span = tuple[int, int]

# White space between words, or an end mark of a script that writes without spaces, with what closes behind it.
_GAP = re.compile(r"\s+|[。！？｡।؟][。！？｡।؟」』）”’]*")
_ENDING = re.compile(r"[.!?…][.!?…\"')\]}”’»*]*+\Z")
_ONLY_PUNCTUATION = re.compile(r"[.!?…\"')\]}”’»*]+\Z")
_BLANK_LINE = re.compile(r"\n\s*\n")
_LIST_MARKER = re.compile(r"(?:[-*•–]|\d{1,3}[.)]|#{1,6})\Z")
_WORD = re.compile(r"[^\W\d_]{2,}|\d[\d,.-]*")
_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivxlcIVXLC]{1,6})\)?\.\Z")
_NUMBER = "##number##"  # nupunkt's name for every number
# The decision looks at this many characters on each side at most, so that text without spaces cannot make it slow.
_REACH = 80


class SentenceSplitter:
    """Splits text into sentences; equal results for text that arrives whole or piece by piece.

    nupunkt alone is unstable while text streams: it decides on the word after a full stop, which may still be growing,
    and takes the end of the text for the end of a sentence. Here each boundary is decided from a window: the word
    before the white space and the whole word after it. `completed` reports a boundary once that window is complete,
    or earlier if no continuation can change the decision. Guaranteed, for every text and every prefix of it:

    - every span that `completed(prefix)` reports is a span of `split(text)` and of `completed(text)`;
    - after a reported span, the rest of the text can be looked at alone: with `end` the end of that span, the further
      spans of `split(text)` are those of `split(text[end:])`, moved by `end`.

    Besides nupunkt's full stops, a blank line and a line break before a list marker or heading end a sentence, and so
    do the end marks of scripts without spaces. An enumerator ("1.", "b)") belongs to the sentence that it opens.
    """

    def __init__(self) -> None:
        self._judge = _Judge()

    def split(self, text: str) -> list[Span]:
        """Code-point spans of all sentences, without surrounding white space; the last one may be unfinished."""
        spans, rest = self._scan(text)
        end = len(text.rstrip())
        if rest < end:
            spans.append((rest, end))
        return spans

    def completed(self, text: str) -> list[Span]:
        """Code-point spans of the sentences that stay as they are whatever text follows."""
        return self._scan(text, streaming=True)[0]

    def _scan(self, text: str, streaming: bool = False) -> tuple[list[Span], int]:
        """Spans that end at a boundary, and where the rest starts; while streaming, up to the first open boundary."""
        spans: list[Span] = []
        start = len(text) - len(text.lstrip())
        for before, after in _gaps(text):
            if before <= start:
                continue
            boundary = self._judge.is_boundary(text, start, before, after)
            if boundary is None and streaming:
                break
            if boundary:
                spans.append((start, before))
                start = after
        return spans, start


def _gaps(text: str) -> Iterator[Span]:
    """Every place where a sentence could end: (end of what is before it, start of what is after it)."""
    for match in _GAP.finditer(text):
        if match.group()[0].isspace():
            yield match.span()
        else:
            after = match.end()
            while after < len(text) and text[after].isspace():
                after += 1
            yield match.end(), after


class _Judge:
    """Decides one gap at a time, from the words around it."""

    def __init__(self) -> None:
        self._punkt = _corrected_punkt()
        self._abbreviations: frozenset[str] = self._punkt.abbreviations
        # nupunkt's pairs that begin with a number are debris of its training text ("1901. Euronet"): left out.
        self._collocated = {first for first, _ in self._punkt.parameters.collocations} - {_NUMBER}
        self._breaks = lru_cache(maxsize=8192)(self._ask_punkt)

    def is_boundary(self, text: str, start: int, before: int, after: int) -> bool | None:
        """Whether the sentence that begins at `start` ends at `before`; None while further text may decide."""
        if before == after or not text[before].isspace():
            return None if after >= len(text) and before == after else True
        gap = text[before:after]
        if _BLANK_LINE.search(gap):
            return True
        following, is_whole = _word_after(text, after)
        if "\n" in gap and is_whole and _LIST_MARKER.match(following):
            return True
        chunk = _chunk_before(text, start, before)
        if not _ENDING.search(chunk):
            return None if "\n" in gap and not is_whole else False
        opens = _opens_line(text, start, before - len(chunk))
        capital = following[:1].isupper()
        if ("\n" in gap or capital) and self._is_plain_end(chunk, opens, capital):
            return True
        if not is_whole:
            return None
        return not _ONLY_PUNCTUATION.match(following) and self._breaks(chunk, opens, gap, following)

    def _is_plain_end(self, chunk: str, opens: bool, capital: bool) -> bool:
        """Whether the chunk ends a sentence before any capitalised word: no abbreviation, initial or enumerator."""
        mark = _ENDING.search(chunk)
        if mark is None or "…" in mark.group() or ".." in mark.group():
            return False
        word = chunk[: mark.start()].lstrip("\"'([{“‘«*")
        if not _WORD.fullmatch(word) or (opens and _ENUMERATOR.match(chunk)):
            return False
        if capital and word.lower() in BEFORE_NUMBERS:
            return True
        kind = _NUMBER if word[0].isdigit() else word.lower()
        return kind not in self._abbreviations and kind not in self._collocated

    def _ask_punkt(self, chunk: str, opens: bool, gap: str, following: str) -> bool:
        """nupunkt's decision between two words, with nothing else of the text in sight."""
        lead = "" if opens else "x "
        window = lead + chunk + gap + following
        end = len(lead) + len(chunk)
        return any(stop == end for _, stop in self._punkt.span_tokenize(window))


@lru_cache(maxsize=1)
def _corrected_punkt() -> Any:
    """nupunkt with its default model, less the ordinary words among its abbreviations."""
    learnt = nupunkt.load("default").parameters
    kept = {entry for entry in learnt.abbrev_types if is_abbreviation(entry)}
    return nupunkt.PunktSentenceTokenizer(replace(learnt, abbrev_types=kept), include_common_abbrevs=False)


def _word_after(text: str, after: int) -> tuple[str, bool]:
    """The word at `after` and whether it can no longer grow (within the reach)."""
    limit = min(len(text), after + _REACH)
    end = after
    while end < limit and not text[end].isspace():
        end += 1
    return text[after:end], end > after and (end < len(text) or end - after == _REACH)


def _chunk_before(text: str, start: int, before: int) -> str:
    """The word that ends at `before`, with the words before it if it is punctuation only (". . .", '. "')."""
    floor = max(start, before - _REACH)
    begin = before
    while begin > floor:
        while begin > floor and not text[begin - 1].isspace():
            begin -= 1
        if begin == floor or not _ONLY_PUNCTUATION.match(text[begin:before].split(None, 1)[0]):
            break
        while begin > floor and text[begin - 1].isspace():
            begin -= 1
    return text[begin:before]


def _opens_line(text: str, start: int, position: int) -> bool:
    """Whether the word at `position` is the first of its sentence or of its line."""
    return position <= start or text[position - 1] == "\n"
