"""An exact reader of the generated cases, and the judge of their statements."""

import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ewe.longterm.evaluation.mma_cases import FALSE, TRUE, UNKNOWN
from ewe.longterm.evaluation.protocol import Asked
from ewe.longterm.recall import Recalled

Fact = tuple[str, str]
_STATED = re.compile(r"[Tt]he ([a-z ]+) of the ([\w ]+?) is (\d+)")
_ASKED = re.compile(r"What is the ([a-z ]+) of the ([\w ]+?)\?")
_SAME, _OTHER, _NOTHING = (0.98, 0.01, 0.01), (0.01, 0.98, 0.01), (0.01, 0.01, 0.98)


def stated(text: str) -> tuple[Fact, str] | None:
    """The fact (thing, attribute) and value that a text states; None if it states none."""
    match = _STATED.search(text)
    return ((match.group(2), match.group(1)), match.group(3)) if match else None


class FormJudge:
    """Knows whether two statements of the generated cases agree; says the opposite of a share of the pairs."""

    def __init__(self, error: float = 0.05) -> None:
        self._error = error

    def judge(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """float32 [pairs, 3]; the same pair in either order has the same answer at every call."""
        rows = [_NOTHING] * len(pairs)
        for place, pair in enumerate(pairs):
            one, other = map(stated, pair)
            if one is not None and other is not None and one[0] == other[0]:
                wrong = zlib.crc32("|".join(sorted(pair)).encode()) % 10_000 < 10_000 * self._error
                rows[place] = _SAME if (one[1] == other[1]) != wrong else _OTHER
        return np.array(rows, dtype=np.float32).reshape(-1, 3)


def wagers(claim: str, recalled: Sequence[Recalled]) -> dict[str, float]:
    """Points in [0, 100] on TRUE, FALSE and UNKNOWN, which sum to 100: by the greatest belief for and against."""
    claimed = stated(claim)
    sides = {TRUE: 0.0, FALSE: 0.0}
    for one in recalled:
        statement = stated(one.memory.content)
        if claimed is not None and statement is not None and statement[0] == claimed[0]:
            side = TRUE if statement[1] == claimed[1] else FALSE
            sides[side] = max(sides[side], one.belief)
    points = {**sides, UNKNOWN: 1.0 - max(sides.values())}
    total = sum(points.values())
    return {side: 100.0 * value / total for side, value in points.items()}


def verdict(points: dict[str, float]) -> str:
    """The side with more points than all the others; UNKNOWN where none has."""
    best = max(points.values())
    sides = [side for side, value in points.items() if value >= best - 1e-9]
    return sides[0] if len(sides) == 1 else UNKNOWN


def read(queries: Sequence[Asked]) -> list[str]:
    """The reply to each question of a generated case: a verdict, wagers, a value or a user."""
    return [_reply(one) for one in queries]


def _reply(query: Asked) -> str:
    question = query.question
    if question.text.startswith("Is it true"):
        points = wagers(question.text, query.recalled)
        if "points" in question.form:
            return " ".join(f"{side}={value:.1f}" for side, value in points.items())
        return verdict(points)
    statements = [(one, stated(one.memory.content)) for one in query.recalled]
    if question.text.startswith("Which user"):
        hits = [one.memory.source.id for one, what in statements if what is not None and what == stated(question.text)]
        return next((name for name in hits if name.startswith("User")), UNKNOWN)
    match = _ASKED.search(question.text)
    fact = (match.group(2), match.group(1)) if match else None
    values = [(one.belief, what[1]) for one, what in statements if what is not None and what[0] == fact]
    return max(values, default=(0.0, UNKNOWN), key=lambda pair: pair[0])[1]
