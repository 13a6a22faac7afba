"""Looking for memories by words and by meaning at once, within the scopes that the asker may see."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, unquote

import numpy as np

from ewe.errors import InvalidRequestError
from ewe.longterm.asked_words import own_beginning, told_with
from ewe.longterm.query_time import Period, query_date
from ewe.longterm.records import Memory, Scope
from ewe.longterm.store.memory_rows import Moment
from ewe.longterm.store.reading import MemoryReader
from ewe.retrieval.encoders import Encoder
from ewe.retrieval.source import check_top_k
from ewe.text.search_text import IN_ANY_QUESTION
from ewe.types import Passage

_DEPTH = 200
# All-MiniLM-L6-v2 gives unrelated texts cosines of about 0.2 at most, but a question and what is told in other words
# often no more: of 168 questions on chats that tuned nothing else 4 to 8 more are answered than from 0.25 on.
LEAST_COSINE = 0.15
# Tuned on three of the conversations of benchmarks/longterm_locomo.py.
_MEANING = 0.4  # the share of the cosines in a score
_FROM_BEFORE, _FROM_AFTER = 0.3, 0.2  # what a turn of a conversation gets of the scores of the turns beside it
_FROM_QUESTION, _QUESTION = 0.7, 0.8  # what it gets of a question before it; what a question keeps of its own
_DATE = 0.3
_OWN = 0.3  # a choice: enough to put "I live" before "Tom lives"


@dataclass(frozen=True, slots=True)
class Found:
    """A memory with the score of the search (higher is better; see `MemorySearch` for the scale)."""

    memory: Memory
    score: float


class MemorySearch:
    """Searches a store by words (BM25) and, with an encoder, by meaning too: 0.6 BM25 + 0.4 cosine, each over its best.

    Words that any question has, as "when" and "did", weigh a fifth, and so do words that what is asked for may be told
    with ("moved" where the question has "live"). Turns of a conversation (memories of the kind
    "turn" that were added one after the other) get a part of the scores of the turns beside them, most of it from a
    question that they answer; what was said at a date or in a time that the query names gets 0.3 more, and what users
    tell of themselves 0.3 where they ask for themselves. Scores lie in (0, 2.5].
    least_cosine: what a memory's vector needs to be found by it. Safe to call from several threads. Raises ConfigError
    if another encoder made the store's vectors.
    """

    def __init__(self, store: MemoryReader, encoder: Encoder | None = None, least_cosine: float = LEAST_COSINE) -> None:
        self._store, self._encoder, self._least = store, encoder, least_cosine
        self.description = "BM25"
        if encoder is not None:
            store.embeddings.check(encoder)
            self.description = f"hybrid: BM25 + {encoder.name.rsplit('/', 1)[-1]}"

    def search(
        self, queries: Sequence[str], scopes: Sequence[Scope], top_k: int, during: Period | None = None
    ) -> list[list[Found]]:
        """Per query, at most `top_k` memories of exactly these scopes, best first; during: those that held then.

        Raises ValueError if top_k < 1.
        """
        check_top_k(top_k)
        vectors: Sequence[np.ndarray | None] = [None] * len(queries)
        if self._encoder is not None and queries and self._store.embeddings.exist:
            vectors = list(self._encoder.encode_queries(queries))
        depth = max(_DEPTH, 2 * top_k)  # some of what is found may not hold any more
        with self._store.seeing(scopes):
            numbers = self._store.scope_numbers(scopes)
            users = {scope.user for scope in scopes}
            asked = [
                (query, vector, _Asked(query, users, during)) for query, vector in zip(queries, vectors, strict=True)
            ]
            rows = [self._scores(*one, numbers, depth) for one in asked]
            return [self._best(scores, scopes, top_k) for scores in rows]

    def _scores(
        self, query: str, vector: np.ndarray | None, asked: "_Asked", scopes: Sequence[int], depth: int
    ) -> dict[int, float]:
        """The score of every memory that was found, by its number."""
        others = told_with(query)
        wider = " ".join([query, *sorted(others)])
        by_words = self._store.lexicon.search(wider, scopes, depth, IN_ANY_QUESTION | others)
        scores = defaultdict(float, _shares(by_words, 1.0 if vector is None else 1.0 - _MEANING))
        if vector is not None:
            close = [hit for hit in self._store.embeddings.search(vector, scopes, depth) if hit[1] >= self._least]
            for number, share in _shares(close, _MEANING).items():
                scores[number] += share
        moments = self._store.moments(list(scores), scopes)
        beside = {number + step for number, moment in moments.items() if moment.is_turn for step in (-1, 1)}
        moments |= self._store.moments(sorted(beside - moments.keys()), scopes)
        with_neighbours = _with_turns_beside(scores, moments)
        return {
            number: score + asked.fit(moments[number])
            for number, score in with_neighbours.items()
            if asked.during is None or moments[number].holds_during(asked.during)
        }

    def _best(self, scores: Mapping[int, float], scopes: Sequence[Scope], top_k: int) -> list[Found]:
        """The memories of the best scores; of equal ones the newest."""
        best = heapq.nlargest(top_k, scores, key=lambda number: (scores[number], number))
        memories = self._store.rows(best, scopes)
        # One that was deleted a moment ago is left out.
        return [Found(memories[number], scores[number]) for number in best if number in memories]


class _Asked:
    """What a query asks for beside its words: a time, and whether it is of the users themselves."""

    def __init__(self, query: str, users: Iterable[str], during: Period | None) -> None:
        self.during, self._date = during, query_date(query)
        self._own = own_beginning(query, users)

    def fit(self, moment: Moment) -> float:
        """What a memory gets more for its time and for whom it is about."""
        if self._date is not None:
            dated = self._date.fit(moment.said_at)
        else:
            dated = float(self.during is not None and self.during.holds(moment.said_at))
        is_own = self._own is not None and not moment.is_turn and self._own.match(moment.content) is not None
        return _DATE * dated + _OWN * is_own


def _shares(hits: Sequence[tuple[int, float]], weight: float) -> dict[int, float]:
    """Scores over the best one's, times a weight."""
    return {number: weight * score / hits[0][1] for number, score in hits}


def _with_turns_beside(scores: Mapping[int, float], moments: Mapping[int, Moment]) -> dict[int, float]:
    """The scores, with what turns get of those beside them; turns that were found by that alone are among them."""
    raised: defaultdict[int, float] = defaultdict(float)
    for number, score in scores.items():
        if number not in moments:  # deleted a moment ago, or of another scope
            continue
        asks = moments[number].asks
        raised[number] += score * (_QUESTION if asks else 1.0)
        for other, share in ((number + 1, _FROM_QUESTION if asks else _FROM_BEFORE), (number - 1, _FROM_AFTER)):
            if other in moments and moments[number].is_beside(moments[other]):
                raised[other] += share * score
    return raised


def visible(user: str = "", agent: str = "") -> tuple[Scope, ...]:
    """What a user may see who talks to an agent: their own with this agent, their own, the agent's, the shared ones."""
    scopes = (Scope(user, agent), Scope(user), Scope(agent=agent), Scope())
    return tuple(dict.fromkeys(scopes))


def as_passage(memory: Memory) -> Passage:
    """A memory as the engine takes passages: its text is data, its date the day on which it was last said."""
    return Passage(
        address(memory),
        memory.content,
        source=memory.source.name,
        date=day_of(memory.last_said_at),
        veracity=memory.veracity,
    )


def address(memory: Memory) -> str:
    """Names a memory in the whole store, as the id of its passage: memory:user/agent/id, each part percent-quoted."""
    parts = (memory.scope.user, memory.scope.agent, memory.id)
    return "memory:" + "/".join(quote(part, safe="") for part in parts)


def scope_and_id(passage_id: str) -> tuple[Scope, str]:
    """What `address` was made from. Raises InvalidRequestError for the id of a passage that is no memory."""
    prefix, _, rest = passage_id.partition(":")
    parts = rest.split("/")
    if prefix != "memory" or len(parts) != 3 or not parts[2]:
        raise InvalidRequestError(f"{passage_id!r} is no memory")
    user, agent, memory_id = map(unquote, parts)
    return Scope(user, agent), memory_id


def day_of(at: float) -> str:
    """The ISO date of a time in seconds since 1970; empty for one that no calendar has."""
    try:
        return datetime.fromtimestamp(at, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
