"""The text that one sequence has written so far: tokens, characters and sentences, truncated together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from ewe.engine.detokenizer import Detokenizer
from ewe.engine.sampler import Token
from ewe.text.sentences import SentenceSplitter
from ewe.text.tool_calls.use import ToolUse

_DECODED_TOGETHER = 16  # of the tokens of a text at which nobody looks


@dataclass(frozen=True, slots=True)
class Span:
    """A completed sentence: code points [start, end) of the text and its tokens [first_token, end_token)."""

    start: int
    end: int
    first_token: int
    end_token: int


class OutputText:
    """Generated tokens with their text, sentences and stop-string state.

    stop: strings that end the text; they are looked for once `min_tokens` tokens are there. tools: how calls of tools
    are written, if there may be any. From the first call on a text is no prose and has no sentences. kept: special
    tokens that the text has, by id, beside those of tools. is_watched: whether the text is read after every token; else
    it takes less time.
    """

    def __init__(
        self,
        tokenizer: Any | None,
        splitter: SentenceSplitter,
        prompt_ids: Sequence[int],
        stop: Sequence[str] = (),
        min_tokens: int = 0,
        tools: ToolUse | None = None,
        kept: Mapping[int, str] | None = None,
        is_watched: bool = False,
    ) -> None:
        self.tokens: list[Token] = []
        self.ids: list[int] = []
        self.sentences: list[Span] = []
        self.text_end: int | None = None
        of_tools = {} if tools is None else {token_id: text for text, token_id in tools.token_ids.items()}
        self.tokenizer = tokenizer
        self._pending: list[int] = []  # tokens of a text at which nobody has looked
        self._detokenizer = Detokenizer(tokenizer, prompt_ids, {**(kept or {}), **of_tools})
        self._tools = tools
        self._prose_end: int | None = None
        self._splitter = splitter
        self._stop = tuple(stop)
        self._min_tokens = min_tokens
        self.may_be_cut = bool(stop or tools)  # else nothing is looked for in the text, and nothing is held back
        self._is_watched = is_watched or self.may_be_cut
        self._is_finished = False

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def text(self) -> str:
        """The text so far, cut before a stop string."""
        return self._decoded.text[: self.text_end]

    @property
    def firm_end(self) -> int:
        """Up to where neither a stop string nor a call can still take the text away as it goes on."""
        is_all = self.text_end is None and not self.may_be_cut
        return self._decoded.length if is_all else len(self.text) - self.held_back_chars()

    def text_between(self, begin: int, end: int) -> str:
        """The text of code points [begin, end); what the last token has brought is not looked for in the whole text."""
        is_rest = self.text_end is None and end == self._decoded.length
        return self._decoded.text_from(begin) if is_rest else self.text[begin:end]

    @property
    def token_ends(self) -> tuple[int, ...]:
        """The code point of the text at which each token ends."""
        return tuple(self._decoded.end_of(number) for number in range(1, len(self) + 1))

    def append(self, token: Token) -> bool:
        """Adds a token; returns whether a stop string has now appeared (the text then ends before it)."""
        self.tokens.append(token)
        self.ids.append(token.id)
        if not self._is_watched:
            self._pending.append(token.id)
            if len(self._pending) == _DECODED_TOGETHER:
                self._decode()
            return False
        piece = self._detokenizer.append(token.id)
        if not self.may_be_cut:
            return False
        may_stop = piece and self._stop and len(self) >= self._min_tokens
        stopped = bool(may_stop and self._find_stop(self._decoded.length - len(piece)))
        self._find_calls()
        return stopped

    def add_text(self, text: str) -> bool:
        """Adds a finished piece that has no tokens; returns whether a stop string ends the text in it.

        What stands is not taken back for that, and no sentences are looked for.
        """
        begin = len(self.text)
        self._decoded.add(text)
        places = [self._decoded.text.find(stop) for stop in self._stop]
        self.text_end = min((max(place, begin) for place in places if place >= 0), default=None)
        self._is_finished = True
        return self.text_end is not None

    def fork(self) -> OutputText:
        """A second text that begins with this one and goes its own way."""
        twin = copy(self)
        twin.tokens, twin.ids, twin.sentences = list(self.tokens), list(self.ids), list(self.sentences)
        twin._pending, twin._detokenizer = [], self._decoded.fork()
        return twin

    def finish(self) -> None:
        """Ends the text: trailing bytes become characters, the rest becomes the last sentences; again does nothing."""
        if self._is_finished:
            return
        self._is_finished = True
        if self.text_end is None:
            self._decoded.add(self._decoded.flush())
        if self._prose_end is not None and self._tools is not None and not self._tools.has_calls(self.text):
            self._prose_end = None  # it only began like a call
        self._add_sentences(self._splitter.split(self.text[self._known_end() : self._prose_end]))

    def find_sentences(self) -> None:
        """Adds the sentences that have surely been completed since the last call: nothing can cut or extend them."""
        begin = self._known_end()
        if self._prose_end is None:
            self._add_sentences(self._splitter.completed(self.text[begin : self.firm_end]))
        else:  # nothing cuts or extends what ends before a call
            self._add_sentences(self._splitter.split(self.text[begin : self._prose_end]))

    def restore(self, tokens: Sequence[Token], spans: Sequence[Span]) -> bool:
        """Appends tokens that were dropped, with their sentences; returns whether a stop string is among them.

        The text must stand as it did when the tokens were first drawn.
        """
        stopped = [self.append(token) for token in tokens]
        self.sentences += spans
        return any(stopped)

    def takes(self, text: str) -> bool:
        """Whether this may be the text: no stop string and no call is in it, and none has begun at its end."""
        tools = self._tools
        if tools is not None and (tools.begin_of_calls(text) is not None or tools.held_back(text)):
            return False
        return not _overlap(text, self._stop) and not any(stop in text for stop in self._stop)

    def append_sentences(self, tokens: Sequence[Token], places: Sequence[tuple[int, int]]) -> None:
        """Appends tokens that nobody has drawn, and the sentences, by code points, that the text has with them."""
        for token in tokens:
            self.append(token)
        offset = self._known_end()
        self._add_sentences([(start - offset, end - offset) for start, end in places])

    def truncate(self, num_tokens: int) -> None:
        """Drops all but the first `num_tokens` tokens, and every trace of the others."""
        del self.tokens[num_tokens:]
        del self.ids[num_tokens:]
        self._decoded.truncate(num_tokens)
        self.text_end = None
        self._is_finished = False
        self._prose_end = None
        self._find_calls()
        self._reopen(self.firm_end)

    def sentence_end(self, begin: str) -> int | None:
        """The code point where the sentence that `begin` has begun surely ends; None while it may go on."""
        ends = (end - len(begin) for _, end in self._splitter.completed(begin + self.text))
        return next((end for end in ends if end > 0), None)

    def start_of(self, index: int) -> tuple[int, int]:
        """Where a sentence starts, as a code point, and how many tokens a rewind to there keeps.

        The number after the last one is that of the sentence that is being written. Where the text has ended it is the
        end, without the tokens that ended it.
        """
        text = self.text
        end = len(text) - len(text[self._known_end() :].lstrip())
        start = self.sentences[index].start if index < len(self.sentences) else end
        return start, self.tokens_before(start)

    def tokens_before(self, position: int) -> int:
        """How many tokens a rewind to the code point `position` keeps: those that end at or before it."""
        return self._decoded.tokens_ending_by(position)

    def end_of(self, num_tokens: int) -> int:
        """The code point at which the first `num_tokens` tokens end."""
        return self._decoded.end_of(num_tokens)

    def fixed_chars(self, num_tokens: int) -> int:
        """Length of the first `num_tokens` tokens' text without an end that a stop string could still take away."""
        text = self.text[: self._decoded.end_of(num_tokens)]
        return len(text) - _overlap(text, self._stop)

    def is_reopened_by_next(self, span: Span) -> bool:
        """Whether a rewind of the next sentence reopens this one: by a shared token, or a stop string at its end."""
        text = self.text
        following = len(text) - len(text[span.end :].lstrip())
        return span.end > self.fixed_chars(self.tokens_before(following))

    def text_of(self, span: Span) -> str:
        """A sentence's text."""
        return self.text[span.start : span.end]

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
            self.text[self._decoded.end_of(i) : self._decoded.end_of(i + 1)]
            for i in range(span.first_token, span.end_token)
            if not drop(self.tokens[i])
        ]
        return "".join(kept).strip()

    def held_back_chars(self) -> int:
        """How many characters at the end could still turn out to begin a stop string or a call."""
        if self.text_end is not None or not self.may_be_cut:
            return 0
        half_call = self._tools.held_back(self.text) if self._tools is not None and self._prose_end is None else 0
        return max(_overlap(self.text, self._stop), half_call)

    @property
    def _decoded(self) -> Detokenizer:
        """The detokenizer with all tokens."""
        if self._pending:
            self._decode()
        return self._detokenizer

    def _decode(self) -> None:
        pending, self._pending = self._pending, []
        self._detokenizer.extend(pending)

    def _find_stop(self, seen: int) -> bool:
        """Looks for a stop string that ends in the text from `seen` on."""
        text = self._decoded.text
        begins = [text.find(stop, max(0, seen - len(stop) + 1)) for stop in self._stop]
        self.text_end = min((begin for begin in begins if begin >= 0), default=None)
        if self.text_end is not None:
            self._reopen(self.text_end)
        return self.text_end is not None

    def _find_calls(self) -> None:
        """Looks where the prose ends."""
        if self._tools is not None and self._prose_end is None:
            self._prose_end = self._tools.begin_of_calls(self.text)

    def _reopen(self, position: int) -> None:
        """Forgets the sentences that end behind a code point."""
        while self.sentences and self.sentences[-1].end > position:
            self.sentences.pop()

    def _known_end(self) -> int:
        """Where the last known sentence ends."""
        return self.sentences[-1].end if self.sentences else 0

    def _add_sentences(self, spans: Sequence[tuple[int, int]]) -> None:
        offset = self._known_end()
        for start, end in spans:
            first = self._decoded.tokens_ending_by(offset + start)
            last = self._decoded.tokens_covering(offset + end)
            self.sentences.append(Span(offset + start, offset + end, first, max(last, first + 1)))


def _overlap(text: str, stops: Sequence[str]) -> int:
    """The length of the longest end of `text` with which a longer stop string begins."""
    sizes = ((stop, size) for stop in stops for size in range(1, min(len(stop) - 1, len(text)) + 1))
    return max((size for stop, size in sizes if text.endswith(stop[:size])), default=0)
