"""What a newer statement says of an older one: that the world has changed, the same again, or neither.

A small model reads both: the built-in judge, trained further (`model/README.md` says how, and how good it is). It is
loaded when it is first needed.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ewe.config.lazy import Lazy
from ewe.longterm.scoring.contradictions import same_attribute
from ewe.text.english import FUNCTION_WORDS
from ewe.text.words import words
from ewe.verification.judges.cached import trained_further

MODEL = Path(__file__).parent / "model"
LONGEST = 60
"""Words of a statement that are read; longer texts are read for what they say first, and are never out of date."""
MAX_TOKENS = 192
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_PRESENT = re.compile(r"\b(?:am|is|are|has|have|will|due|now)\b|['’](?:m|re|ve|ll)\b", re.IGNORECASE)
_CHANGED, _AGAIN = 0, 1  # the columns of the model's answers; the third is neither


class Stance(Enum):
    """How a newer statement stands to an older one."""

    CHANGED = "changed"
    AGAIN = "again"
    APART = "apart"


Telling = Literal["statement", "turn", "fact"]
"""A statement that is noted as such, a turn of a conversation, or a fact that was taken from one."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The probabilities from which on a statement is said again, or out of date: by how the newer one was told."""

    again: float
    changed: dict[Telling, float]


def compare(older: str, newer: str) -> Stance:
    """How the newer statement stands to the older one; raises JudgeError if the model cannot be read."""
    return compare_all([(older, newer)])[0]


def compare_all(pairs: Sequence[tuple[str, str]], telling: Telling = "statement") -> list[Stance]:
    """Of pairs of an older and a newer statement; telling: how the newer ones were told.

    Most of a conversation is talk, in which nothing ends: of turns and facts the model must be surer. Raises JudgeError
    if the model cannot be read.
    """
    short = [(older, beginning(newer)) for older, newer in pairs]
    stances = {pair: _by_words(*pair) for pair in short}
    pending = [pair for pair, stance in stances.items() if stance is None]
    read = _reader.get().judge(pending) if pending else np.zeros((0, 3), np.float32)
    stances |= {pair: _by_model(row, telling) for pair, row in zip(pending, read, strict=True)}
    return [stances[pair] or Stance.APART for pair in short]


@lru_cache(maxsize=1 << 14)
def beginning(content: str) -> str:
    """The words of a statement that are read."""
    return " ".join(content.split()[:LONGEST])


def _by_words(older: str, newer: str) -> Stance | None:
    """What the words alone say; None where a model must read them."""
    if older == newer:
        return Stance.AGAIN
    if len(older.split()) > LONGEST or _dates_an_event_otherwise(older, newer):
        return Stance.APART
    return Stance.CHANGED if _gives_another_value(older, newer) else None


def _by_model(row: NDArray[np.float32], telling: Telling) -> Stance:
    limits = _thresholds.get()
    if row[_CHANGED] >= limits.changed[telling]:
        return Stance.CHANGED
    return Stance.AGAIN if row[_AGAIN] >= limits.again else Stance.APART


def _gives_another_value(older: str, newer: str) -> bool:
    """Whether both are alike but for a value of which there is one: "I live in Berlin", "I live in Paris".

    The model knows too few names for that. What people prefer is not one thing: trains, and the aisle seat.
    """
    return same_attribute(older, newer) and "prefer" not in newer.lower()


def _dates_an_event_otherwise(older: str, newer: str) -> bool:
    """Whether both tell one event of the past, of different years: "It opened in 1932", "It opened in 1923".

    One of them is wrong, but nothing has changed.
    """
    years, other_years = (set(_YEAR.findall(text)) for text in (older, newer))
    if not years or not other_years or years == other_years:
        return False
    older_words, newer_words = (set(words(_YEAR.sub("", text))) - FUNCTION_WORDS for text in (older, newer))
    return (older_words <= newer_words or newer_words <= older_words) and _PRESENT.search(f"{older} {newer}") is None


_reader = Lazy(lambda: trained_further(MODEL, "change", MAX_TOKENS))
_thresholds = Lazy(lambda: Thresholds(**json.loads((MODEL / "thresholds.json").read_bytes())))
