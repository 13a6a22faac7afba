"""Finding dates, years, decades and centuries, and numbers with what they count."""

import re
from collections.abc import Sequence
from dataclasses import replace

from ewe.text.english import FUNCTION_WORDS, MAGNITUDES, NUMBER_WORDS, ORDINALS, words_of
from ewe.verification.value_comparison.tokens import Mention, Token, is_hedge, month_at, norm_at
from ewe.verification.value_comparison.values import Bound, Moment, Quantity

_YEAR_LEADS = words_of(
    """in since of from until till by to around circa c before after during between and through early late mid spring
    summer autumn fall winter year a an the her his its their"""
)
_BOUNDS = {bound.value: bound for bound in Bound}
_SPANS = words_of("day days week weeks month months year years decade decades century centuries")
_MAX_DIGITS = 9
_ORDINAL_ENDS = ("st", "nd", "rd", "th")


def find_date(tokens: Sequence[Token], i: int) -> Mention | None:
    """A date, year, decade or century that begins at token i."""
    moment, last = _moment_at(tokens, i)
    if moment is None:
        return None
    hedged = moment.hedged or (i > 0 and is_hedge(tokens, i - 1))
    is_article = moment.years > 1 and norm_at(tokens, i - 1) == "the"  # "before the 1930s"
    ahead = i - 2 if is_article else i - 1
    bound = _BOUNDS.get(norm_at(tokens, ahead))
    if bound and norm_at(tokens, ahead - 1) in _SPANS:  # "five years before 1930" is one time
        hedged, bound = True, None
    return Mention(replace(moment, hedged=hedged, bound=bound), i, last)


def _moment_at(tokens: Sequence[Token], i: int) -> tuple[Moment | None, int]:
    """The date that begins at token i and the token after it."""
    if month_at(tokens, i):
        return _month_first(tokens, i)
    if not _is_whole(tokens[i]):
        if tokens[i].norm in ORDINALS and norm_at(tokens, i + 1) == "century":
            return Moment(ORDINALS[tokens[i].norm] * 100 - 100, years=100, hedged=True), i + 2
        return None, i
    number = int(tokens[i].norm)
    if norm_at(tokens, i + 1) == "century" and tokens[i].suffix and number < 40:
        return Moment(number * 100 - 100, years=100, hedged=True), i + 2
    behind = i + 2 if norm_at(tokens, i + 1) == "of" else i + 1
    if 1 <= number <= 31 and month_at(tokens, behind):
        year, last = _year_at(tokens, behind + 1)
        return Moment(year, month_at(tokens, behind), number), last
    if _iso(tokens, i):
        return Moment(number, int(tokens[i + 2].norm), int(tokens[i + 4].norm)), i + 5
    if _is_year(tokens, i):
        return Moment(number, years=10 if tokens[i].suffix == "s" and number % 10 == 0 else 1), i + 1
    return None, i


def _month_first(tokens: Sequence[Token], i: int) -> tuple[Moment | None, int]:
    """ "May 3, 1901", "May 1901" or "3 May"; the bare name of a month is a date only if it cannot be a verb."""
    month = month_at(tokens, i)
    following = tokens[i + 1] if i + 1 < len(tokens) else None
    if following is not None and _is_day(following):
        year, last = _year_at(tokens, i + 2)
        return Moment(year, month, int(following.norm)), last
    year, last = _year_at(tokens, i + 1)
    if year is not None:
        return Moment(year, month), last
    if tokens[i].norm in ("may", "march", "jan", "mar") or len(tokens[i].norm) < 4:
        return None, i
    return Moment(month=month), i + 1


def _is_day(token: Token) -> bool:
    return _is_whole(token) and len(token.norm) <= 2 and 1 <= int(token.norm) <= 31


def _is_whole(token: Token) -> bool:
    return token.kind == "number" and token.norm.isdecimal() and len(token.norm) <= _MAX_DIGITS


def _year_at(tokens: Sequence[Token], i: int) -> tuple[int | None, int]:
    """The year at token i or behind a comma or "of" there, and the token after the date."""
    at = i + 1 if norm_at(tokens, i) in (",", "of") else i
    if at < len(tokens) and _is_whole(tokens[at]) and 3 <= len(tokens[at].text) <= 4:
        return int(tokens[at].norm), at + 1
    return None, i


def _iso(tokens: Sequence[Token], i: int) -> bool:
    parts = tokens[i : i + 5]
    if len(parts) < 5 or len(parts[0].text) != 4 or parts[1].text != "-" or parts[3].text != "-":
        return False
    return all(part.norm.isdecimal() and len(part.text) == 2 for part in (parts[2], parts[4]))


def _is_year(tokens: Sequence[Token], i: int) -> bool:
    """Whether the number at token i is a year: four digits in a place where a year can stand."""
    token = tokens[i]
    if len(token.norm) != 4 or "," in token.text or not 1000 <= int(token.norm) <= 2100:
        return False
    before, after = norm_at(tokens, i - 1) if i else "", tokens[i + 1] if i + 1 < len(tokens) else None
    if before in ("$", "€", "£", "no", "number") or (after is not None and after.text in ("%", "°")):
        return False
    leads = not before or before in _YEAR_LEADS or not before[0].isalpha() or tokens[i - 1].is_capital
    counts = after is not None and after.is_word and not after.is_capital and after.norm not in FUNCTION_WORDS
    return leads or not counts


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
        if token.suffix in _ORDINAL_ENDS:
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
    if token.suffix in _ORDINAL_ENDS and _is_whole(token):
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
