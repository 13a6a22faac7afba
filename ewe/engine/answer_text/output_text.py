"""The text that one sequence has written so far: tokens, characters and sentences, truncated together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from ewe.engine.answer_text.detokenizer import Detokenizer
from ewe.engine.answer_text.reasoning import Reasoning
from ewe.engine.answer_text.sentence_spans import SentenceSpans, Span, next_start
from ewe.engine.answer_text.stop_checker import StopChecker
from ewe.engine.sampling.sampler import Token
from ewe.text.sentences import SentenceSplitter
from ewe.text.tool_calls.use import ToolUse


class OutputText:
    """Generated tokens with their text, sentences and stop-string state.

    stop: strings that end the text; they are looked for once `min_tokens` tokens are there. tools: how calls of tools
    are written, if there may be any. From the first call on a text is no prose and has no sentences. kept: special
    tokens that the text has, by id, beside those of tools. is_watched: whether the text is read after every token; else
    it takes less time. reasoning: takes what the model reasons first, which is among the tokens and not in the text.
    prefill: what the text goes on with.
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
        reasoning: Reasoning | None = None,
        prefill: str = "",
    ) -> None:
        self.tokens: list[Token] = []
        self.ids: list[int] = []
        self.text_end: int | None = None
        of_tools = {} if tools is None else {token_id: text for text, token_id in tools.token_ids.items()}
        self.tokenizer = tokenizer
        self._detokenizer = Detokenizer(tokenizer, prompt_ids, {**(kept or {}), **of_tools})
        self._sentences = SentenceSpans(splitter, self._detokenizer, prefill)
        self.reasoning = reasoning
        self._prose_end: int | None = None
        self._checker = StopChecker(tuple(stop), tools)
        self._min_tokens = min_tokens
        self.may_be_cut = bool(stop or tools)  # else nothing is looked for in the text, and nothing is held back
        self._is_watched = is_watched or self.may_be_cut
        self._is_finished = False

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def sentences(self) -> list[Span]:
        """Those that are known so far."""
        return self._sentences.spans

    @property
    def text(self) -> str:
        """The text so far, cut before a stop string."""
        return self._detokenizer.text[: self.text_end]

    @property
    def firm_end(self) -> int:
        """Up to where neither a stop string nor a call can still take the text away as it goes on."""
        is_all = self.text_end is None and not self.may_be_cut
        return self._detokenizer.length if is_all else len(self.text) - self.held_back_chars()

    def text_between(self, begin: int, end: int) -> str:
        """The text of code points [begin, end); what the last token has brought is not looked for in the whole text."""
        is_rest = self.text_end is None and end == self._detokenizer.length
        return self._detokenizer.text_from(begin) if is_rest else self.text[begin:end]

    @property
    def is_reasoning(self) -> bool:
        """Whether the model reasons, and its answer is yet to begin."""
        return self.reasoning is not None and self.reasoning.is_under_way

    @property
    def token_ends(self) -> tuple[int, ...]:
        """The code point of the text at which each token ends."""
        return tuple(self._detokenizer.end_of(number) for number in range(1, len(self) + 1))

    def append(self, token: Token) -> bool:
        """Adds a token; returns whether a stop string has now appeared (the text then ends before it)."""
        self.tokens.append(token)
        self.ids.append(token.id)
        if self.reasoning is not None and self.reasoning.takes(token.id):
            self._detokenizer.pass_over(token.id)
            return False
        if not self._is_watched:
            self._detokenizer.append_later(token.id)
            return False
        piece = self._detokenizer.append(token.id)
        if not self.may_be_cut:
            return False
        may_stop = piece and self._checker.stop and len(self) >= self._min_tokens
        stopped = bool(may_stop and self._find_stop(self._detokenizer.length - len(piece)))
        self._find_calls()
        return stopped

    def add_text(self, text: str) -> bool:
        """Adds a finished piece that has no tokens; returns whether a stop string ends the text in it.

        What stands is not taken back for that, and no sentences are looked for.
        """
        begin = len(self.text)
        self._detokenizer.add(text)
        stop = self._checker.begin_of_stop(self._detokenizer.text)
        self.text_end = None if stop is None else max(stop, begin)
        self._is_finished = True
        return self.text_end is not None

    def fork(self) -> OutputText:
        """A second text that begins with this one and goes its own way."""
        twin = copy(self)
        twin.tokens, twin.ids = list(self.tokens), list(self.ids)
        twin._detokenizer = self._detokenizer.fork()
        twin._sentences = self._sentences.fork(twin._detokenizer)
        twin.reasoning = self.reasoning and self.reasoning.fork()
        return twin

    def finish(self) -> None:
        """Ends the text: trailing bytes become characters, the rest becomes the last sentences; again does nothing."""
        if self._is_finished:
            return
        self._is_finished = True
        if self.reasoning is not None:
            self.reasoning.end()
        if self.text_end is None:
            self._detokenizer.add(self._detokenizer.flush())
        if self._prose_end is not None and not self._checker.has_calls(self.text):
            self._prose_end = None  # it only began like a call
        self._sentences.add_all(self.text[: self._prose_end])

    def find_sentences(self) -> None:
        """Adds the sentences that have surely been completed since the last call: nothing can cut or extend them."""
        if self._prose_end is None:
            self._sentences.add_completed(self.text[: self.firm_end])
        else:  # nothing cuts or extends what ends before a call
            self._sentences.add_all(self.text[: self._prose_end])

    def restore(self, tokens: Sequence[Token], spans: Sequence[Span]) -> bool:
        """Appends tokens that were dropped, with their sentences; returns whether a stop string is among them.

        The text must stand as it did when the tokens were first drawn.
        """
        stopped = [self.append(token) for token in tokens]
        self.sentences.extend(spans)
        return any(stopped)

    def takes(self, text: str) -> bool:
        """Whether this may be the text: no stop string and no call is in it, and none has begun at its end."""
        return self._checker.lets_pass(text)

    def append_sentences(self, tokens: Sequence[Token], places: Sequence[tuple[int, int]]) -> None:
        """Appends tokens that nobody has drawn, and the sentences, by code points, that the text has with them."""
        for token in tokens:
            self.append(token)
        self._sentences.add(places)

    def truncate(self, num_tokens: int) -> None:
        """Drops all but the first `num_tokens` tokens, and every trace of the others."""
        del self.tokens[num_tokens:]
        del self.ids[num_tokens:]
        if self.reasoning is not None:
            self.reasoning.truncate(num_tokens)
        self._detokenizer.truncate(num_tokens)
        self.text_end = None
        self._is_finished = False
        self._prose_end = None
        self._find_calls()
        self._sentences.reopen(self.firm_end)

    def sentence_end(self, begin: str) -> int | None:
        """The code point where the sentence that `begin` has begun surely ends; None while it may go on."""
        return self._sentences.end_of_begun(begin, self.text)

    def start_of(self, index: int) -> tuple[int, int]:
        """Where a sentence starts, as a code point, and how many tokens a rewind to there keeps.

        The number after the last one is that of the sentence that is being written. Where the text has ended it is the
        end, without the tokens that ended it.
        """
        start = self._sentences.start_of(index, self.text)
        return start, self.tokens_before(start)

    def tokens_before(self, position: int) -> int:
        """How many tokens a rewind to the code point `position` keeps: those that end at or before it."""
        return self._detokenizer.tokens_ending_by(position)

    def end_of(self, num_tokens: int) -> int:
        """The code point at which the first `num_tokens` tokens end."""
        return self._detokenizer.end_of(num_tokens)

    def fixed_chars(self, num_tokens: int) -> int:
        """Length of the first `num_tokens` tokens' text without an end that a stop string could still take away."""
        text = self.text[: self._detokenizer.end_of(num_tokens)]
        return len(text) - self._checker.half_stop(text)

    def is_reopened_by_next(self, span: Span) -> bool:
        """Whether a rewind of the next sentence reopens this one: by a shared token, or a stop string at its end."""
        return span.end > self.fixed_chars(self.tokens_before(next_start(self.text, span.end)))

    def text_of(self, span: Span) -> str:
        """A sentence's text."""
        return self.text[span.start : span.end]

    def held_back_chars(self) -> int:
        """How many characters at the end could still turn out to begin a stop string or a call."""
        if self.text_end is not None or not self.may_be_cut:
            return 0
        text = self.text
        half_call = self._checker.half_call(text) if self._prose_end is None else 0
        return max(self._checker.half_stop(text), half_call)

    def _find_stop(self, seen: int) -> bool:
        """Looks for a stop string that ends in the text from `seen` on."""
        self.text_end = self._checker.begin_of_stop(self._detokenizer.text, seen)
        if self.text_end is not None:
            self._sentences.reopen(self.text_end)
        return self.text_end is not None

    def _find_calls(self) -> None:
        """Looks where the prose ends."""
        if self._checker.tools is not None and self._prose_end is None:
            self._prose_end = self._checker.begin_of_calls(self.text)
