"""Finding numbers with what they count."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ewe.verification.mentions import Mention, is_hedge, norm_at
from ewe.verification.tokens import Token
from ewe.verification.values import Quantity
from ewe.verification.wordlists import FUNCTION_WORDS, MAGNITUDES, NUMBER_WORDS, ORDINALS

_MAX_DIGITS = 9


def find_number(tokens: Sequence[Token], i: int) -> Mention | None:
    """A number in digits or words with what it counts, or an ordinal."""
    number, last = _numeral(tokens, i)
    if number is None:
        return _ordinal(tokens, i)
    units = _units(tokens, last)
    if tokens[i].kind != "number" and not units:
        return None
    if i and tokens[i - 1].text in ("$", "€", "£"):
        units = units | {tokens[i - 1].text}
    return Mention(Quantity(number, units, hedged=i > 0 and is_hedge(tokens, i - 1)), i, last)


def _numeral(tokens: Sequence[Token], i: int) -> tuple[float | None, int]:
    """The number that begins at token i and the token after it ("twenty-five", "1.9 million")."""
    token = tokens[i]
    if token.kind == "number":
        if token.suffix in ("st", "nd", "rd", "th"):
            return None, i
        digits = re.sub(r",(?=\d{3})", "", token.norm)
        number = float(digits) if re.fullmatch(r"\d{1,30}(\.\d{1,30})?", digits) else None
    else:
        parts = [NUMBER_WORDS.get(part) for part in re.split(r"[-‐‑]", token.norm)]
        number = None if None in parts or token.norm == "one" else float(sum(part or 0 for part in parts))
    last = i + 1
    while number is not None and norm_at(tokens, last) in MAGNITUDES:
        number *= MAGNITUDES[norm_at(tokens, last)]
        last += 1
    return number, last


def _ordinal(tokens: Sequence[Token], i: int) -> Mention | None:
    token = tokens[i]
    if (
        token.kind == "number"
        and token.suffix in ("st", "nd", "rd", "th")
        and len(token.norm) < 10
        and token.norm.isdecimal()
    ):
        value = int(token.norm)
    elif token.norm in ORDINALS and not token.is_capital:
        value = ORDINALS[token.norm]
    else:
        return None
    units = _units(tokens, i + 1)
    return Mention(Quantity(value, units, ordinal=True), i, i + 1) if units else None


def _units(tokens: Sequence[Token], i: int) -> frozenset[str]:
    """Stems of the words that a number counts: up to three lower-case words before a function word or mark."""
    found: list[str] = []
    for token in tokens[i : i + 3]:
        if token.text == "%":
            return frozenset({"percent"})
        if token.text in ("-", "‑") and not found:
            continue
        if not token.is_word or token.is_capital or token.norm in FUNCTION_WORDS:
            break
        found.append(token.stem)
    return frozenset(found)
