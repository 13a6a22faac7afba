"""Long-term memory as one thing to talk to: add, correct, search, feedback, verdicts, reviews."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

from ewe.config.config_evidence import SEARCH_TOP_K
from ewe.config.lazy import warm
from ewe.longterm.background_vectors import BackgroundEmbedding
from ewe.longterm.change.change_search import older_statements, says_again
from ewe.longterm.change.reading_ahead import read_ahead
from ewe.longterm.evidence import Clock, EvidenceBook, is_memory
from ewe.longterm.memory_search import MemorySearch
from ewe.longterm.recall import MemoryRules, Recall, Recaller
from ewe.longterm.records import Memory, MemorySource, Revision, Scope, as_it_was
from ewe.longterm.reviews import Reviewer
from ewe.longterm.scoring.contradictions import agreeing
from ewe.longterm.scoring.mark_builder import MemoryBuilder, Turn
from ewe.longterm.scoring.scorers import voice_of
from ewe.longterm.scoring.verimem import source_of
from ewe.longterm.store import Change, MemoryStore
from ewe.longterm.superseded import Superseded, Why, former_words, restore, superseded, why
from ewe.longterm.writing import MemoryWriter
from ewe.retrieval.encoders import Encoder
from ewe.types import Claim, Evidence, Passage, Sentence, Verdict
from ewe.types.protocols import Retriever
from ewe.verification.judges.protocol import Judge

_TOGETHER = 100  # memories that are added in one transaction, for which others wait


class MemoryService(MemoryWriter):
    """Decides about the memories of a store, which must be open for writing; the store stays the caller's to close.

    judge: finds contradictions and reads evidence; without one, memories are believed as their sources are, until
    there is feedback. trusted: passages to check memories by. encoder: that of the store's vectors, which are made at
    once or, `in_background`, a moment later. clock: seconds since 1970. Safe to call from several threads. Raises
    InvalidRequestError for memories that are not there or are none, DatastoreError as the store does, JudgeError as the
    judge does.
    """

    def __init__(
        self,
        store: MemoryStore,
        *,
        judge: Judge | None = None,
        trusted: Retriever | None = None,
        encoder: Encoder | None = None,
        in_background: bool = False,
        rules: MemoryRules | None = None,
        clock: Clock = time.time,
    ) -> None:
        rules = rules or MemoryRules()
        search = MemorySearch(store, encoder)
        evidence = EvidenceBook(store, judge, clock, rules.update)
        super().__init__(store, search, judge, evidence, clock, rules.first, rules.judge_turns, rules.unjudged)
        self._encoder, self._trusted, self._reviews = encoder, trusted, rules.reviews
        self._embedding = BackgroundEmbedding(store, encoder) if encoder is not None and in_background else None
        self._models = (judge, encoder)
        self._recaller = Recaller(store, search, evidence, self, rules, trusted, clock)

    def warm(self) -> None:
        """Has judge and encoder load their models, if they have any."""
        for part in self._models:
            warm(part)

    def close(self) -> None:
        """Ends the thread that makes vectors, if there is one; the store stays open."""
        if self._embedding is not None:
            self._embedding.close()

    @property
    def can_weigh(self) -> bool:
        """Whether there is a judge to read evidence."""
        return self._evidence.can_weigh

    def add_all(self, new: Sequence[Memory]) -> list[Memory]:
        """As `add`, of several in order; without a judge 100 are kept at a time, all of them or none.

        new: their ids and veracities do not count. Raises as `add` does; what was kept before stays.
        """
        memories: list[Memory] = []
        for start in range(0, len(new), _TOGETHER):
            read_ahead(new[start : start + _TOGETHER], self.store, self._clock())  # while nobody waits
            with self.store.transaction() if self.judge is None else nullcontext():  # nobody waits while a judge reads
                memories += [self._added(one) for one in new[start : start + _TOGETHER]]
        self._embed()
        return memories

    def get(self, scope: Scope, memory_id: str, as_of: float | None = None) -> Memory | None:
        """A memory, or as it was at a time (seconds since 1970); None if there is none, or it did not hold then."""
        memory = self.store.find(scope, memory_id)
        return memory if memory is None or as_of is None else self._as_it_was(memory, as_of)

    def page(self, scopes: Sequence[Scope], offset: int, limit: int, as_of: float | None = None) -> list[Memory]:
        """At most `limit` memories of these scopes as they were added; as_of: those that held then, as they were."""
        memories = self.store.page(scopes, offset, limit, as_of)
        then = memories if as_of is None else [self._as_it_was(memory, as_of) for memory in memories]
        return [memory for memory in then if memory is not None]

    def restate(self, memory: Memory, content: str, by: MemorySource) -> Memory:
        """Says what a memory should have said: a source's own word is rewritten, another one's stays, both are marked.

        Raises as `edit` and `correct` do.
        """
        if voice_of(memory) == (by.kind, by.id or memory.scope.user):
            return self.edit(memory.scope, memory.id, Change(content=content))
        return self.correct(memory.scope, memory.id, content, by)

    def _as_it_was(self, memory: Memory, at: float) -> Memory | None:
        return as_it_was(memory, self.store.history(memory.scope, memory.id), at)

    def knows(self, memory: Memory) -> bool:
        """Whether a memory of its scope that holds says the same, also in other words."""
        candidate = replace(memory, content=" ".join(memory.content.split()), observed_at=self._clock())
        if says_again(candidate, older_statements(candidate, self.store)):
            return True
        return any(one.scope == candidate.scope for one in agreeing(self.relations(candidate)))

    def search(
        self,
        query: str,
        scopes: Sequence[Scope],
        top_k: int = SEARCH_TOP_K,
        threshold: float | None = None,
        as_of: float | None = None,
    ) -> Recall:
        """What is remembered for a query and may be used; `ewe.longterm.memory_search.visible` gives a user's scopes.

        threshold: the veracity to ask for, in [0, 1]; None: theta(q). Below it, memories are checked, looked up, used
        with a warning or disregarded. as_of: the time (seconds since 1970) at which memories must hold; None: the one
        that the query asks about ("in 2024"), or now. Counts a recall of each memory that may be used.
        """
        recall = self.recall(query, scopes, top_k, threshold, as_of)
        self.count_recalls((one.memory.scope, one.memory.id) for one in recall.used)
        return recall

    def recall(
        self,
        query: str,
        scopes: Sequence[Scope],
        top_k: int,
        threshold: float | None = None,
        as_of: float | None = None,
    ) -> Recall:
        """As `search`, with the counting left to the caller: one who asks again and again for the same answer."""
        return self._recaller.recall(query, scopes, top_k, threshold, as_of)

    def count_recalls(self, places: Iterable[tuple[Scope, str]]) -> None:
        """Counts one recall of each of these memories, by scope and id."""
        by_scope: dict[Scope, list[str]] = {}
        for scope, memory_id in places:
            by_scope.setdefault(scope, []).append(memory_id)
        for scope, ids in by_scope.items():
            self.store.recalled(scope, ids)

    def feedback(self, scope: Scope, memory_id: str, correct: bool, by: MemorySource) -> Revision | None:
        """Somebody says that a memory is right or wrong; None if they said so already."""
        return self._evidence.feedback(scope, memory_id, correct, by)

    def superseded(self, scope: Scope) -> list[Superseded]:
        """The memories of a scope whose place later ones have taken, as they were added."""
        return superseded(self.store, [scope])

    def why(self, scope: Scope, memory_id: str) -> Why:
        """Why a memory is there and believed as it is: its history, what took its place, replaced or contradicts it."""
        return why(self.store, scope, memory_id)

    def restore(self, scope: Scope, memory_id: str, by: str = "") -> Memory:
        """Has a memory that ended, or is contradicted, hold again; any other says what it said before its edit.

        by: who says so. Raises InvalidRequestError where there is nothing to take back.
        """
        memory = self.store.get(scope, memory_id)
        if memory.valid_until is not None or memory.contradicts:
            return restore(self.store, self._clock, scope, memory_id, by)
        return self.edit(scope, memory_id, Change(content=former_words(self.store, scope, memory_id)))

    def apply_verdicts(self, used: Sequence[str], evidence: Sequence[Evidence]) -> list[Revision]:
        """Moves the memories among the passages `used` (ids) by the evidence of a check; needs a judge."""
        return self._evidence.verdicts(used, evidence)

    def promote(self, sentence: Sentence, sources: Mapping[str, Passage], scope: Scope) -> list[Memory]:
        """The claims of a supported sentence as memories, with their proofs; none if one rests on memories alone.

        sources: the passages of its evidence, by id.
        """
        if sentence.verdict is not Verdict.SUPPORTED:
            return []
        proofs = [
            [sources[one] for one in claim.evidence_ids if one in sources and not is_memory(one)]
            for claim in sentence.claims
            if claim.verdict is Verdict.SUPPORTED
        ]
        if len(proofs) < len(sentence.claims) or not all(proofs):
            return []
        memories = [self._promoted(claim, behind, scope) for claim, behind in zip(sentence.claims, proofs, strict=True)]
        self._embed()
        return memories

    def remember(self, conversation: Sequence[Turn], builder: MemoryBuilder, scope: Scope, user: str) -> list[Memory]:
        """Takes the memories from a conversation with a user (MARK's builder service). Raises CompletionError."""
        memories = []
        for note in builder.build(conversation).notes:
            source = source_of(note.source_kind, user if note.source_kind == "user" else "builder")
            memories.append(self._added(Memory("new", note.content, note.kind, source, scope)))
        self._embed()
        return memories

    def review(self, budget: int, scopes: Sequence[Scope] | None = None) -> list[Revision]:
        """Checks the at most `budget` most urgent memories (None: of all scopes) by trusted passages; what changed."""
        reviewer = self.reviewer()
        revisions = (reviewer.check(memory) for memory in reviewer.plan(budget, scopes))
        return [revision for revision in revisions if revision is not None]

    def reviewer(self) -> Reviewer:
        """What checks memories one by one; raises ConfigError without trusted passages or a judge."""
        return Reviewer(self.store, self._evidence, self._trusted, self._reviews, self._clock)

    def _promoted(self, claim: Claim, proofs: Sequence[Passage], scope: Scope) -> Memory:
        believed = claim.score * max(passage.veracity for passage in proofs)
        source = MemorySource("document", proofs[0].id, min(max(believed, 0.0), 1.0))
        promoted = Memory("new", claim.text, source=source, scope=scope)
        return self._added(promoted, evidence=[f"passage:{passage.id}" for passage in proofs])

    def _embed(self) -> None:
        if self._embedding is not None:
            self._embedding.start()
        elif self._encoder is not None:
            self.store.embeddings.embed(self._encoder)
