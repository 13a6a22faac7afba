"""Sentences as tokens with their places, and the values that tokens state."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ewe.text.english import HEDGES, MONTHS, stem
from ewe.text.words import fold
from ewe.verification.value_comparison.values import Value

_TOKEN = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)*)(?P<suffix>st|nd|rd|th|['’]?s)?(?![^\W_])"
    r"|(?P<initials>(?:[^\W\d_]\.){2,}|[A-Z]\.(?=\s*[A-Z]))"
    r"|(?P<word>[^\W_]+(?:(?:['’&]|[-‐‑])[^\W_]+)*)"
    r"|(?P<mark>\S)"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number or mark; start and end are code points of the sentence, `norm` is folded and without "'s".

    suffix is what follows a number's digits ("th", "s"); possessive is whether "'s" was dropped.
    """

    text: str
    norm: str
    stem: str
    start: int
    end: int
    kind: str
    suffix: str = ""
    possessive: bool = False

    @property
    def is_word(self) -> bool:
        """Whether the token is made of letters (initials included)."""
        return self.kind in ("word", "initials")

    @property
    def is_capital(self) -> bool:
        """Whether the token is a word that begins with a capital letter."""
        return self.is_word and self.text[0].isupper()


def tokenize(sentence: str) -> list[Token]:
    """The tokens of `sentence` in order; never raises."""
    return [_token(match) for match in _TOKEN.finditer(sentence)]


def _token(match: re.Match[str]) -> Token:
    kind = match.lastgroup or "mark"
    text = match.group()
    if number := match.group("number"):
        suffix = (match.group("suffix") or "").lstrip("'’")
        return Token(text, number, number, match.start(), match.end(), "number", suffix)
    norm = fold(text).replace("’", "'")
    if kind == "mark":
        return Token(text, norm, norm, match.start(), match.end(), kind)
    possessive = norm.endswith("'s") and len(norm) > 2
    norm = norm.removesuffix("'s") if possessive else norm
    if kind == "initials":
        norm = norm.replace(".", "")
    return Token(text, norm, stem(norm), match.start(), match.end(), kind, possessive=possessive)


@dataclass(frozen=True, slots=True)
class Mention:
    """A value and the tokens [first, last) that state it."""

    value: Value
    first: int
    last: int


def is_hedge(tokens: Sequence[Token], i: int) -> bool:
    """Whether token i or the one before it makes the number behind it a bound or an approximation."""
    return any(token.norm in HEDGES for token in tokens[max(0, i - 1) : i + 1])


def month_at(tokens: Sequence[Token], i: int) -> int | None:
    """1 to 12 if token i is the name of a month."""
    if not 0 <= i < len(tokens) or not tokens[i].is_capital:
        return None
    return MONTHS.get(tokens[i].norm)


def norm_at(tokens: Sequence[Token], i: int) -> str:
    """The folded word at i, or an empty one outside the sentence."""
    return tokens[i].norm if 0 <= i < len(tokens) else ""
