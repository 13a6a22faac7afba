"""Distractors: passages that have rare words in common with a text, or any others."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from random import Random

from reader_training.records import Passage

_RARE = 60
_CLOSEST = 12


class Neighbours:
    """The passages of a pool, found by rare words or by origin."""

    def __init__(self, pool: Sequence[Passage]) -> None:
        self.pool = pool
        self._of_origin: dict[str, list[Passage]] = defaultdict(list)
        self._with_word: dict[str, list[int]] = defaultdict(list)
        for number, passage in enumerate(pool):
            self._of_origin[passage.origin].append(passage)
            for word in _words(f"{passage.title} {passage.text}"):
                self._with_word[word].append(number)

    def draw(self, rng: Random, text: str, origin: str, count: int, forbidden: Collection[str]) -> list[Passage]:
        """`count` passages, about half of them close to `text`, half of the others of its origin.

        None holds one of the texts `forbidden`, whatever case.
        """
        close = self._close(text)
        drawn: dict[Passage, None] = {}
        low = [item.lower() for item in forbidden]
        for _ in range(20 * count):
            if len(drawn) >= count:
                break
            if close and rng.random() < 0.5:
                passage = close.pop(rng.randrange(len(close)))
            else:
                same = self._of_origin.get(origin) if rng.random() < 0.5 else None
                passage = rng.choice(same or self.pool)
            body = f"{passage.title} {passage.text}".lower()
            if not any(item in body for item in low):
                drawn[passage] = None
        return list(drawn)

    def _close(self, text: str) -> list[Passage]:
        scores: Counter[int] = Counter()
        for word in _words(text):
            numbers = self._with_word.get(word, ())
            if 0 < len(numbers) <= _RARE:
                weight = math.log(len(self.pool) / len(numbers))
                for number in numbers:
                    scores[number] += weight  # type: ignore[assignment]
        return [self.pool[number] for number, _ in scores.most_common(_CLOSEST)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))
