"""The text that one sequence has written so far: tokens, characters and sentences, truncated together.

Owns: the one transaction that drops tokens (`truncate`), so that no part of the state can be left behind. Knows the
detokeniser and the sentence splitter; nothing of memory, verdicts or scheduling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ewe.engine.detokenizer import Detokenizer
from ewe.engine.sampler import Token
from ewe.text.sentences import SentenceSplitter


@dataclass(frozen=True, slots=True)
class Span:
    """A completed sentence: code points [start, end) of the text and its tokens [first_token, end_token)."""

    start: int
    end: int
    first_token: int
    end_token: int


class Draft:
    """Generated tokens with their text, sentences and stop-string state.

    stop: strings that end the text; they are looked for once `min_tokens` tokens are there.
    """

    def __init__(
        self,
        tokenizer: Any | None,
        splitter: SentenceSplitter,
        prompt_ids: Sequence[int],
        stop: Sequence[str] = (),
        min_tokens: int = 0,
    ) -> None:
        self.tokens: list[Token] = []
        self.ids: list[int] = []
        self.sentences: list[Span] = []
        self.text_end: int | None = None
        self._detokenizer = Detokenizer(tokenizer, prompt_ids)
        self._splitter = splitter
        self._stop = tuple(stop)
        self._min_tokens = min_tokens
        self._is_finished = False

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def text(self) -> str:
        """The text so far, cut before a stop string."""
        return self._detokenizer.text[: self.text_end]

    def append(self, token: Token) -> bool:
        """Adds a token; returns whether a stop string has now appeared (the text then ends before it)."""
        seen = len(self._detokenizer.text)
        self.tokens.append(token)
        self.ids.append(token.id)
        piece = self._detokenizer.append(token.id)
        return bool(piece and self._stop and len(self) >= self._min_tokens and self._find_stop(seen))

    def finish(self) -> None:
        """Ends the text: trailing bytes become characters, the rest becomes the last sentences; again does nothing."""
        if self._is_finished:
            return
        self._is_finished = True
        if self.text_end is None:
            self._detokenizer.text += self._detokenizer.flush()
        self._add_sentences(self._splitter.split(self._rest()))

    def find_sentences(self) -> None:
        """Adds the sentences that have surely been completed since the last call."""
        self._add_sentences(self._splitter.completed(self._rest()))

    def restore_sentence(self, tokens: Sequence[Token], num_chars: int) -> None:
        """Appends the tokens of a sentence of `num_chars` code points that was dropped before.

        The text must stand as it did when the tokens were first drawn.
        """
        first = len(self)
        for token in tokens:
            self.append(token)
        begin = self._detokenizer.end_of(first)
        text = self.text[begin:]
        start = begin + len(text) - len(text.lstrip())
        self.sentences.append(Span(start, start + num_chars, first, len(self)))

    def truncate(self, num_tokens: int) -> None:
        """Drops all but the first `num_tokens` tokens, and every trace of the others."""
        del self.tokens[num_tokens:]
        del self.ids[num_tokens:]
        self._detokenizer.truncate(num_tokens)
        self.text_end = None
        self._is_finished = False
        length = len(self._detokenizer.text)
        while self.sentences and self.sentences[-1].end > length:
            self.sentences.pop()

    def tokens_before(self, position: int) -> int:
        """How many tokens a rewind to the code point `position` keeps: those that end at or before it."""
        return self._detokenizer.tokens_ending_by(position)

    def settled_chars(self, position: int) -> int:
        """The last code point at or before `position` where a token ends: a later rewind cannot reach behind it."""
        return self._detokenizer.end_of(self.tokens_before(position))

    def min_prob(self, span: Span) -> float:
        """The least token probability in a sentence."""
        return math.exp(min(token.logprob for token in self.tokens[span.first_token : span.end_token]))

    def mean_entropy(self, span: Span) -> float:
        """The mean entropy, in nats, of a sentence's tokens."""
        tokens = self.tokens[span.first_token : span.end_token]
        return sum(token.entropy for token in tokens) / len(tokens)

    def text_without(self, span: Span, drop: Callable[[Token], bool]) -> str:
        """A sentence's text with the words of its dropped tokens left out."""
        kept = [
            self.text[self._detokenizer.end_of(i) : self._detokenizer.end_of(i + 1)]
            for i in range(span.first_token, span.end_token)
            if not drop(self.tokens[i])
        ]
        return "".join(kept).strip()

    def held_back_chars(self) -> int:
        """How many characters at the end could still turn out to begin a stop string."""
        text = self._detokenizer.text
        for stop in self._stop:
            for length in range(min(len(stop) - 1, len(text)), 0, -1):
                if text.endswith(stop[:length]):
                    return length
        return 0

    def _find_stop(self, seen: int) -> bool:
        longest = max(map(len, self._stop))
        begin = max(0, seen - longest + 1)
        hits = [hit for hit in (self._detokenizer.text.find(stop, begin) for stop in self._stop) if hit >= 0]
        if not hits:
            return False
        self.text_end = min(hits)
        return True

    def _rest(self) -> str:
        return self.text[self.sentences[-1].end if self.sentences else 0 :]

    def _add_sentences(self, spans: Sequence[tuple[int, int]]) -> None:
        offset = self.sentences[-1].end if self.sentences else 0
        for start, end in spans:
            first = self._detokenizer.tokens_ending_by(offset + start)
            last = self._detokenizer.tokens_ending_by(offset + end)
            covers = self._detokenizer.end_of(last) >= offset + end
            end_token = min(last if covers else last + 1, len(self.tokens))
            self.sentences.append(Span(offset + start, offset + end, first, max(end_token, first + 1)))
