"""What a model reasons before it answers: leading tokens of an answer that are no part of its text."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Literal

from ewe.engine.answer_text.detokenizer import Detokenizer
from ewe.text.reasoning_marks import ReasoningMarks

_NEAR = 8  # Tokens at the end of a prompt among which its last mark stands, if it is one of the chat template.


class Reasoning:
    """Takes the tokens of one answer until the model has reasoned; the text begins behind the white space after that.

    is_open: whether the prompt ends where the model begins to reason; else it may begin with its first token. begun:
    the prompt, if the model goes on with what it has reasoned there.
    """

    def __init__(self, marks: ReasoningMarks, tokenizer: Any, is_open: bool, begun: Sequence[int] = ()) -> None:
        self._marks, self._tokenizer, self._is_open, self._begun = marks, tokenizer, is_open, begun
        self._begin()

    def _begin(self) -> None:
        self._state: Literal["to come", "open", "white space", "over"] = "open" if self._is_open else "to come"
        self._ids: list[int] = []
        self._detokenizer = Detokenizer(self._tokenizer, self._begun)

    @property
    def text(self) -> str:
        """What has been reasoned so far, without the marks and the white space beside them."""
        return self.text_from(0)

    def text_from(self, begin: int) -> str:
        """The text from a code point on."""
        return self._detokenizer.text_from(begin).rstrip()

    @property
    def num_tokens(self) -> int:
        """How many tokens of the answer belong to it, marks and white space included."""
        return len(self._ids)

    @property
    def is_under_way(self) -> bool:
        """Whether the next token belongs to it unless it is the mark behind it."""
        return self._state == "open"

    def takes(self, token_id: int) -> bool:
        """Whether the answer's next token belongs to it; then it is noted."""
        match self._state:
            case "open" if token_id == self._marks.end_id:
                self._state = "white space"
            case "open":
                if self._begun or self._detokenizer.length or not self._is_white_space(token_id):
                    self._detokenizer.append(token_id)
            case "to come" if token_id == self._marks.begin_id:
                self._state = "open"
            case "white space" if self._is_white_space(token_id):
                pass
            case _:
                self._state = "over"
                return False
        self._ids.append(token_id)
        return True

    def truncate(self, num_tokens: int) -> None:
        """Forgets all but the first `num_tokens` tokens of the answer."""
        if num_tokens < len(self._ids):
            kept = self._ids[:num_tokens]
            self._begin()
            for token_id in kept:
                self.takes(token_id)

    def end(self) -> None:
        """Ends it: what follows is text, whoever writes it."""
        self._state = "over"

    def fork(self) -> Reasoning:
        """A second one in the same state."""
        twin = copy(self)
        twin._ids, twin._detokenizer = list(self._ids), self._detokenizer.fork()
        return twin

    def _is_white_space(self, token_id: int) -> bool:
        return not self._tokenizer.decode([token_id]).strip()


def reasoning_after(
    marks: ReasoningMarks | None, tokenizer: Any | None, prompt_ids: Sequence[int], prefill: str = ""
) -> Reasoning | None:
    """That of an answer to a prompt; None where the model has no marks, or the prompt says that it is not to reason.

    prefill: how the prompt begins the answer: then the model reasons only if it has begun to there.
    """
    if marks is None or (prefill and not marks.is_unclosed(prefill)):
        return None
    near = prompt_ids if prefill else prompt_ids[-_NEAR:]
    last = next((one for one in reversed(near) if one in (marks.begin_id, marks.end_id)), None)
    if last == marks.end_id or (prefill and last is None):  # what only spells the mark is text
        return None
    return Reasoning(marks, tokenizer, last == marks.begin_id, prompt_ids if prefill else ())
