"""Reading ahead: what many new memories are compared with is read in one batch, in far less time than one by one.

Nothing is decided here. The memories are added one by one afterwards, and what was foreseen is found in the reader's
cache. What was not, because a verdict ended a statement meanwhile, is read when it is needed.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ewe.longterm.change.change_finder import finder
from ewe.longterm.change.change_reading import beginning, compare_all
from ewe.longterm.change.change_search import BY_WORDS, LOOKED_THROUGH, MOST_READ, NEAR, WORDS
from ewe.longterm.change.told_words import ToldWords
from ewe.longterm.records import Memory, Scope
from ewe.longterm.store import MemoryStore
from ewe.longterm.store.memory_rows import Statement

_PER_NEW = 64  # statements of a scope per new one, a choice; looking through ever more costs more than it spares


def read_ahead(new: Sequence[Memory], store: MemoryStore, now: float) -> None:
    """Reads what these memories will be compared with when they are added in this order.

    now: when those without a time were written down, in seconds since 1970. Raises JudgeError if the model is missing.
    """
    by_scope = defaultdict[Scope, list[Memory]](list)
    for one in new:
        content = " ".join(one.content.split())
        by_scope[one.scope].append(replace(one, content=content, created_at=one.created_at or now))
    several = [told for told in by_scope.values() if len(told) > 1]  # with a single one nothing is spared
    compare_all([pair for told in several for pair in foreseen(told, store)])


def foreseen(new: Sequence[Memory], store: MemoryStore) -> list[tuple[str, str]]:
    """The pairs of an older and a newer statement that are read when memories of one scope are added and end nothing.

    None in a scope that is large beside them.
    """
    scope = new[0].scope
    with store.seeing([scope]):
        if sum(count for count, _ in store.extent(scope)) > _PER_NEW * len(new):
            return []
        found = store.all_statements(store.scope_numbers([scope]))
    there = [found[number] for number in sorted(found)]
    said, told, pairs = {one.content for one in there}, _Told(there, len(new)), list[tuple[str, str]]()
    for memory in new:
        if memory.content not in said:
            said.add(memory.content)
            pairs += told.pairs(memory)
            told.add(memory)
    return pairs


class _Told:
    """The statements of a scope, and room for more, ranked as `change_search` ranks those of a store."""

    def __init__(self, there: Sequence[Statement], more: int) -> None:
        room = len(there) + more
        self._texts, self._words = list[str](), ToldWords(room)
        self._begins, self._since, self._until = np.empty((3, room))
        self._vectors = np.empty((2, room, finder.get().dimension), np.float32)  # as older statements, as newer ones
        for one in there:
            self.add(one)

    def add(self, one: Statement | Memory) -> None:
        """One more."""
        place, text, find = len(self._texts), beginning(one.content), finder.get()
        self._texts.append(one.content)
        self._words.add(one.content)
        self._begins[place] = one.begins
        self._since[place] = -np.inf if one.valid_from is None else one.valid_from
        self._until[place] = np.inf if one.valid_until is None else one.valid_until
        self._vectors[0, place], self._vectors[1, place] = find.older(text), find.newer(text)

    def pairs(self, memory: Memory) -> list[tuple[str, str]]:
        """Those of a new memory and what stands beside it, the one that began earlier first."""
        count, at, text, find = len(self._texts), memory.begins, beginning(memory.content), finder.get()
        is_later = self._begins[:count] > at
        older, newer = self._vectors[:, :count]
        scores = self._words.scores(text, BY_WORDS)
        close = np.where(is_later, newer @ find.older(text), older @ find.newer(text)) + WORDS * scores
        close[~self._compared(scores, at)] = -np.inf
        chosen = [place for place in np.argsort(-close, kind="stable")[:MOST_READ].tolist() if close[place] >= NEAR]
        return [
            (memory.content, self._texts[place]) if is_later[place] else (self._texts[place], memory.content)
            for place in chosen
        ]

    def _compared(self, scores: NDArray[np.float64], at: float) -> NDArray[np.bool_]:
        """Which statements a new one that begins at a time is compared with; scores: BM25 of each."""
        until = self._until[: len(scores)]
        compared: NDArray[np.bool_] = np.isinf(until) | ((until > at) & (self._since[: len(scores)] <= at))
        return compared & (scores > 0) if len(scores) > LOOKED_THROUGH else compared
