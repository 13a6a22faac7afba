"""The terms under which a memory is found: stems of words, and pairs of characters where writing has no spaces."""

from __future__ import annotations

import re

from ewe.text.english import stem
from ewe.text.words import fold, words

# Thai, Lao, Burmese, Khmer, kana, and Han characters.
_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")


def terms(text: str) -> list[str]:
    """The terms of a text: those of its words in order, then those of its stretches without spaces."""
    folded = fold(text)
    stretches = _WITHOUT_SPACES.findall(folded)
    found = [stem(word) for word in words(_WITHOUT_SPACES.sub(" ", folded) if stretches else folded)]
    for stretch in stretches:
        found += [stretch[place : place + 2] for place in range(max(1, len(stretch) - 1))]
    return found
