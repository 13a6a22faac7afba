"""Values in sentences and how they are made wrong: years, numbers, names, and words that exclude each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from judge_training.kinds import KINDS, OPPOSITES

_KIND_OF = {word.replace("-", " "): kind for kind, words in KINDS.items() for word in words}
_WORDS = sorted({*_KIND_OF, *OPPOSITES}, key=len, reverse=True)
_LISTED = re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, _WORDS)) + r")(?![\w-])")
_YEAR = re.compile(r"(?<![\w.,-])(?:1[0-9]|20)\d\d(?!\w|[.,]\d)")
_NUMBER = re.compile(r"(?<![\w.,-])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?!\w|[.,]\d)")
_NO_NAME = "The|An?|In|On|At|It|He|She|They|His|Her|Their|This|That|There|These|Those|As|For|From|By"
_NAME = re.compile(rf"(?<![\w'])(?!(?:{_NO_NAME})\b)[A-Z][\w'’-]+(?: (?:(?:of|the|de|von|van|and) )?[A-Z][\w'’-]*)*")
_AUXILIARY = re.compile(r"\b(is|was|are|were|has been|had been|can|could|will|would|did|does|has|had)\b(?! not\b)")
_NEGATED = re.compile(r"\b(is|was|are|were|has been|had been|can|could|will|would|did|does|has|had) not\b ?")


@dataclass(frozen=True, slots=True)
class Value:
    """A value at code points [start, end) of a text; kind: "year", "amount", "name", "opposite" or one of KINDS."""

    start: int
    end: int
    text: str
    kind: str


def find_values(text: str) -> list[Value]:
    """The values of a text, from left to right, without overlaps."""
    found: list[Value] = []
    for pattern, kind in ((_YEAR, "year"), (_NUMBER, "amount"), (_LISTED, ""), (_NAME, "name")):
        for match in pattern.finditer(text):
            word = match[0]
            if all(match.end() <= other.start or match.start() >= other.end for other in found):
                found.append(Value(match.start(), match.end(), word, kind or _KIND_OF.get(word, "opposite")))
    return sorted(found, key=lambda value: value.start)


def other_value(rng: Random, value: Value, avoid: str, names: Sequence[str]) -> str | None:
    """A value of the same kind that is not in the text `avoid`; None if none was found.

    names: what a name may be replaced by; one with as many words is preferred.
    """
    for _ in range(8):
        candidate = _draw(rng, value, names)
        if candidate is not None and not contains(avoid, candidate) and candidate.lower() != value.text.lower():
            return candidate
    return None


def _draw(rng: Random, value: Value, names: Sequence[str]) -> str | None:
    if value.kind == "year":
        near = rng.random() < 0.7
        return str(int(value.text) + rng.choice((-1, 1)) * (rng.randint(1, 12) if near else rng.randint(13, 90)))
    if value.kind == "amount":
        return _other_amount(rng, value.text)
    if value.kind == "opposite":
        return rng.choice(OPPOSITES[value.text])
    if value.kind != "name":
        return rng.choice(KINDS[value.kind]).replace("-", " ")
    if not names:
        return None
    words = len(value.text.split())
    drawn = [rng.choice(names) for _ in range(6)]
    return min(drawn, key=lambda name: abs(len(name.split()) - words))


def _other_amount(rng: Random, text: str) -> str:
    """Another number of the same look: thousands grouped if they were, as many decimals."""
    plain = text.replace(",", "")
    decimals = len(plain.partition(".")[2])
    number = float(plain)
    if rng.random() < 0.5 and number >= 2:
        changed = number * rng.choice((0.5, 2, 3, 10, 0.1, 1.5))
    else:
        changed = number + rng.choice((-1, 1)) * rng.randint(1, max(3, int(number / 4)))
    changed = abs(changed) or number + 1
    grouped = f"{changed:,.{decimals}f}" if "," in text else f"{changed:.{decimals}f}"
    return grouped


def contains(text: str, value: str) -> bool:
    """Whether the value stands in the text as whole words, in any case."""
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None


def replace_value(text: str, old: str, new: str) -> str:
    """The text with `old` replaced wherever it stands as whole words, "a" and "an" before it made to fit."""
    changed = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, text, flags=re.IGNORECASE)
    article = "an" if new[:1].lower() in "aeiou" else "a"
    return re.sub(rf"\b([Aa])n? (?={re.escape(new)}(?!\w))", lambda m: m[1] + article[1:] + " ", changed)


def negate(claim: str) -> str | None:
    """The claim with "not" put in after its first auxiliary, or taken out; None where there is none."""
    if match := _NEGATED.search(claim):
        return claim[: match.end(1)] + " " + claim[match.end() :]
    if match := _AUXILIARY.search(claim):
        return claim[: match.end()] + " not" + claim[match.end() :]
    return None
