"""Finding dates, numbers and names among the tokens of a sentence.

Owns: the patterns of English dates, numbers and proper names. Knows tokens, values and the word lists; no relations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ewe.verification.lexicon import (
    FUNCTION_WORDS,
    HEDGES,
    KIND_OF_NOUN,
    MAGNITUDES,
    MONTHS,
    NUMBER_WORDS,
    ORDINALS,
    RELATIONS,
    WEEKDAYS,
    NameKind,
    words_of,
)
from ewe.verification.tokens import Token
from ewe.verification.values import Moment, Name, Quantity, Value

_QUOTED = re.compile(
    r"“([^“”]{2,80})”|\"([^\"]{2,80})\"|(?<!\w)‘([^‘’]{2,80})’(?!\w)|(?<![*\w])\*{1,2}([^*]{2,80})\*{1,2}|_([^_]{2,80})_"
)
_SENTENCE_END = re.compile(r"[.!?]$|[.!?]\s")
_LINKS_OF_NAMES = words_of("de la le du des del della di da dos von van der den zu zum ter bin ibn al el")
_YEAR_LEADS = words_of(
    """in since of from until till by to around circa c before after during between and through early late mid spring
    summer autumn fall winter year a an the her his its their"""
)
_BUILDINGS = words_of("bridge palace castle cathedral tower station")
_MAX_WORDS = 10
_MAX_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Mention:
    """A value and the tokens [first, last) that state it."""

    value: Value
    first: int
    last: int


def find_mentions(sentence: str, tokens: Sequence[Token]) -> list[Mention]:
    """All values of a sentence, in order, without overlaps: quoted titles, dates, numbers, then names."""
    mentions = _quoted_names(sentence, tokens)
    taken = {index for mention in mentions for index in range(mention.first, mention.last)}
    index = 0
    finders: tuple[Callable[[Sequence[Token], int], Mention | None], ...] = (_date, _number, _name)
    while index < len(tokens):
        found = None if index in taken else next(filter(None, (find(tokens, index) for find in finders)), None)
        if found is not None and taken.isdisjoint(range(found.first, found.last)):
            mentions.append(found)
            index = found.last
        else:
            index += 1
    return sorted(mentions, key=lambda mention: mention.first)


def _quoted_names(sentence: str, tokens: Sequence[Token]) -> list[Mention]:
    """Titles in quotes or emphasis; longer quotations and whole sentences are no titles."""
    found = []
    for match in _QUOTED.finditer(sentence):
        inner = next(group for group in match.groups() if group)
        inside = [i for i, token in enumerate(tokens) if match.start() <= token.start and token.end <= match.end()]
        words = tuple(
            tokens[i].norm for i in inside if tokens[i].kind != "mark" and tokens[i].norm not in ("the", "a", "an")
        )
        if (
            words
            and len(words) <= _MAX_WORDS
            and inner.strip()[:1].isupper()
            and not _SENTENCE_END.search(inner.strip()[:-1] + " ")
        ):
            found.append(Mention(Name(words, NameKind.WORK, inner.strip()), inside[0], inside[-1] + 1))
    return found


def _date(tokens: Sequence[Token], i: int) -> Mention | None:
    """A date, year, decade or century that begins at token i."""
    hedged = i > 0 and _is_hedge(tokens, i - 1)
    if _month(tokens, i):
        return _month_first(tokens, i, hedged)
    if tokens[i].kind != "number" or not tokens[i].norm.isdecimal() or len(tokens[i].norm) > _MAX_DIGITS:
        if tokens[i].norm in ORDINALS and _norm(tokens, i + 1) == "century":
            return Mention(Moment(ORDINALS[tokens[i].norm] * 100 - 100, years=100, hedged=True), i, i + 2)
        return None
    number = int(tokens[i].norm)
    if _norm(tokens, i + 1) == "century" and tokens[i].suffix and number < 40:
        return Mention(Moment(number * 100 - 100, years=100, hedged=True), i, i + 2)
    month_at = i + 2 if _norm(tokens, i + 1) == "of" else i + 1
    if 1 <= number <= 31 and _month(tokens, month_at):
        year, last = _year_at(tokens, month_at + 1)
        return Mention(Moment(year, _month(tokens, month_at), number, hedged=hedged), i, last)
    if _iso(tokens, i):
        return Mention(Moment(number, int(tokens[i + 2].norm), int(tokens[i + 4].norm)), i, i + 5)
    if _is_year(tokens, i):
        decade = tokens[i].suffix == "s" and number % 10 == 0
        return Mention(Moment(number, years=10 if decade else 1, hedged=hedged), i, i + 1)
    return None


def _month_first(tokens: Sequence[Token], i: int, hedged: bool) -> Mention | None:
    """ "May 3, 1901", "May 1901" or "3 May"; the bare name of a month is a date only if it cannot be a verb."""
    month = _month(tokens, i)
    following = tokens[i + 1] if i + 1 < len(tokens) else None
    if following is not None and _is_day(following):
        year, last = _year_at(tokens, i + 2)
        return Mention(Moment(year, month, int(following.norm), hedged=hedged), i, last)
    year, last = _year_at(tokens, i + 1)
    if year is not None:
        return Mention(Moment(year, month, hedged=hedged), i, last)
    if tokens[i].norm in ("may", "march", "jan", "mar") or len(tokens[i].norm) < 4:
        return None
    return Mention(Moment(month=month), i, i + 1)


def _is_day(token: Token) -> bool:
    return token.kind == "number" and token.norm.isdecimal() and len(token.norm) <= 2 and 1 <= int(token.norm) <= 31


def _year_at(tokens: Sequence[Token], i: int) -> tuple[int | None, int]:
    """The year at token i or behind a comma or "of" there, and the token after the date."""
    at = i + 1 if _norm(tokens, i) in (",", "of") else i
    if (
        at < len(tokens)
        and tokens[at].kind == "number"
        and tokens[at].norm.isdecimal()
        and 3 <= len(tokens[at].text) <= 4
    ):
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
    before, after = _norm(tokens, i - 1) if i else "", tokens[i + 1] if i + 1 < len(tokens) else None
    if before in ("$", "€", "£", "no", "number") or (after is not None and after.text in ("%", "°")):
        return False
    leads = not before or before in _YEAR_LEADS or not before[0].isalpha() or tokens[i - 1].is_capital
    counts = after is not None and after.is_word and not after.is_capital and after.norm not in FUNCTION_WORDS
    return leads or not counts


def _number(tokens: Sequence[Token], i: int) -> Mention | None:
    """A number in digits or words with what it counts, or an ordinal."""
    number, last = _numeral(tokens, i)
    if number is None:
        return _ordinal(tokens, i)
    units = _units(tokens, last)
    if tokens[i].kind != "number" and not units:
        return None
    if i and tokens[i - 1].text in ("$", "€", "£"):
        units = units | {tokens[i - 1].text}
    return Mention(Quantity(number, units, hedged=i > 0 and _is_hedge(tokens, i - 1)), i, last)


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
    while number is not None and _norm(tokens, last) in MAGNITUDES:
        number *= MAGNITUDES[_norm(tokens, last)]
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


def _name(tokens: Sequence[Token], i: int) -> Mention | None:
    """A proper name that begins at token i: capitalised words, with connectors between them where they belong."""
    if not _may_be_named(tokens, i) and not _is_small_head(tokens, i):
        return None
    last = i + 1
    while last < len(tokens) and last - i < _MAX_WORDS and not tokens[last - 1].possessive:
        step = _name_step(tokens, i, last)
        if not step:
            break
        last += step
    if re.search(r"[-‐‑][a-z]", tokens[last - 1].text):  # "German-born" is the adjective of "German"
        words = (*(t.norm for t in tokens[i : last - 1]), re.split(r"[-‐‑]", tokens[last - 1].norm)[0])
        return Mention(Name(words), i, last)
    kept = [t for t in tokens[i:last] if t.kind != "mark" and t.norm not in ("the", "of", "a", "an", "and", "for")]
    if not kept:
        return None
    return Mention(Name(tuple(token.norm for token in kept), _kind(kept)), i, last)


def _name_step(tokens: Sequence[Token], first: int, at: int) -> int:
    """How many tokens from `at` go on with the name that began at `first`; 0 if it ends before `at`."""
    token = tokens[at]
    if token.is_capital and token.norm not in MONTHS and token.norm not in WEEKDAYS:
        return 1
    if token.kind == "number" and tokens[at - 1].is_capital and len(token.norm) <= 3 and not token.suffix:
        return 1
    link = 1
    if token.norm in ("of", "for") and any(
        part.norm in KIND_OF_NOUN or part.norm in _BUILDINGS for part in tokens[first:at]
    ):
        link = 2 if _norm(tokens, at + 1) == "the" else 1
    elif token.norm not in _LINKS_OF_NAMES:
        return 0
    else:
        while link < 3 and _norm(tokens, at + link) in _LINKS_OF_NAMES:
            link += 1
    behind = tokens[at + link] if at + link < len(tokens) else None
    return link + 1 if behind is not None and behind.is_capital else 0


def _may_be_named(tokens: Sequence[Token], i: int) -> bool:
    """Whether a name can begin here; the first word of a sentence is capitalised anyway and must earn it."""
    token = tokens[i]
    if not token.is_capital or token.norm in WEEKDAYS or _month(tokens, i):
        return False
    opening = not any(before.is_word for before in tokens[:i])
    goes_on = i + 1 < len(tokens) and tokens[i + 1].is_capital
    if token.norm in FUNCTION_WORDS:
        # "The Red Door" in mid-sentence is a title, "The Harrow Prize" at the beginning has an article.
        return not opening and goes_on and token.norm in ("the", "a", "an")
    if opening and not goes_on and (token.stem in RELATIONS or token.norm.endswith("ly") or token.norm in KIND_OF_NOUN):
        return _norm(tokens, i + 1) in ("of", "for") and token.norm in KIND_OF_NOUN
    return True


def _is_small_head(tokens: Sequence[Token], i: int) -> bool:
    """Whether token i is the noun of a name written small ("the university of Ulm", "the battle of Ulm")."""
    noun = tokens[i].norm
    named_so = KIND_OF_NOUN.get(noun) in (NameKind.ORGANISATION, NameKind.EVENT) or noun in _BUILDINGS
    behind = tokens[i + 2] if i + 2 < len(tokens) else None
    return named_so and _norm(tokens, i + 1) == "of" and behind is not None and behind.is_capital


def _kind(tokens: Sequence[Token]) -> NameKind:
    """The kind that the first or last word names ("University of Ulm", "Lake Como", "Nobel Prize")."""
    last, first = tokens[-1].norm, tokens[0].norm
    for word in (last, first, *(token.norm for token in tokens)):
        if word in KIND_OF_NOUN and (len(tokens) > 1 or word == last):
            return KIND_OF_NOUN[word]
    return NameKind.UNKNOWN


def _is_hedge(tokens: Sequence[Token], i: int) -> bool:
    return any(token.norm in HEDGES for token in tokens[max(0, i - 1) : i + 1])


def _month(tokens: Sequence[Token], i: int) -> int | None:
    if not 0 <= i < len(tokens) or not tokens[i].is_capital:
        return None
    return MONTHS.get(tokens[i].norm)


def _norm(tokens: Sequence[Token], i: int) -> str:
    return tokens[i].norm if 0 <= i < len(tokens) else ""
