"""The sentences of a growing text: where each stands, in characters and in tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

from ewe.engine.answer_text.detokenizer import Detokenizer
from ewe.text.prefill import open_sentence
from ewe.text.sentences import SentenceSplitter


@dataclass(frozen=True, slots=True)
class Span:
    """A completed sentence: code points [start, end) of the text and its tokens [first_token, end_token)."""

    start: int
    end: int
    first_token: int
    end_token: int


class SentenceSpans:
    """The completed sentences of one text, found as it grows and forgotten as it goes back.

    detokenizer: the text's own, which says which tokens a sentence has. prefill: what the text goes on with, which may
    have begun its first sentence.
    """

    def __init__(self, splitter: SentenceSplitter, detokenizer: Detokenizer, prefill: str = "") -> None:
        self.spans: list[Span] = []
        self._splitter, self._detokenizer = splitter, detokenizer
        self._begun = open_sentence(prefill)

    def fork(self, detokenizer: Detokenizer) -> SentenceSpans:
        """The same sentences of a second text that begins with this one."""
        twin = copy(self)
        twin.spans, twin._detokenizer = list(self.spans), detokenizer
        return twin

    @property
    def end(self) -> int:
        """The code point where the last one ends; 0 for none."""
        return self.spans[-1].end if self.spans else 0

    def start_of(self, index: int, text: str) -> int:
        """Where one starts, as a code point; the number after the last one is that of what follows it in the text."""
        if index < len(self.spans):
            return self.spans[index].start
        return next_start(text, self.end)

    def end_of_begun(self, begin: str, text: str) -> int | None:
        """The code point of a text where the sentence that `begin` has begun surely ends; None while it may go on."""
        ends = (end - len(begin) for _, end in self._splitter.completed(begin + text))
        return next((end for end in ends if end > 0), None)

    def add_completed(self, text: str) -> None:
        """Adds those that have surely been completed in a text, however it goes on."""
        self.add(self._found(self._splitter.completed, text))

    def add_all(self, text: str) -> None:
        """Adds all that a text has, which ends here."""
        self.add(self._found(self._splitter.split, text))

    def add(self, places: Sequence[tuple[int, int]]) -> None:
        """Adds sentences by the code points [start, end) of the text where they stand."""
        for start, end in places:
            first = self._detokenizer.tokens_ending_by(start)
            last = self._detokenizer.tokens_covering(end)
            self.spans.append(Span(start, end, first, max(last, first + 1)))

    def reopen(self, position: int) -> None:
        """Forgets those that end behind a code point."""
        while self.spans and self.spans[-1].end > position:
            self.spans.pop()

    def _found(self, find: Callable[[str], list[tuple[int, int]]], text: str) -> list[tuple[int, int]]:
        """What `find` finds behind the last one; of a sentence that was begun before the text, its part of the text."""
        begun = "" if self.spans else self._begun
        offset, first = self.end - len(begun), next_start(text, self.end)
        places = [(offset + start, offset + end) for start, end in find(begun + text[self.end :])]
        return [(max(start, first), end) for start, end in places if end > first]


def next_start(text: str, position: int) -> int:
    """The code point where the text goes on behind another one: white space is passed over."""
    return len(text) - len(text[position:].lstrip())
