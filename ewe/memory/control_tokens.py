"""Encoding text as nothing but text: no control token comes out, whatever the text spells."""

import copy
import re
from collections.abc import Iterable
from typing import Any

# Some tokenizers declare markup such as "<think>" or "<tool_call>" as ordinary added tokens; models obey it all the
# same. Added words and runs of white space are no control tokens.
_MARKUP = re.compile(r"[\s▁]*[<\[{|]")
_NEVER = re.compile(r"(?!)")


class PlainEncoder:
    """Encodes text with a transformers tokenizer as if it had no control tokens.

    prefix: the ids that the tokenizer puts before every text by itself (BOS, usually). Works on a copy, so that other
    threads may go on using the tokenizer with its control tokens.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._control = dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
        for token, added in tokenizer.added_tokens_decoder.items():
            if added.special or _MARKUP.match(added.content):
                self._control[added.content] = token
        # The unknown token stands for text that the vocabulary lacks, unless it ends or begins texts as well.
        unknown = {tokenizer.unk_token_id} - {tokenizer.bos_token_id, tokenizer.eos_token_id}
        self._forbidden = frozenset(self._control.values()) - unknown
        self._tokenizer = _copy_without_control_tokens(tokenizer, self._control)
        self.prefix = self._find_prefix()
        self._spelled = _any_of(self._control)
        # A unigram model may still find a control token in its vocabulary, as it finds any other word.
        found = [text for text in self._control if not self._forbidden.isdisjoint(self._raw_ids(text))]
        self._findable = _any_of(found)

    def encode(self, text: str) -> list[int]:
        """The token ids of the text, never one of a control token, and without the prefix."""
        return [token for token in self._raw_ids(text) if token not in self._forbidden]

    def break_control_tokens(self, text: str) -> str:
        """The text with a space inside every control token that `encode` would otherwise have to leave out."""
        return self._findable.sub(_broken, text)

    def for_prompt(self, text: str) -> str:
        """The text with a space inside every control token: a prompt's text is encoded with its control tokens."""
        return self._spelled.sub(_broken, text)

    def split_control_tokens(self, text: str) -> list[str | int]:
        """The text as its control tokens (ids) and the text between them, in order."""
        parts = self._spelled.split(text)
        return [self._control[part] if index % 2 else part for index, part in enumerate(parts) if part]

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


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """A pattern with one group that finds any of the texts, the longest first."""
    longest_first = sorted(filter(None, texts), key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else _NEVER
