"""Tokens to text, as they come or many together, with an exact way back."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from ewe.engine.answer_text.token_decoding import decode_function, is_bytewise, texts_alone

# Tokenizers of the SentencePiece kind drop the leading space of the first piece they decode, so some tokens of the
# prompt are decoded along as left context.
_LEFT_CONTEXT = 6
_INCOMPLETE = "\ufffd"
_DECODED_TOGETHER = 16  # of the tokens that nobody waits for

# What the next piece is decoded in: from which token on, and up to which one has become text.
_Window = tuple[int, int]


class Detokenizer:
    """The text of a growing token list; `truncate` restores the state after any earlier token exactly.

    Without a tokenizer (token-id use of a model) the text stays empty. kept: the texts of special tokens that are not
    to be left out, by id.
    """

    def __init__(self, tokenizer: Any | None, prompt_ids: Sequence[int], kept: Mapping[int, str] | None = None) -> None:
        self._decode = None if tokenizer is None else decode_function(tokenizer)
        self._alone = texts_alone(tokenizer)
        self._is_bytewise = tokenizer is not None and is_bytewise(tokenizer)
        self._kept = kept or {}
        self._ids = list(prompt_ids[-_LEFT_CONTEXT:])
        self._offset = len(self._ids)
        # After no token, one, two: how long the text is, and the window. Numbers alone: no collection looks at them.
        self._ends = [0]
        self._starts, self._uptos = [0], [self._offset]
        # The text, its last pieces apart: to copy it for every token would take longer with every token.
        self._joined = ""
        self._pieces: list[str] = []
        self._length = 0
        self._pending: list[int] = []  # tokens that have not become text yet

    def append(self, token_id: int) -> str:
        """Adds a token; returns the new text, empty while a character is incomplete."""
        if self._pending:
            self._decode_pending()
        ids, start, upto = self._ids, self._starts[-1], self._uptos[-1]
        before = len(ids)
        ids.append(token_id)
        if token_id in self._kept:
            piece, upto_then = self._new_text((start, upto), before) + self._kept[token_id], before
        else:
            # Where tokens are bytes, one has the same text after any whole character.
            is_known = self._is_bytewise and upto == before
            piece = (self._alone.get(token_id) or self._text_alone(token_id)) if is_known else _INCOMPLETE
            if not piece or _INCOMPLETE in piece:
                piece = self._new_text((start, upto), before + 1)
                piece = "" if piece.endswith(_INCOMPLETE) else piece
            upto_then = upto
        if piece:
            self._pieces.append(piece)
            self._length += len(piece)
            start, upto = upto_then, before + 1
        self._ends.append(self._length)
        self._starts.append(start)
        self._uptos.append(upto)
        return piece

    def pass_over(self, token_id: int) -> None:
        """Adds a token that has no text; the text goes on behind it."""
        if self._pending:
            self._decode_pending()
        self._ids.append(token_id)
        self._ends.append(self._length)
        self._starts.append(len(self._ids))
        self._uptos.append(len(self._ids))

    def append_later(self, token_id: int) -> None:
        """Adds a token that is decoded with others, or as soon as somebody looks: for a text that nobody waits for."""
        pending = self._pending
        pending.append(token_id)
        if len(pending) == _DECODED_TOGETHER:
            self._decode_pending()

    def extend(self, token_ids: Sequence[int]) -> None:
        """Adds tokens; many whose texts are known are not looked at one by one."""
        self._decode_pending()
        if not self._extend_by_known(token_ids):
            for token_id in token_ids:
                self.append(token_id)

    def _decode_pending(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, []
            self.extend(pending)

    def _extend_by_known(self, token_ids: Sequence[int]) -> bool:
        before, length, known = len(self._ids), self._length, self._alone
        pieces = [known.get(token_id, "") for token_id in token_ids]
        stand_alone = self._is_bytewise and self._uptos[-1] == before and all(pieces)
        if not stand_alone or _INCOMPLETE in "".join(pieces) or not self._kept.keys().isdisjoint(token_ids):
            return False
        after = before + len(token_ids)
        self._ids += token_ids
        self._pieces += pieces
        self._ends += [length := length + len(piece) for piece in pieces]
        self._starts += range(before, after)
        self._uptos += range(before + 1, after + 1)
        self._length = length
        return True

    @property
    def text(self) -> str:
        """The whole text."""
        if self._pending:
            self._decode_pending()
        if self._pieces:
            self._joined += "".join(self._pieces)
            self._pieces = []
        return self._joined

    @property
    def length(self) -> int:
        """Code points of the whole text."""
        if self._pending:
            self._decode_pending()
        return self._length

    def text_from(self, begin: int) -> str:
        """The text from a code point on."""
        length, pieces = self.length, self._pieces
        is_last = pieces and begin + len(pieces[-1]) == length
        return pieces[-1] if is_last else self.text[begin:]

    def add(self, text: str) -> None:
        """Adds text that is no token's."""
        self._decode_pending()
        self._pieces.append(text)
        self._length += len(text)

    def fork(self) -> Detokenizer:
        """A second one in the same state."""
        twin = copy(self)
        for name in ("_ids", "_ends", "_starts", "_uptos", "_pieces", "_pending"):
            setattr(twin, name, list(getattr(self, name)))
        return twin

    def flush(self) -> str:
        """The text of trailing tokens that never became a whole character (not added to `text`)."""
        self._decode_pending()
        return self._new_text((self._starts[-1], self._uptos[-1]), len(self._ids))

    def truncate(self, num_tokens: int) -> None:
        """Goes back to the state after `num_tokens` generated tokens."""
        self._decode_pending()
        del self._ids[self._offset + num_tokens :]
        del self._ends[num_tokens + 1 :]
        del self._starts[num_tokens + 1 :]
        del self._uptos[num_tokens + 1 :]
        self._joined = self.text[: self._ends[-1]]
        self._length = len(self._joined)

    def end_of(self, num_tokens: int) -> int:
        """Length of the text, in code points, after the first `num_tokens` tokens."""
        self._decode_pending()
        return self._ends[num_tokens]

    def tokens_covering(self, num_chars: int) -> int:
        """How many leading tokens it takes to have the first `num_chars` code points; all of them for flushed text."""
        self._decode_pending()
        return min(bisect_left(self._ends, num_chars), len(self._ends) - 1)

    def tokens_ending_by(self, num_chars: int) -> int:
        """How many leading tokens end at or before the code point `num_chars`."""
        self._decode_pending()
        count = bisect_right(self._ends, num_chars) - 1
        while count > 0 and not self._is_whole(count):
            count -= 1
        return count

    def _is_whole(self, num_tokens: int) -> bool:
        """Whether the text after `num_tokens` tokens ends with a whole character."""
        return self._decode is None or self._uptos[num_tokens] == self._offset + num_tokens

    def _new_text(self, window: _Window, upto: int) -> str:
        start, decoded_upto = window
        if self._decode is None or decoded_upto == upto:
            return ""
        # What the next piece follows in its window; of one token, as most are, it is looked up.
        is_one = decoded_upto - start == 1
        before = self._text_alone(self._ids[start]) if is_one else self._decode(self._ids[start:decoded_upto])
        after = self._decode(self._ids[start:upto])
        return after[len(before) :] if len(after) > len(before) else ""

    def _text_alone(self, token_id: int) -> str:
        text = self._alone.get(token_id)
        if text is None:
            assert self._decode is not None
            text = self._alone[token_id] = self._decode([token_id])
        return text
