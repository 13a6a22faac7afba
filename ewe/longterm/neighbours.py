"""Which memories a new one is compared with, and what the judge says of each pair."""

from __future__ import annotations

from collections.abc import Sequence

from ewe.longterm.records import Memory
from ewe.longterm.scoring.contradictions import MOST_NEIGHBOURS, Relation, relations
from ewe.longterm.scoring.default import voice_of
from ewe.longterm.search import MemorySearch, visible
from ewe.text.words import words
from ewe.verification.judges.protocol import Judge

_WIDER = 6  # So many times the neighbours are looked through for other voices.


class Neighbourhood:
    """Compares a memory with those closest to it, of all scopes that whoever reads it can see."""

    def __init__(self, search: MemorySearch, judge: Judge | None) -> None:
        self._search, self._judge = search, judge

    def relations(self, memory: Memory, known: Sequence[Relation] = ()) -> list[Relation]:
        """How at most 16 neighbours that still hold stand to a memory; without a judge they say nothing of each other.

        known: relations that were found a moment ago; the judge is not asked for them again. Raises JudgeError as the
        judge does.
        """
        if not words(memory.content):
            return []
        scopes = visible(memory.scope.user, memory.scope.agent)
        [hits] = self._search.search([memory.content], scopes, _WIDER * MOST_NEIGHBOURS)
        own = (memory.scope, memory.id)
        open_ended = (hit.memory for hit in hits if hit.memory.valid_until is None)
        chosen = neighbours([other for other in open_ended if (other.scope, other.id) != own])
        if self._judge is None:
            return [Relation(other, 0.0, 0.0, 0.0) for other in chosen]
        asked = {(one.memory.scope, one.memory.id, one.memory.content): one for one in known}
        new = [other for other in chosen if (other.scope, other.id, other.content) not in asked]
        asked |= {
            (one.memory.scope, one.memory.id, one.memory.content): one
            for one in relations(memory.content, new, self._judge)
        }
        return [asked[other.scope, other.id, other.content] for other in chosen]


def neighbours(found: Sequence[Memory], most: int = MOST_NEIGHBOURS) -> list[Memory]:
    """At most `most` of the memories found (closest first): half the closest, half the closest of each other voice.

    What one source repeats in ever new words is always closest to its next copy; without the second half fifty copies
    would hide what they contradict. Left places go to the closest again.
    """
    chosen = list(found[: most // 2])
    rest = list(found[most // 2 :])
    heard = {voice_of(memory) for memory in chosen}
    for memory in rest:
        if len(chosen) < most and voice_of(memory) not in heard:
            heard.add(voice_of(memory))
            chosen.append(memory)
    taken = {(memory.scope, memory.id) for memory in chosen}
    left = [memory for memory in rest if (memory.scope, memory.id) not in taken]
    return chosen + left[: most - len(chosen)]
