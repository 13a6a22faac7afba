"""Text of conversations that spells control tokens: marked, so that it stays text on its way to the tokenizer.

Chat templates join what people say with control tokens into one text. A mark is a character that Unicode keeps for use
inside programs. It stands inside every control token that somebody spells, so that the tokenizer does not see one; the
encoder of marked text takes the marks out again once it has found the control tokens of the template.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

MARK = "\ufdd0"
# Some tokenizers declare markup such as "<think>" or "<tool_call>" as ordinary added tokens; models obey it all the
# same. Added words and runs of white space are no control tokens.
_MARKUP = re.compile(r"[\s▁]*[<\[{|]")
_OWN_WORDS = ("assistant", "system")
_SPACE = r"\s*"
_NEVER = re.compile(r"(?!)")


def control_tokens(tokenizer: Any, markup: bool = True) -> dict[str, int]:
    """The ids of a transformers tokenizer's control tokens by their texts. markup: whether tags like <think> count."""
    tokens = dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
    for token, added in tokenizer.added_tokens_decoder.items():
        if added.special or (markup and _MARKUP.match(added.content)):
            tokens[added.content] = token
    return {text: token for text, token in tokens.items() if text}


def any_of(texts: Iterable[str], takes_space: Mapping[str, tuple[bool, bool]] | None = None) -> re.Pattern[str]:
    """A pattern with one group that finds any of the texts, the longest first.

    takes_space: of which texts it takes the white space before and after them, too.
    """
    pieces = []
    for text in sorted(filter(None, texts), key=len, reverse=True):
        before, after = (takes_space or {}).get(text, (False, False))
        pieces.append(f"{_SPACE if before else ''}{re.escape(text)}{_SPACE if after else ''}")
    return re.compile(f"({'|'.join(pieces)})") if pieces else _NEVER


def normalized(tokenizer: Any, text: str) -> str:
    """The text in which a transformers tokenizer may look for its tokens: other letters may have become theirs."""
    normalizer = getattr(getattr(tokenizer, "backend_tokenizer", None), "normalizer", None)
    return text if normalizer is None else str(normalizer.normalize_str(text))


def unmarked(text: str) -> str:
    """The text as it was before it was marked."""
    return text.replace(MARK, "")


class Marker:
    """Marks the texts of conversations for one tokenizer; texts that spell no control token stay as they are."""

    def __init__(self, tokenizer: Any) -> None:
        self._all = _Texts(tokenizer, control_tokens(tokenizer))
        self._special = _Texts(tokenizer, control_tokens(tokenizer, markup=False))

    def message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A message whose texts are marked: models and operators may write markup, but no control tokens."""
        marks = self._special if message.get("role") in _OWN_WORDS else self._all
        return {key: (marks if key == "content" else self._all).marked(value) for key, value in message.items()}

    def data(self, value: Any) -> Any:
        """The same for a value of JSON that comes from elsewhere, its keys included."""
        return self._all.marked(value)

    def num_control(self, text: str) -> int:
        """How many control tokens a text spells without a mark."""
        return len(self._all.pattern.findall(text))

    @property
    def texts(self) -> list[str]:
        """What control tokens are spelled like."""
        return self._all.texts


class _Texts:
    """Control tokens of one kind, by their texts."""

    def __init__(self, tokenizer: Any, control: Iterable[str]) -> None:
        self.texts = list(control)
        self.pattern = any_of(self.texts)
        self._begins = {text[:size] for text in self.texts for size in range(1, len(text))}
        self._ends = {text[size:] for text in self.texts for size in range(1, len(text))}
        self._longest = max(map(len, self.texts), default=0)
        self._tokenizer = tokenizer

    def marked(self, value: Any) -> Any:
        """A text, or all texts of a value of JSON, with marks."""
        if isinstance(value, str):
            return self._marked(value)
        if isinstance(value, Mapping):
            return {self.marked(key): self.marked(item) for key, item in value.items()}
        return [self.marked(item) for item in value] if isinstance(value, list | tuple) else value

    def _marked(self, text: str) -> str:
        text = text.replace(MARK, "\ufffd")  # it is no character that texts may hold
        if len(self.pattern.findall(normalized(self._tokenizer, text))) > len(self.pattern.findall(text)):
            return MARK.join(text)
        text = self.pattern.sub(lambda match: f"{match[0][0]}{MARK}{match[0][1:]}", text)
        return self._with_ends(text)

    def _with_ends(self, text: str) -> str:
        """The text with a mark where it could be half of a control token whose other half the template joins to it."""
        core = text.strip()
        begin = text.find(core)
        sizes = range(1, min(len(core), self._longest) + 1)
        if any(core[-size:] in self._begins for size in sizes):
            end = begin + len(core)
            text = text[:end] + MARK + text[end:]
        if any(core[:size] in self._ends for size in sizes):
            text = text[:begin] + MARK + text[begin:]
        return text
