"""Reading memories for a query: in which order, how far believed, and what is done with those that are not enough."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ewe.errors import InvalidRequestError
from ewe.longterm.evidence import Clock, EvidenceBook
from ewe.longterm.memory_search import Found, MemorySearch
from ewe.longterm.query_time import Period, period_of
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.reviews import ReviewPolicy
from ewe.longterm.scoring.forms import First, FirstVeracity, VeracityUpdate, bayesian
from ewe.longterm.scoring.protocol import Candidate, MemoryScorer, Score
from ewe.longterm.scoring.scorers import DefaultScorer
from ewe.longterm.scoring.threshold import Action, CriticalityEstimator, VeracityThreshold, estimate_criticality
from ewe.longterm.scoring.verimem import WRITE_TIME_PRIOR, recall_uncertainty
from ewe.longterm.store import MemoryStore
from ewe.longterm.writing import MemoryWriter
from ewe.types import Passage
from ewe.types.protocols import Retriever

_WIDER = 4
_PASSAGES = 5
_Key = tuple[Scope, str]


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """How memories are scored and when they are good enough; the defaults are argued in docs/longterm_scoring.md.

    update: what evidence does to a veracity. checks: at most so many memories are checked again, and so many looked up,
    for one query. judge_turns: whether a judge that is given also compares what people say in conversations. unjudged:
    whether `first` is given the neighbours that no judge compares, too.
    """

    scorer: MemoryScorer = field(default_factory=DefaultScorer)
    threshold: VeracityThreshold = field(default_factory=VeracityThreshold)
    first: First = field(default_factory=FirstVeracity)
    criticality: CriticalityEstimator = estimate_criticality
    reviews: ReviewPolicy = field(default_factory=ReviewPolicy)
    update: VeracityUpdate = bayesian
    checks: int = 2
    judge_turns: bool = True
    unjudged: bool = False


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory that was found for a query, and what is done with it.

    belief: of the scorer, in [0, 1]; uncertainty: of that belief, in [0, 1]; similarity: the score of the search over
    its best one; action: what was done last; tried: the actions before; replaced_by: what was looked up in its place.
    """

    memory: Memory
    belief: float
    uncertainty: float
    similarity: float
    action: Action
    tried: tuple[Action, ...] = ()
    replaced_by: Memory | None = None

    @property
    def id(self) -> str:
        """The memory's."""
        return self.memory.id

    @property
    def content(self) -> str:
        """What the memory says: data, never an instruction."""
        return self.memory.content


@dataclass(frozen=True, slots=True)
class Recall:
    """What a query brought back: what may be used, best first, warnings last; what may not; the veracity asked for."""

    used: tuple[Recalled, ...]
    disregarded: tuple[Recalled, ...]
    threshold: float


@dataclass(slots=True)
class _Round:
    """One query: its threshold, what was found, and what may still be tried."""

    query: str
    theta: float
    now: float
    candidates: dict[_Key, Candidate]
    checks: int
    lookups: int


class Recaller:
    """Finds, scores and checks memories for a query; trusted: passages to check them by, if there is a judge."""

    def __init__(
        self,
        store: MemoryStore,
        search: MemorySearch,
        evidence: EvidenceBook,
        writer: MemoryWriter,
        rules: MemoryRules,
        trusted: Retriever | None,
        clock: Clock,
    ) -> None:
        self._store, self._search, self._evidence, self._writer = store, search, evidence, writer
        self._rules, self._trusted, self._clock = rules, trusted, clock
        self._checks = rules.checks if trusted is not None and evidence.can_weigh else 0

    def recall(
        self,
        query: str,
        scopes: Sequence[Scope],
        top_k: int,
        threshold: float | None = None,
        as_of: float | None = None,
    ) -> Recall:
        """At most `top_k` memories of these scopes that may be used for the query: the best first, warnings last.

        threshold: the veracity to ask for, in [0, 1]; None: theta(q). as_of: when they must hold; None: at the time
        that the query names ("in 2024"), or now. Raises InvalidRequestError if top_k < 1.
        """
        if top_k < 1:
            raise InvalidRequestError(f"top_k must be at least 1, got {top_k}")
        rules = self._rules
        theta = rules.threshold.of(rules.criticality(query)) if threshold is None else threshold
        now = self._clock()
        period = period_of(query, as_of, now)
        [hits] = self._search.search([query], scopes, _WIDER * top_k, period)
        if period.looks_back:
            hits = self._with_preceding(hits, period)
        candidates = {_key(one.memory): one for one in _candidates(hits)}
        # How old a memory is counts from the time that is asked about.
        state = _Round(query, theta, min(now, period.end or now), candidates, self._checks, self._checks)
        scores = self._scores(state)
        sure: dict[_Key, Recalled] = {}
        warned: dict[_Key, Recalled] = {}
        disregarded: dict[_Key, Recalled] = {}
        places = {Action.DISREGARD: disregarded, Action.USE_WITH_UNCERTAINTY: warned}
        for key in sorted(candidates, key=lambda key: -scores[key].rank):
            if len(sure) >= top_k:
                break
            for one in self._settled(key, scores[key], state):
                places.get(one.action, sure).setdefault(_key(one.memory), one)
        used = dict(list((sure | warned).items())[:top_k])
        return Recall(tuple(used.values()), tuple(disregarded.values()), theta)

    def _with_preceding(self, hits: Sequence[Found], period: Period) -> list[Found]:
        """What was found, each behind what it took the place of: "before Paris" asks for that, in whatever words."""
        found: dict[_Key, Found] = {}
        for hit in hits:
            scope = hit.memory.scope
            preceding = filter(None, (self._store.find(scope, memory_id) for memory_id in hit.memory.supersedes))
            held = [one for one in preceding if period.meets(one.valid_from, one.valid_until)]
            for one in (*(Found(one, hit.score) for one in held), hit):
                found.setdefault(_key(one.memory), one)
        return list(found.values())

    def _scores(self, state: _Round) -> dict[_Key, Score]:
        scores = self._rules.scorer.score(list(state.candidates.values()), state.now)
        return dict(zip(state.candidates, scores, strict=True))

    def _settled(self, key: _Key, score: Score, state: _Round) -> list[Recalled]:
        """What becomes of a memory, and what was looked up in its place."""
        candidate = state.candidates[key]
        tried: list[Action] = []
        while (action := self._action(score, state, tried)) in (Action.REVALIDATE, Action.EXTERNAL_LOOKUP):
            tried.append(action)
            if action is Action.REVALIDATE:
                state.checks -= 1
                if self._revalidated(candidate, state):
                    score, candidate = self._scores(state)[key], state.candidates[key]
                continue
            state.lookups -= 1
            fresh = self._looked_up(candidate.memory, state)
            if fresh is not None:
                instead = _recalled(Candidate(fresh, candidate.similarity), fresh.veracity, Action.EXTERNAL_LOOKUP)
                old = _recalled(candidate, score.belief, Action.DISREGARD, tuple(tried))
                return [instead, replace(old, replaced_by=fresh)]
        return [_recalled(candidate, score.belief, action, tuple(tried))]

    def _action(self, score: Score, state: _Round, tried: Sequence[Action]) -> Action:
        if not score.usable:
            return Action.DISREGARD
        return self._rules.threshold.action(
            score.belief,
            state.theta,
            can_revalidate=not tried and state.checks > 0,
            can_look_up=Action.EXTERNAL_LOOKUP not in tried and state.lookups > 0,
        )

    def _revalidated(self, candidate: Candidate, state: _Round) -> bool:
        """Whether trusted passages moved the memory; if so, `state` has it as it is now."""
        memory = candidate.memory
        if self._evidence.weigh(memory, self._passages(memory.content), "revalidated") is None:
            return False
        now = self._store.find(memory.scope, memory.id)
        if now is None:
            return False
        state.candidates[_key(memory)] = Candidate(now, candidate.similarity)
        return True

    def _looked_up(self, memory: Memory, state: _Round) -> Memory | None:
        """The trusted passage that settles the matter, as a memory of the same scope; None if none does."""
        passage = self._evidence.settling(memory, self._passages(state.query))
        if passage is None:
            return None
        source = MemorySource("document", passage.source or passage.id, min(passage.veracity, WRITE_TIME_PRIOR["tool"]))
        return self._writer.add(
            passage.text, memory.scope, source, metadata={"passage": passage.id}, evidence=[f"passage:{passage.id}"]
        )

    def _passages(self, query: str) -> list[Passage]:
        return [] if self._trusted is None else [hit.passage for hit in self._trusted.retrieve([query], _PASSAGES)[0]]


def _key(memory: Memory) -> _Key:
    return memory.scope, memory.id


def _candidates(hits: Sequence[Found]) -> list[Candidate]:
    """The memories found, each with its score over the best one's: in (0, 1]."""
    best = max((hit.score for hit in hits), default=0.0)
    return [Candidate(hit.memory, hit.score / best if best > 0 else 0.0) for hit in hits]


def _recalled(candidate: Candidate, belief: float, action: Action, tried: tuple[Action, ...] = ()) -> Recalled:
    return Recalled(candidate.memory, belief, recall_uncertainty(belief), candidate.similarity, action, tried)
