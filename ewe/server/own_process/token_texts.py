"""The texts of tokens that the engine's process tells in their place: it has more to do than to make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ewe.engine.answer_text.detokenizer import Detokenizer
from ewe.engine.answer_text.stream_events import StreamEvent

if TYPE_CHECKING:
    from ewe.engine.request import TokenizedRequest


class TokenTexts:
    """Tells of one answer's tokens what the engine would have told of its text.

    index: which answer of the request it is. is_final_at_once: whether drafts are final, too.
    """

    def __init__(
        self,
        request: TokenizedRequest,
        index: int,
        tokenizer: Any,
        is_final_at_once: bool,
        listener: Callable[[StreamEvent], None],
    ) -> None:
        self._detokenizer = Detokenizer(tokenizer, request.prompt_ids, request.original.kept)
        self._index, self._is_final_at_once, self._listener = index, is_final_at_once, listener
        self._num_tokens = self._num_discarded = 0
        self._shown = self._sent = 0

    def add(self, token_ids: Sequence[int]) -> None:
        """Tells of tokens that follow, if they bring text."""
        texts, index = self._detokenizer, self._index
        texts.extend(token_ids)
        self._num_tokens += len(token_ids)
        shown, sent, length = self._shown, self._sent, texts.length
        if length > shown:
            self._shown = length
            self._listener(StreamEvent("draft", {"text": texts.text_from(shown), "start": shown}, None, index))
        if self._is_final_at_once and length > sent:
            self._sent, num_discarded = length, self._num_discarded
            written = {"num_tokens": self._num_tokens + num_discarded, "num_discarded": num_discarded}
            self._listener(StreamEvent("text", {"text": texts.text_from(sent), **written}, None, index))

    def rewind(self, kept_chars: int, discarded_tokens: int) -> None:
        """Goes back with the engine's text."""
        self._num_tokens = self._detokenizer.tokens_ending_by(kept_chars)
        self._detokenizer.truncate(self._num_tokens)
        self._num_discarded += discarded_tokens
        self._shown = min(self._shown, kept_chars)
