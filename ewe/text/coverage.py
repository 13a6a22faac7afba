"""How much of what a sentence says stands in one sentence of the passages, by its words."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ewe.text.sentences import SentenceSplitter
from ewe.text.topic import share_of, stems_of
from ewe.types import Passage


def coverage(text: str, passages: Iterable[Passage]) -> float:
    """The largest share of a text's content words that one sentence of a passage has, with the passage's title.

    In [0, 1]; 1 for a text without content words. Words that a model takes from several sentences, or adds, are what it
    most often gets wrong.
    """
    own = stems_of(text)
    if not own:
        return 1.0
    places = (place for passage in passages for place in _places(passage.title, passage.text))
    return max((share_of(own, place) for place in places), default=0.0)


@lru_cache(maxsize=1024)
def _places(title: str, text: str) -> tuple[frozenset[str], ...]:
    """The content words of each sentence, and of the title."""
    named = stems_of(title)
    return tuple(frozenset(stems_of(text[start:end]) | named) for start, end in _splitter.split(text))


_splitter = SentenceSplitter()
