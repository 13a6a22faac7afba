"""Which of several things a passage tells apart: "full-time employees" where it has "part-time employees" as well."""

from __future__ import annotations

import re

from ewe.text.english import FUNCTION_WORDS
from ewe.verification.left_out import common_runs
from ewe.verification.sentence_words import SentenceWords, read_words

_SENTENCE_END = re.compile(r"[.!?]\s|\n")


def leaves_out_which(claim: str, sentence: str, text: str) -> bool:
    """Whether a claim leaves out of the sentence the words before a noun that the text has with others before it.

    "Employees get 28 days" does on "Full-time employees get 28 days. Part-time employees get 16 days."
    """
    claimed, own, whole = read_words(claim), read_words(sentence), read_words(_SENTENCE_END.sub("; ", text))
    for run in common_runs(claim, sentence):
        which = _before(own, run.place)
        if not which or claimed.low[run.at] in FUNCTION_WORDS or which & set(claimed.stems):
            continue
        others = (_before(whole, at) for at, stem in enumerate(whole.stems) if stem == own.stems[run.place])
        if any(other and not other <= which and not which <= other for other in others):
            return True
    return False


def _before(text: SentenceWords, at: int) -> frozenset[str]:
    """The stems of the words right before a place, back to a verb, a small word or a mark of punctuation."""
    start = at
    while start > 0 and not (start in text.breaks or text.is_verb[start - 1] or text.low[start - 1] in FUNCTION_WORDS):
        start -= 1
    return frozenset(text.stems[start:at])
