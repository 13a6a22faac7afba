"""What stands before a sentence."""

from functools import lru_cache

from ewe.text.sentences import SentenceSplitter
from ewe.types import VerificationRequest

LOOKBACK_CHARACTERS = 6000
"""How far back anything here looks: more would make long texts quadratic."""


@lru_cache(maxsize=1)
def splitter() -> SentenceSplitter:
    """The one splitter of the extractors; it keeps no state between texts."""
    return SentenceSplitter()


def sentences_of(text: str) -> list[str]:
    """The sentences of the end of a text, in order."""
    end = text[-LOOKBACK_CHARACTERS:]
    return [end[first:last] for first, last in splitter().split(end)]


def previous_sentence(request: VerificationRequest) -> str:
    """The sentence before the one to check, empty at the start of a text."""
    sentences = sentences_of(request.preceding)
    return sentences[-1] if sentences else ""
