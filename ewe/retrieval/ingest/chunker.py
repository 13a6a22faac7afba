"""Cutting documents into passages at the ends of sentences."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ewe.errors import DatastoreError
from ewe.retrieval.ingest.documents import Document, Mark
from ewe.text.sentences import SentenceSplitter, Span

# A token is six letters of a word, one character of a script without spaces, or one sign: subword tokenizers need
# about as many for English, fewer for common words.
_ESTIMATED = re.compile(
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]|[^\W\d_]{1,6}|\d{1,3}|[^\w\s]|_"
)
_PIECE = re.compile(r"\S+")

_NO_MARK = Mark(0)

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class ChunkRules:
    """How long passages are.

    tokens: most tokens of a passage's text. overlap: most tokens that it repeats from the one before, whole sentences
    only. tokenizer: a tokenizer.json, a folder with one or a hub id; None estimates (six letters of a word, three
    digits, or one sign are a token). Raises DatastoreError for tokens < 8 or an overlap that leaves less than half.
    """

    tokens: int = 200
    overlap: int = 40
    tokenizer: str | None = None

    def __post_init__(self) -> None:
        if self.tokens < 8:
            raise DatastoreError(f"a passage needs at least 8 tokens, got {self.tokens}")
        if not 0 <= self.overlap <= self.tokens // 2:
            raise DatastoreError(f"overlap must lie between 0 and half of the {self.tokens} tokens, got {self.overlap}")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document: code points start to end, under `mark` if the document has marks."""

    start: int
    end: int
    mark: Mark = _NO_MARK


class Chunker:
    """Cuts documents; one that fits the budget, and has no sections, stays whole.

    Guaranteed: every character that is no white space lies in a chunk; no chunk exceeds the budget; chunks are in
    order, each holds something that the one before does not, and none crosses from one titled section to another.
    """

    def __init__(self, rules: ChunkRules) -> None:
        self._rules = rules
        self._count = counter(rules.tokenizer)
        self._split = SentenceSplitter().split

    def chunks(self, document: Document) -> list[Chunk]:
        """The chunks of a document, in order."""
        return [
            Chunk(start, end, _mark_at(document.marks, start))
            for first, last in _sections(document)
            for start, end in self._spans(document.text, first, last)
        ]

    def _spans(self, text: str, first: int, last: int) -> Iterator[Span]:
        """Greedy: as many sentences as fit; the next chunk begins with the last ones again, as far as overlap goes."""
        budget = self._rules.tokens
        if self._count(text[first:last]) <= budget:
            start, end = _stripped(text, first, last)
            if start < end:
                yield start, end
            return
        pieces = list(self._pieces(text, first, last))
        begin = 0
        while begin < len(pieces):
            end = self._fitting(text, pieces, begin)
            yield pieces[begin][0], pieces[end - 1][1]
            if end == len(pieces):
                return
            begin = self._with_overlap(text, pieces, begin, end)

    def _fitting(self, text: str, pieces: list[Span], begin: int) -> int:
        """The end of the longest run of pieces from `begin` that fits the budget; a piece alone always does."""
        end = begin + 1
        while end < len(pieces) and self._count(text[pieces[begin][0] : pieces[end][1]]) <= self._rules.tokens:
            end += 1
        return end

    def _with_overlap(self, text: str, pieces: list[Span], begin: int, end: int) -> int:
        """Where the chunk after pieces[begin:end] begins, so that a new piece still fits behind what is repeated."""
        start = end
        while start - 1 > begin:
            repeated = text[pieces[start - 1][0] : pieces[end - 1][1]]
            with_new = text[pieces[start - 1][0] : pieces[end][1]]
            if self._count(repeated) > self._rules.overlap or self._count(with_new) > self._rules.tokens:
                break
            start -= 1
        return start

    def _pieces(self, text: str, first: int, last: int) -> Iterator[Span]:
        """Sentences; those over the budget in parts that end between words, or inside a word that is too long."""
        for start, end in self._split(text[first:last]):
            if self._count(text[first + start : first + end]) <= self._rules.tokens:
                yield first + start, first + end
            else:
                yield from self._parts(text, first + start, first + end)

    def _parts(self, text: str, first: int, last: int) -> Iterator[Span]:
        start = end = first
        for match in _PIECE.finditer(text, first, last):
            if self._count(text[start : match.end()]) > self._rules.tokens:
                if start < end:
                    yield start, end
                start = match.start()
                while (size := self._longest(text, start, match.end())) < match.end() - start:
                    yield start, start + size
                    start += size
            end = match.end()
        if start < end:
            yield start, end

    def _longest(self, text: str, start: int, end: int) -> int:
        """Characters of the longest beginning of a word that fits the budget, at least one.

        At most eight per token: more are never looked at, so that a text without spaces takes time in proportion.
        """
        word = text[start : min(end, start + 8 * self._rules.tokens)]
        sizes = range(1, len(word) + 1)
        return max(1, bisect_right(sizes, self._rules.tokens, key=lambda size: self._count(word[:size])))


def counter(tokenizer: str | None) -> Count:
    """Counts the tokens of a text. Raises DatastoreError if the tokenizer cannot be loaded."""
    if tokenizer is None:
        return lambda text: len(_ESTIMATED.findall(text))
    from tokenizers import Tokenizer

    path = Path(tokenizer)
    path = path / "tokenizer.json" if path.is_dir() else path
    try:
        loaded = Tokenizer.from_file(str(path)) if path.exists() else Tokenizer.from_pretrained(tokenizer)
    except Exception as error:  # the library raises plain exceptions of its own
        raise DatastoreError(f"the tokenizer {tokenizer!r} cannot be loaded: {error}") from error
    loaded.no_truncation()
    loaded.no_padding()
    return lambda text: len(loaded.encode(text, add_special_tokens=False).ids)


def _sections(document: Document) -> Iterator[Span]:
    starts = [0]
    title = ""
    for mark in document.marks:
        if mark.title != title:
            starts.append(mark.start)
            title = mark.title
    for start, end in zip(starts, [*starts[1:], len(document.text)], strict=True):
        if start < end:
            yield start, end


def _mark_at(marks: tuple[Mark, ...], start: int) -> Mark:
    before = bisect_right(marks, start, key=lambda mark: mark.start)
    return marks[before - 1] if before else _NO_MARK


def _stripped(text: str, start: int, end: int) -> Span:
    part = text[start:end]
    begin = start + len(part) - len(part.lstrip())
    return begin, begin + len(part.strip())
