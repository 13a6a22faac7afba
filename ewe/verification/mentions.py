"""Values where they stand among the tokens of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ewe.verification.tokens import Token
from ewe.verification.values import Value
from ewe.verification.wordlists import HEDGES, MONTHS


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
