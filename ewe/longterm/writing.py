"""New memories: how far they are believed at first, what they contradict, and what became of copies.

Owns: adding and correcting. Knows the store, the search, judges by their protocol and the scores of a new memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from ewe.longterm.evidence import Clock, EvidenceBook
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.scoring.contradictions import MOST_NEIGHBOURS, Relation, agreeing, contradicted, relations
from ewe.longterm.scoring.default import voice_of
from ewe.longterm.scoring.verimem import entailed_consistency, initial_veracity
from ewe.longterm.scoring.verimem_uncertainty import evidence_conflict, recall_uncertainty
from ewe.longterm.search import MemorySearch
from ewe.longterm.store import Change, MemoryStore
from ewe.text.words import words
from ewe.verification.judges.protocol import Judge

HIGH_VERACITY = 0.6
"""From here on a neighbour has a say in the first veracity of a new memory."""


class MemoryWriter:
    """Adds memories to one scope at a time; nothing outside that scope is ever changed by it.

    Neighbours that a new memory is compared with are those of its scope and the shared ones. It is marked as
    contradicting either; of the two only those of its own scope are marked as well, so that nobody moves what others
    see by writing to themselves.
    """

    def __init__(
        self, store: MemoryStore, search: MemorySearch, evidence: EvidenceBook, judge: Judge | None, clock: Clock
    ) -> None:
        self._store, self._search, self._evidence, self._judge, self._clock = store, search, evidence, judge, clock

    def add(
        self,
        content: str,
        scope: Scope,
        source: MemorySource,
        kind: str = "fact",
        metadata: Mapping[str, str] | None = None,
        evidence: Sequence[str] = (),
        contradicts: Sequence[str] = (),
    ) -> Memory:
        """The new memory, or the one that says the same words already.

        The same words from another voice support the memory that is there, from the same voice they change nothing.
        `contradicts`: ids in the scope that it is known to contradict. Raises InvalidRequestError for what is no
        memory, JudgeError as the judge does.
        """
        content = " ".join(content.split())
        memory = Memory(_id_of(content), content, kind, source, scope, dict(metadata or {}))
        there = self._store.find(scope, memory.id)
        if there is not None:
            return self._repeated(there, source)
        found = self._relations(memory)
        veracity, uncertainty = first_veracity(memory, found)
        against = dict.fromkeys([*contradicts, *(other.id for other in contradicted(found))])
        now = self._clock()
        with self._store.transaction():
            new = Memory(
                memory.id, content, kind, source, scope, memory.metadata, now, now, veracity, uncertainty,
                contradicts=tuple(against),
            )  # fmt: skip
            self._store.add([new], evidence=tuple(evidence))
            for memory_id in against:
                self._mark(scope, memory_id, new.id)
            for other in agreeing(found):
                self._support(other, scope, source)
        return new

    def correct(self, scope: Scope, memory_id: str, content: str, by: MemorySource) -> Memory:
        """What a memory should have said, as a memory of its own; the wrong one is marked, moved and stays.

        Raises InvalidRequestError if the scope holds no such memory.
        """
        self._store.get(scope, memory_id)
        new = self.add(content, scope, by, metadata={"corrects": memory_id}, contradicts=[memory_id])
        if new.id != memory_id:
            self._evidence.feedback(scope, memory_id, False, by)
        return new

    def _repeated(self, there: Memory, source: MemorySource) -> Memory:
        self._support(there, there.scope, source)
        return self._store.get(there.scope, there.id)

    def _support(self, memory: Memory, scope: Scope, source: MemorySource) -> None:
        """Somebody else said the same; counted once per voice, as their feedback."""
        if memory.scope == scope and voice_of(memory) != (source.kind, source.id or scope.user):
            self._evidence.feedback(memory.scope, memory.id, True, source)

    def _mark(self, scope: Scope, memory_id: str, by_id: str) -> None:
        """Notes in a memory of the scope that another one contradicts it; its veracity stays."""
        old = self._store.find(scope, memory_id)
        if old is None or by_id in old.contradicts:
            return
        change = Change(uncertainty=max(old.uncertainty, 0.5), contradicts=(*old.contradicts, by_id))
        self._store.revise(scope, memory_id, change, at=self._clock(), reason="contradicted", evidence=[by_id])

    def _relations(self, memory: Memory) -> list[Relation]:
        if self._judge is None or not words(memory.content):
            return []
        scopes = list(dict.fromkeys([memory.scope, Scope()]))
        [hits] = self._search.search([memory.content], scopes, MOST_NEIGHBOURS)
        return relations(memory.content, [hit.memory for hit in hits], self._judge)


def first_veracity(memory: Memory, found: Sequence[Relation]) -> tuple[float, float]:
    """v_initial and u of a new memory, both in [0, 1] (verimem-a.txt, 2.3.1, with our form of consistency).

    Neighbours of at least 0.6 take part that say something of it; of each other voice the one that says most.
    """
    best: dict[tuple[str, str], Relation] = {}
    for relation in found:
        voice = voice_of(relation.memory)
        if voice == voice_of(memory) or relation.memory.veracity < HIGH_VERACITY or relation.judgement[2] > 0.5:
            continue
        if voice not in best or relation.judgement[2] < best[voice].judgement[2]:
            best[voice] = relation
    rows = np.array([best[voice].judgement for voice in sorted(best)]).reshape(-1, 3)
    consistency = entailed_consistency(rows, [best[voice].memory.veracity for voice in sorted(best)])
    veracity = initial_veracity(memory.source.reliability, None, consistency)
    return veracity, recall_uncertainty(veracity, conflict=evidence_conflict(rows))


def _id_of(content: str) -> str:
    """The same words have the same id in every scope; ids are looked up within a scope only."""
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:32]
