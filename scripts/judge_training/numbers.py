"""Numbers and dates of running text: made wrong, and written another way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?")
"""Any number in digits, with whatever suffix follows it ("1990s", "19th", "40%")."""

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATES = (
    (re.compile(rf"\b(\d{{1,2}}) ({_MONTH}) (\d{{4}})\b"), r"\2 \1, \3"),
    (re.compile(rf"\b({_MONTH}) (\d{{1,2}}), (\d{{4}})\b"), r"\2 \1 \3"),
)
_GROUPED = re.compile(r"\b(\d{1,3}),(\d{3})\b(?!,)")
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SMALL = re.compile(rf"(?<![\w.,-])(?:{'|'.join(_WORDS[2:])}|[2-9]|1[0-2])(?![\w.,:%-])")
_ORDINAL = re.compile(r"^(?:st|nd|rd|th)\b")
_NEAR = 0.4  # Share of numbers that are replaced by another of the same text: the other person's date.


@dataclass(frozen=True, slots=True)
class Change:
    """What stands at code points [start, end) of a text, and what to put in its place."""

    start: int
    end: int
    new: str

    def apply(self, text: str) -> str:
        """The changed text."""
        return text[: self.start] + self.new + text[self.end :]


def other_number(rng: Random, sentence: str, around: Sequence[str] = ()) -> Change | None:
    """One number of the sentence made another one, perhaps one that stands in the texts around; None without any."""
    places = [match for match in NUMBER.finditer(sentence) if match[0].strip(",")]
    if not places:
        return None
    match = rng.choice(places)
    old = match[0].rstrip(",")
    near = [number for text in around for number in _alike(text, old) if number not in sentence]
    new = rng.choice(near) if near and rng.random() < _NEAR else _drawn(rng, old)
    end = match.start() + len(old)
    if new == old:
        return None
    suffix = _ORDINAL.match(sentence[end:])
    if suffix:
        return Change(match.start(), end + 2, new + _ordinal_suffix(new))
    return Change(match.start(), end, new)


def reformat_number(rng: Random, sentence: str) -> str | None:
    """The sentence with a date or number written another way; None where there is none."""
    for pattern, write in _DATES:
        if pattern.search(sentence):
            return pattern.sub(write, sentence, count=1)
    ways = [
        (_GROUPED, lambda m: m[1] + m[2]),
        (_SMALL, lambda m: str(_WORDS.index(m[0])) if m[0] in _WORDS else _WORDS[int(m[0])]),
    ]
    fitting = [(pattern, write) for pattern, write in ways if pattern.search(sentence)]
    if not fitting:
        return None
    pattern, write = rng.choice(fitting)
    return pattern.sub(write, sentence, count=1)


def _alike(text: str, old: str) -> list[str]:
    """Numbers of a text with as many digits as this one."""
    return [found for m in NUMBER.finditer(text) if len(found := m[0].rstrip(",")) == len(old) and found != old]


def _drawn(rng: Random, old: str) -> str:
    """Another number of the same look: years near, others by a factor, a digit or a few units."""
    plain = old.replace(",", "")
    decimals = len(plain.partition(".")[2])
    value = float(plain)
    if len(old) == 4 and old.isdigit() and 1000 <= value <= 2100:
        changed = value + rng.choice((-1, 1)) * rng.choice((1, 2, 3, 5, 8, 10, 12, 20, 40, 100))
    elif value >= 2 and rng.random() < 0.4:
        changed = value * rng.choice((0.5, 2, 3, 10, 1.5))
    else:
        changed = value + rng.choice((-1, 1)) * rng.randint(1, max(3, min(int(value / 4), 10**6)))
    changed = abs(changed) or value + 1
    return f"{changed:,.{decimals}f}" if "," in old else f"{changed:.{decimals}f}"


def _ordinal_suffix(number: str) -> str:
    if number[-2:] in ("11", "12", "13"):
        return "th"
    return {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
