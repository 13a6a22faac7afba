"""MARK's search service: the best memory of each kind for a query."""

from __future__ import annotations

from collections.abc import Sequence

from ewe.longterm.records import Memory, Scope
from ewe.longterm.scoring.mark_builder import KINDS
from ewe.longterm.scoring.protocol import Candidate, MemoryScorer
from ewe.longterm.search import MemorySearch

TOP_N = 20
"""Memories of each kind that are re-ranked (mark.txt, 1.2)."""
_DEPTH = 10 * TOP_N  # The search knows no kinds: so many memories are looked through for twenty of each.


class MARKSearch:
    """Top 20 of each kind by similarity, re-ranked by a scorer (`MARKScorer`); the highest of each kind is taken."""

    def __init__(self, search: MemorySearch, scorer: MemoryScorer, kinds: Sequence[str] = KINDS) -> None:
        self._search, self._scorer, self._kinds = search, scorer, tuple(kinds)

    def search(self, query: str, scopes: Sequence[Scope], now: float) -> dict[str, Memory]:
        """Per kind that has a usable one the memory to put before the model; now: unix seconds."""
        [hits] = self._search.search([query], scopes, _DEPTH)
        best = max((hit.score for hit in hits), default=0.0)
        chosen = {}
        for kind in self._kinds:
            closest = [hit for hit in hits if hit.memory.kind == kind][:TOP_N]
            candidates = [Candidate(hit.memory, hit.score / best) for hit in closest]
            scores = self._scorer.score(candidates, now)
            usable = [place for place, score in enumerate(scores) if score.usable]
            if usable:
                chosen[kind] = candidates[max(usable, key=lambda place: scores[place].rank)].memory
        return chosen
