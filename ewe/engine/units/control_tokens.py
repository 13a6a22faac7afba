"""Encoding text as nothing but text: no control token comes out, whatever the text spells."""

import copy
import re
from collections.abc import Iterable
from typing import Any

from ewe.text.control_marks import any_of, control_tokens, normalized, unmarked


class PlainEncoder:
    """Encodes text with a transformers tokenizer as if it had no control tokens.

    prefix: the ids that the tokenizer puts before every text by itself (BOS, usually). Works on a copy, so that other
    threads may go on using the tokenizer with its control tokens.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._control = control_tokens(tokenizer)
        # Some control tokens take the white space beside them along.
        sides = {added.content: (added.lstrip, added.rstrip) for added in tokenizer.added_tokens_decoder.values()}
        self._taken_out = any_of(self._control, sides)
        # The unknown token stands for text that the vocabulary lacks, unless it ends or begins texts as well.
        unknown = {tokenizer.unk_token_id} - {tokenizer.bos_token_id, tokenizer.eos_token_id}
        self._forbidden = frozenset(self._control.values()) - unknown
        self._tokenizer = _copy_without_control_tokens(tokenizer, self._control)
        self.prefix = self._find_prefix()
        self._spelled = any_of(self._control)
        # A unigram model may still find a control token in its vocabulary, as it finds any other word.
        self._findable = [text for text in self._control if not self._forbidden.isdisjoint(self._raw_ids(text))]
        self._found = any_of(self._findable)

    def encode(self, text: str) -> list[int]:
        """The token ids of the text, never one of a control token, and without the prefix."""
        return [token for token in self._raw_ids(text) if token not in self._forbidden]

    def break_control_tokens(self, text: str) -> str:
        """The text with a space inside every control token that `encode` would otherwise have to leave out."""
        # A pattern of many texts takes some milliseconds for a book, in which no other thread can go on.
        return self._found.sub(_broken, text) if any(one in text for one in self._findable) else text

    def for_prompt(self, text: str) -> str:
        """The text with a space inside every control token: a prompt's text is encoded with its control tokens.

        Where it spells some only once it is normalized, it is given so.
        """
        normal = normalized(self._tokenizer, text)
        if len(self._spelled.findall(normal)) > len(self._spelled.findall(text)):
            text = normal
        return self._spelled.sub(_broken, text)

    def split_control_tokens(self, text: str) -> list[str | int]:
        """The text as its control tokens (ids) and the text between them, in order."""
        parts = self._spelled.split(text)
        return [self._control[part] if index % 2 else part for index, part in enumerate(parts) if part]

    def encode_marked(self, text: str) -> list[int]:
        """The token ids of a prompt with marks: its control tokens, but for those that somebody spelled in it."""
        ids: list[int] = []
        for index, part in enumerate(self._taken_out.split(text)):
            if index % 2:
                ids.append(self._control[part if part in self._control else part.strip()])
            elif part:
                ids += self.encode(self.break_control_tokens(unmarked(part)))
        return ids

    def _raw_ids(self, text: str, add_special_tokens: bool = False) -> list[int]:
        ids: list[int] = self._tokenizer.encode(
            text, add_special_tokens=add_special_tokens, split_special_tokens=True, verbose=False
        )
        return ids

    def _find_prefix(self) -> tuple[int, ...]:
        with_added, plain = self._raw_ids("a", add_special_tokens=True), self._raw_ids("a")
        for start in range(len(with_added) - len(plain) + 1):
            if with_added[start : start + len(plain)] == plain:
                return tuple(with_added[:start])
        return ()


def _copy_without_control_tokens(tokenizer: Any, control: Iterable[str]) -> Any:
    """A copy of the tokenizer that regards all control tokens as special, so that special ones can be switched off."""
    twin = copy.deepcopy(tokenizer)
    backend = getattr(twin, "backend_tokenizer", None)
    if backend is not None:
        backend.add_special_tokens(list(control))
    return twin


def _broken(match: re.Match[str]) -> str:
    return f"{match[0][0]} {match[0][1:]}"
