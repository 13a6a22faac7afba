"""Which words of its evidence a claim leaves out, and where it has others, by the runs of words that both have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from ewe.text.english import FUNCTION_WORDS, PRONOUNS, words_of
from ewe.verification.sentence_words import SentenceWords, read_words

_ADDED = FUNCTION_WORDS - {"us"}  # which may be a country
_ARTICLES = words_of("a an the")
_CONDITIONS = words_of(
    "for under above over below up if unless except before until when while only without will shall would might may"
)
_EXCEPTING = words_of("unless except excepting excluding")
_EXCEPTIONS = _EXCEPTING | words_of("apart other but if provided with")  # as they begin
_RANKS = words_of("second third fourth fifth sixth seventh eighth ninth tenth nd rd th")  # "2nd" is two words
_RESERVATIONS = {
    **dict.fromkeys(_EXCEPTING, ""),
    **{"apart": "from", "other": "than", "exception": "of", "subject": "to", "provided": "that", "providing": "that"},
}
"""Words that begin one, with the word that must stand behind them."""
_SENTENCE_END = re.compile(r"[.!?]\s|\n")
_CACHED_PAIRS = 8192
_CHANGED = 3  # words of a claim that a change in one place may have


@dataclass(frozen=True, slots=True)
class Run:
    """Words that both have in the same order: where in the claim, where in the evidence, how many."""

    at: int
    place: int
    size: int


@lru_cache(maxsize=_CACHED_PAIRS)
def common_runs(claim: str, sentence: str) -> tuple[Run, ...]:
    """The runs of words that a claim and its evidence have in common, in their order; found once for a pair."""
    matcher = SequenceMatcher(None, read_words(claim).stems, read_words(sentence).stems, autojunk=False)
    return tuple(Run(block.a, block.b, block.size) for block in matcher.get_matching_blocks() if block.size)


def changes_one_place(claim: str, sentence: str) -> bool:
    """Whether a claim has other words than its evidence in at most one place, and few: one value, say, or a "not".

    Who has others in several places may say the same in words of his own. A name for the pronoun that the evidence
    begins with is no change, nor are small words.
    """
    changed = [words for words in _changed(claim, sentence) if not _ADDED.issuperset(words)]
    return len(changed) <= 1 and sum(map(len, changed)) <= _CHANGED


def changes_nothing(claim: str, sentence: str) -> bool:
    """Whether a claim has no other words than its evidence, in the same order: it only leaves out some."""
    return not any(_changed(claim, sentence))


def _changed(claim: str, sentence: str) -> list[tuple[str, ...]]:
    """The words that a claim has before, between and behind the runs that it has in common with its evidence."""
    claimed, own = read_words(claim), read_words(sentence)
    runs = common_runs(claim, sentence)
    ends = [(run.at, run.at + run.size) for run in runs]
    starts = [0, *(end for _, end in ends)]
    places = zip(starts, [*(at for at, _ in ends), len(claimed.low)], strict=True)
    changed = [claimed.low[start:at] for start, at in places]
    if runs and own.low[0] in PRONOUNS and runs[0].place == 1:
        changed[0] = ()
    return changed


def leaves_out_words(claim: str, sentence: str) -> bool:
    """Whether its evidence has words that a claim in its words leaves out, in front, within, or behind.

    Behind the last word of the claim only up to a mark of punctuation that no exception follows; and not where the
    claim has another word in their place.
    """
    claimed, own = read_words(claim), read_words(sentence)
    return any(
        own.low[place] not in _ARTICLES and own.stems[place] not in claimed.stems
        for start, end in _gaps(claimed, own, common_runs(claim, sentence))
        for place in range(start, end)
    )


def drops_a_rank(claim: str, sentence: str) -> bool:
    """Whether a claim leaves out which place a superlative of its evidence has: "the [fourth] largest"."""
    claimed, own = read_words(claim), read_words(sentence)
    return any(
        own.low[at - 1] in _RANKS and own.low[at - 1] not in claimed.low
        for run in common_runs(claim, sentence)
        for at in range(max(run.place, 1), run.place + run.size)
        if own.low[at] == "most" or own.low[at].endswith("est")
    )


def drops_an_exception(claim: str, sentence: str) -> bool:
    """Whether a claim leaves out an exception or reservation of its evidence: "[unless it rains]".

    One in front, between its words, or behind them in the same clause.
    """
    claimed, own = read_words(claim), read_words(sentence)
    runs = common_runs(claim, sentence)
    if not runs:
        return False
    last = runs[-1].place + runs[-1].size
    places = (at for at, low in enumerate(own.low) if low in _RESERVATIONS and low not in claimed.low)
    return any(
        _RESERVATIONS[own.low[at]] in ("", *own.low[at + 1 : at + 2])
        and (at == 0 or (at > runs[0].place and own.breaks.isdisjoint(range(last, at))))
        for at in places
    )


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


def narrows(claim: str, sentence: str) -> bool:
    """Whether what a sentence says holds for less than a claim that is made of some of its words.

    It has others before or among them that say of which ("[full-time] employees"), and are no apposition; or anywhere
    a condition, or a word that tells of what is still to come ("free for children [under 12]").
    """
    claimed, own = read_words(claim), read_words(sentence)
    runs = common_runs(claim, sentence)
    behind = runs[-1].place + runs[-1].size if runs else len(own.low)
    marks = own.breaks | {0}
    for start, end in _gaps(claimed, own, runs):
        left_out = {own.low[at] for at in range(start, end) if own.stems[at] not in claimed.stems}
        is_apart = start == behind or {start, end} <= marks
        if not _CONDITIONS.isdisjoint(left_out) or not (is_apart or FUNCTION_WORDS.issuperset(left_out)):
            return True
    return False


def _gaps(claimed: SentenceWords, own: SentenceWords, runs: Sequence[Run]) -> Iterator[tuple[int, int]]:
    """Where (start, end) the evidence has words before, between or behind the runs, and the claim but small ones."""
    ahead = Run(0, 0, 0)
    last = runs[-1].place + runs[-1].size if runs else len(own.low)
    behind = min((at for at in own.breaks if at >= last and own.low[at] not in _EXCEPTIONS), default=len(own.low))
    for run, following in pairwise([ahead, *runs, Run(len(claimed.low), behind, 0)]):
        if _ADDED.issuperset(claimed.low[run.at + run.size : following.at]):
            yield run.place + run.size, following.place
