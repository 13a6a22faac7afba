"""Passages as memory units: their text from a template, their token ids, and their weight."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

from ewe.engine.units.control_tokens import PlainEncoder
from ewe.errors import ConfigError, InvalidRequestError
from ewe.text.sentences import SentenceSplitter
from ewe.types import Passage

VeracityMode = Literal["off", "linear", "power"]
_GAP = re.compile(r"\s+")
_CACHED_PASSAGES = 1024
_MOST_CHARACTERS = 64  # per token of a unit, of a field that is no text
FIELDS = ("title", "text", "source", "date")
_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_BRACKETS = {"(": ")", "[": "]", '"': '"'}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class UnitText:
    """What a unit holds: token ids, their text without control tokens, and whether some of the passage is missing."""

    token_ids: tuple[int, ...]
    text: str
    was_cut: bool


class UnitTokenizer:
    """Turns passages into at most `unit_tokens` tokens each, through `template` (fields: title, text, source, date).

    tokenizer is any tokenizer of transformers. What it puts before a text by itself (BOS) comes first; control tokens
    that the template spells out are kept as such, those in passages never are. Raises ConfigError for a template with
    unknown fields or without {text}, or a capacity below one token.
    """

    def __init__(self, tokenizer: Any, unit_tokens: int, template: str) -> None:
        if unit_tokens < 1:
            raise ConfigError(f"unit_tokens must be at least 1, got {unit_tokens}")
        check_template(template)
        self._template = template
        self._unit_tokens = unit_tokens
        self._encoder = PlainEncoder(tokenizer)
        self._splitter = SentenceSplitter()
        self._pieces = self._encoder.split_control_tokens(template)
        prefix = list(self._encoder.prefix)
        if self._pieces[: len(prefix)] != prefix:
            self._pieces = [*prefix, *self._pieces]
        # What is found for one sentence is mostly found for the next one, too, and the engine's thread makes its units.
        self.encode = lru_cache(_CACHED_PASSAGES)(self._encode)

    @cached_property
    def in_prompt(self) -> UnitTokenizer:
        """The same for units that stand within a prompt: no text begins there, and each ends with its line."""
        twin = copy(self)
        twin._pieces = self._encoder.split_control_tokens(self._template.removesuffix("\n") + "\n")
        twin.encode = lru_cache(_CACHED_PASSAGES)(twin._encode)
        return twin

    def _encode(self, passage: Passage) -> UnitText:
        """The unit of a passage, cut at the last sentence end that fits, or else at the last word or character.

        A title (source, date) that leaves no room for any text is left out. Raises InvalidRequestError for a passage
        without text, or if not even its first character fits.
        """
        most = _MOST_CHARACTERS * self._unit_tokens  # a longer title is left out anyway, and takes long to tokenise
        fields = {name: self._clean(getattr(passage, name)[: None if name == "text" else most]) for name in FIELDS}
        if not fields["text"]:
            raise InvalidRequestError(f"passage {passage.id!r} has no text")
        text_only = dict.fromkeys(FIELDS, "") | {"text": fields["text"]}
        for candidate in (fields, text_only):
            end = self._longest_text(candidate)
            if end:
                return self._unit(passage, candidate | {"text": fields["text"][:end].rstrip()}, fields)
        raise InvalidRequestError(f"passage {passage.id!r}: no text fits a unit of {self._unit_tokens} tokens")

    def prompt_text(self, passage: Passage) -> str:
        """What the unit of a passage says, as a part of a prompt's text: without control tokens there, too."""
        return self._encoder.for_prompt(self.encode(passage).text)

    def _unit(self, passage: Passage, held: Mapping[str, str], fields: Mapping[str, str]) -> UnitText:
        token_ids = tuple(self._token_ids(held))
        if len(token_ids) == sum(isinstance(piece, int) for piece in self._pieces):
            raise InvalidRequestError(f"passage {passage.id!r} has no text that the tokenizer keeps")
        text = "".join(fill_template(piece, held) for piece in self._pieces if isinstance(piece, str))
        return UnitText(token_ids, text, was_cut=held != fields)

    def _clean(self, field: str) -> str:
        return self._encoder.break_control_tokens(_unicode(field)).strip()

    def _token_ids(self, fields: Mapping[str, str]) -> list[int]:
        ids: list[int] = []
        for piece in self._pieces:
            ids += self._encoder.encode(fill_template(piece, fields)) if isinstance(piece, str) else [piece]
        return ids

    def _longest_text(self, fields: Mapping[str, str]) -> int:
        """How many code points of the text the unit can hold when cut where it should be; 0 if none."""
        text = fields["text"]

        def num_tokens(end: int) -> int:
            return len(self._token_ids({**fields, "text": text[:end].rstrip()}))

        def last_fitting(ends: Sequence[int]) -> int:
            count = bisect_left(ends, True, key=lambda end: num_tokens(end) > self._unit_tokens)
            return ends[count - 1] if count else 0

        if num_tokens(0) > self._unit_tokens:
            return 0
        # Look at a prefix only, so that the cost depends on the unit's size and not on the text's. Half a word may take
        # more tokens than the whole one, so a prefix says that the text is too long only if it is so by far.
        limit = min(8 * self._unit_tokens, len(text))
        while limit < len(text) and num_tokens(limit) <= 2 * self._unit_tokens:
            limit = min(2 * limit, len(text))
        if limit == len(text) and last_fitting([limit]):
            return limit
        at_sentence = last_fitting([end for _, end in self._splitter.completed(text[:limit])])
        if at_sentence:
            return at_sentence
        # A number cut in two is a false one, so cut between words, unless the text has hardly any spaces.
        at_word = last_fitting([gap.start() for gap in _GAP.finditer(text, 0, limit)])
        at_character = last_fitting(range(1, limit))
        return at_word if 2 * at_word >= at_character else at_character


def _unicode(text: str) -> str:
    """The text with a sign in the place of each half of a surrogate pair."""
    try:
        text.encode()  # in a tenth of the time of the pattern
    except UnicodeEncodeError:
        return _LONE_SURROGATE.sub("\ufffd", text)
    return text


def check_template(template: str) -> None:
    """Raise ConfigError if a template lacks {text} or names a field that passages do not have."""
    names = _PLACEHOLDER.findall(template)
    unknown = sorted(set(names) - set(FIELDS))
    if unknown:
        raise ConfigError(f"unit_template: unknown field {{{unknown[0]}}}; known: {', '.join(FIELDS)}")
    if "text" not in names:
        raise ConfigError("unit_template must contain {text}")


def fill_template(template: str, fields: Mapping[str, str]) -> str:
    """The template with the fields filled in, in one pass: braces inside a field stay as they are.

    An empty field takes its surroundings with it, so that "{title}: {text}" without a title is the text alone: its
    line if nothing else is filled in on it, else the brackets around it, else the separator to the next field (for
    the last field of a line, from the one before).
    """
    lines = (_fill_line(line, fields) for line in template.split("\n"))
    return "\n".join(line for line in lines if line is not None)


def _fill_line(line: str, fields: Mapping[str, str]) -> str | None:
    """One line filled in; None if it has fields and all of them are empty."""
    parts = _PLACEHOLDER.split(line)
    literals, values = parts[::2], [fields[name] for name in parts[1::2]]
    if values and not any(values):
        return None
    for index, value in enumerate(values):
        if not value:
            before, after = literals[index], literals[index + 1]
            literals[index], literals[index + 1] = _without_field(before, after, index == len(values) - 1)
    line = literals[0] + "".join(value + literal for value, literal in zip(values, literals[1:], strict=True))
    return line if all(values) else line.strip()


def _without_field(before: str, after: str, is_last: bool) -> tuple[str, str]:
    """What is left of the literals on both sides of an empty field."""
    opening = max(before.rfind(bracket) for bracket in _BRACKETS)
    if opening >= 0 and after.startswith(_BRACKETS[before[opening]]):
        return before[:opening].rstrip(), after[1:]
    return ("", after) if is_last else (before, "")


def unit_weight(veracity: float, mode: VeracityMode, power: float) -> float | None:
    """The weight w > 0 of a unit whose source has this veracity in [0, 1], or None: keep it out.

    off: w = 1; linear: w = veracity; power: w = veracity ** power. Veracity 0, or a power of it too small for a float,
    keeps the unit out. Raises ValueError for a veracity outside [0, 1].
    """
    if not 0.0 <= veracity <= 1.0:
        raise ValueError(f"veracity must lie in [0, 1], got {veracity}")
    if veracity == 0.0:
        return None
    if mode == "off":
        return 1.0
    weight = veracity if mode == "linear" else veracity**power
    return weight or None
