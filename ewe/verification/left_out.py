"""Which words of its evidence a claim leaves out, by the runs of words that both have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from ewe.text.english import FUNCTION_WORDS
from ewe.verification.sentence_words import SentenceWords

_ADDED = FUNCTION_WORDS - {"us"}  # which may be a country


@dataclass(frozen=True, slots=True)
class Run:
    """Words that both have in the same order: where in the claim, where in the evidence, how many."""

    at: int
    place: int
    size: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Words of the evidence that the claim leaves out: own[start:end].

    before: the claim's word before them, at its place `at`.
    """

    start: int
    end: int
    before: str
    at: int


def common_runs(claimed: SentenceWords, own: SentenceWords) -> list[Run]:
    """The runs of words that a claim and its evidence have in common, in their order."""
    matcher = SequenceMatcher(None, claimed.stems, own.stems, autojunk=False)
    return [Run(block.a, block.b, block.size) for block in matcher.get_matching_blocks() if block.size]


def gaps_with_content(claimed: SentenceWords, own: SentenceWords, runs: list[Run]) -> list[Gap]:
    """What the claim leaves out between the runs, and behind the last, that has a content word which it has nowhere."""
    return [
        gap
        for gap in _gaps(claimed, own, runs)
        if any(
            own.low[place] not in FUNCTION_WORDS and own.stems[place] not in claimed.stems
            for place in range(gap.start, gap.end)
        )
    ]


def _gaps(claimed: SentenceWords, own: SentenceWords, runs: list[Run]) -> Iterator[Gap]:
    """What lies between the runs, and behind the last one up to a mark of punctuation.

    Where the claim has another word in its place, nothing is left out.
    """
    for run, following in pairwise(runs):
        if _ADDED.issuperset(claimed.low[run.at + run.size : following.at]):
            last = run.at + run.size - 1
            yield Gap(run.place + run.size, following.place, claimed.low[last], last)
    last_run = runs[-1]
    if _ADDED.issuperset(claimed.low[last_run.at + last_run.size :]):
        start = last_run.place + last_run.size
        end = min((place for place in own.breaks if place >= start), default=len(own.low))
        yield Gap(start, end, claimed.low[-1], len(claimed.low) - 1)
