"""New memories: how far they are believed at first, what they contradict, and what became of copies."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from ewe.longterm.change.change_search import Read, duplicate_of, older_statements, read_stances
from ewe.longterm.evidence import Clock, EvidenceBook
from ewe.longterm.memory_search import MemorySearch, visible
from ewe.longterm.neighbouring import key_of, neighbours, of_one_place
from ewe.longterm.query_time import check_told
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.scoring.contradictions import MOST_NEIGHBOURS, Relation, agreeing, contradicted, relations
from ewe.longterm.scoring.forms import First
from ewe.longterm.scoring.scorers import voice_of
from ewe.longterm.store import Change, MemoryStore
from ewe.longterm.superseded import SUPERSEDED
from ewe.text.words import words
from ewe.verification.judges.protocol import Judge

_ROUNDS = 4  # Under ever more writers the last comparison has to do.
_WIDER = 6  # So many times the neighbours are looked through for other voices.


class MemoryWriter:
    """Adds memories to one scope at a time; of memories outside that scope none is ever changed. Safe in threads."""

    def __init__(
        self,
        store: MemoryStore,
        search: MemorySearch,
        judge: Judge | None,
        evidence: EvidenceBook,
        clock: Clock,
        first: First,
        judge_turns: bool = False,
        unjudged: bool = False,
    ) -> None:
        self.store, self.judge = store, judge
        self._search, self._evidence, self._clock, self._first = search, evidence, clock, first
        self._judge_turns, self._unjudged = judge_turns, unjudged
        self._written = 0  # by this writer; changes only inside a transaction

    def add(
        self,
        content: str,
        scope: Scope,
        source: MemorySource,
        kind: str = "fact",
        metadata: Mapping[str, str] | None = None,
        valid_from: float | None = None,
        *,
        evidence: Sequence[str] = (),
        contradicts: Sequence[str] = (),
        created_at: float | None = None,
        observed_at: float | None = None,
    ) -> Memory:
        """Remembers a text; the memory that says the same words in this scope already, if there is one.

        created_at: when it was written down (None: now); observed_at: when it was said or seen, valid_from: since when
        it holds (None: then); in seconds since 1970. A memory of the scope whose place this one takes, as
        `ewe.longterm.change` reads both, and that is believed no more than this source, is superseded: it holds until
        then, and is found for earlier times only. contradicts: ids in the scope. Raises InvalidRequestError for what is
        no memory, JudgeError as the judge does.
        """
        new = Memory(
            "new", content, kind, source, scope, dict(metadata or {}), created_at or 0.0, observed_at=observed_at,
            valid_from=valid_from,
        )  # fmt: skip
        memory = self._added(new, evidence, contradicts)
        self._embed()
        return memory

    def edit(self, scope: Scope, memory_id: str, change: Change) -> Memory:
        """Changes what a memory says, or when it holds; what it said before stays in its history.

        New words are believed as if they were said by the same source today, and compared as those of a new memory.
        Raises InvalidRequestError if the scope holds no such memory, or it would be none; JudgeError as the judge does.
        """
        memory, related = self.store.get(scope, memory_id), list[Relation]()
        if change.content is not None:
            memory = replace(memory, content=" ".join(change.content.split()), observed_at=self._clock())
            related = self.relations(memory)
            veracity, uncertainty = self._first(memory, related)
            against = tuple(other.id for other in contradicted(related))
            change = replace(
                change, content=memory.content, veracity=veracity, uncertainty=uncertainty, contradicts=against
            )
        with self.store.transaction():
            self.store.revise(scope, memory_id, change, at=self._clock(), reason="edited")
            for other in contradicted(related):
                self._mark(scope, other.id, memory_id)
            memory = self.store.get(scope, memory_id)
        self._embed()
        return memory

    def correct(self, scope: Scope, memory_id: str, content: str, by: MemorySource) -> Memory:
        """Remembers what a memory should have said; the wrong one stays, marked and believed less."""
        self.store.get(scope, memory_id)
        new = self.add(content, scope, by, metadata={"corrects": memory_id}, contradicts=[memory_id])
        if new.id != memory_id:
            self._evidence.feedback(scope, memory_id, False, by)
        return new

    def relations(self, memory: Memory, known: Sequence[Relation] = ()) -> list[Relation]:
        """How at most 16 neighbours stand to a memory: those that hold, of all scopes that whoever reads it can see.

        known: relations that were found a moment ago; the judge is not asked for them again. Without a judge, and where
        it is not asked about what people say in conversations, nobody says how they stand: none are looked for, unless
        the first veracity takes them as they are. Raises JudgeError.
        """
        judge = None if memory.is_turn and not self._judge_turns else self.judge
        if (judge is None and not self._unjudged) or not words(memory.content):
            return []
        scopes = visible(memory.scope.user, memory.scope.agent)
        [hits] = self._search.search([memory.content], scopes, _WIDER * MOST_NEIGHBOURS)
        others = [hit.memory for hit in hits if (hit.memory.scope, hit.memory.id) != (memory.scope, memory.id)]
        chosen = neighbours([other for other in others if other.valid_until is None or other.holds_at(memory.said_at)])
        if judge is None:
            return [Relation(other, 0.0, 0.0, 0.0) for other in chosen]
        by_key = {key_of(one.memory): one for one in known}
        new = [other for other in chosen if key_of(other) not in by_key]
        by_key |= {key_of(one.memory): one for one in relations(memory.content, new, judge)}
        return [by_key[key_of(other)] for other in chosen]

    def _embed(self) -> None:
        """Called after every change, for whoever keeps vectors of memories."""

    def _added(self, new: Memory, evidence: Sequence[str] = (), contradicts: Sequence[str] = ()) -> Memory:
        """As `add`, without vectors; new: its id and veracity do not count."""
        content, created_at = " ".join(new.content.split()), new.created_at or self._clock()
        check_told(max(created_at, new.said_at), self._clock())
        new = replace(new, id=_id_of(content), content=content, created_at=created_at)
        memory, there = self._known(replace(new, observed_at=new.said_at), contradicts)
        rounds, related = 0, list[Relation]()
        while there is None:
            before, rounds = (self._written, self.store.extent(memory.scope)), rounds + 1
            related = self.relations(memory, related)
            read = read_stances(memory, self.store)  # here, where it keeps nobody waiting
            with self.store.transaction():
                memory, there = self._known(memory, contradicts)
                # Others may have written while the judge read, in other processes too: that is compared as well.
                alone = before == (self._written, self.store.extent(memory.scope))
                if there is None and (alone or rounds == _ROUNDS):
                    there = self._write(memory, related, read if alone else None, evidence, contradicts)
        return there

    def _write(
        self,
        memory: Memory,
        related: Sequence[Relation],
        read: Read | None,
        evidence: Sequence[str],
        contradicts: Sequence[str],
    ) -> Memory:
        older = older_statements(memory, self.store, read)
        if not evidence and not contradicts and (same := duplicate_of(memory, older)):
            return self._confirm(memory, same)
        now = self._clock()
        begins = memory.begins
        agreed = {other.id for other in agreeing(related)}
        replaced = [other for other in of_one_place(memory, older) if other.id not in agreed.union(contradicts)]
        earlier = [other for other in replaced if other.begins <= begins]
        later = min((other for other in replaced if other.begins > begins), key=attrgetter("begins"), default=None)
        related = [one for one in related if one.memory not in replaced]
        veracity, uncertainty = self._first(memory, related)
        against = tuple(dict.fromkeys([*contradicts, *(other.id for other in contradicted(related))]))
        new = replace(
            memory, updated_at=now, veracity=veracity, uncertainty=uncertainty, contradicts=against,
            valid_from=begins if earlier else memory.valid_from, supersedes=tuple(other.id for other in earlier),
        )  # fmt: skip
        self._written += 1
        self.store.add([new], evidence=tuple(evidence))
        for other in earlier:
            self._end(other, begins, new.id)
        if later is not None:  # the new one tells of a time before it
            since = Change(valid=(later.begins, later.valid_until), supersedes=(*later.supersedes, new.id))
            self.store.revise(new.scope, later.id, since, at=now, reason="preceded", evidence=[new.id])
            new = self._end(new, later.begins, later.id)
        for memory_id in against:
            self._mark(new.scope, memory_id, new.id)
        for other in agreeing(related):
            self._support(other, new.scope, new.source)
        return new

    def _end(self, memory: Memory, at: float, by_id: str) -> Memory:
        """Another memory takes the place of one from a time on; the ended one."""
        until = at if memory.valid_until is None else min(at, memory.valid_until)
        change = Change(valid=(memory.valid_from, until))
        self.store.revise(memory.scope, memory.id, change, at=self._clock(), reason=SUPERSEDED, evidence=[by_id])
        return self.store.get(memory.scope, memory.id)

    def _known(self, memory: Memory, contradicts: Sequence[str]) -> tuple[Memory, Memory | None]:
        """The memory under the id that is its own, and the one of the same words that held then, if the scope has one.

        What this voice adds to it is done. The words of a memory that held no more are a new memory.
        """
        with self.store.transaction():
            while there := self.store.find(memory.scope, memory.id):
                if there.content == memory.content and there.holds_at(memory.said_at):
                    break
                memory = replace(memory, id=_id_of(memory.id))
            if there is None:
                return memory, None
            self._support(there, memory.scope, memory.source)
            for other in (one for one in contradicts if one != memory.id):
                self._mark(memory.scope, memory.id, other)
                self._mark(memory.scope, other, memory.id)
            return memory, self.store.get(memory.scope, memory.id)

    def _confirm(self, memory: Memory, same: Memory) -> Memory:
        """The memory that says the same, with the new words in its history."""
        self._support(same, memory.scope, memory.source)
        at = self._clock()
        self.store.revise(same.scope, same.id, Change(), at=at, reason="said again", evidence=[memory.content])
        return self.store.get(same.scope, same.id)

    def _support(self, memory: Memory, scope: Scope, source: MemorySource) -> None:
        """Somebody else, who is believed more than 1/2, said the same; counted once per voice, as their feedback."""
        other_voice = voice_of(memory) != (source.kind, source.id or scope.user)
        if memory.scope == scope and other_voice and source.reliability > 0.5:
            self._evidence.feedback(memory.scope, memory.id, True, source)

    def _mark(self, scope: Scope, memory_id: str, by_id: str) -> None:
        """Notes in a memory of the scope that another one contradicts it; its veracity stays."""
        old = self.store.find(scope, memory_id)
        if old is None or by_id in old.contradicts:
            return
        change = Change(uncertainty=max(old.uncertainty, 0.5), contradicts=(*old.contradicts, by_id))
        self.store.revise(scope, memory_id, change, at=self._clock(), reason="contradicted", evidence=[by_id])


def _id_of(content: str) -> str:
    """The same words have the same id in every scope; ids are looked up within a scope only."""
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:32]
