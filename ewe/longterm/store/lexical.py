"""Finding memories by their words: BM25 in the store's own tables, every scope with words of its own."""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from ewe.longterm.store.checksums import COUNTED
from ewe.longterm.store.memory_session import Entry, MemorySession
from ewe.retrieval.bm25 import K1, B
from ewe.retrieval.store.session import Connection
from ewe.text.english import stem
from ewe.text.words import words

EXACT_POSTINGS = 10_000  # read in about 5 ms; a scope with no more than this many postings per query is ranked exactly
_CANDIDATES = 256
_FAINT = 0.2  # tuned on three of the conversations of benchmarks/longterm_locomo.py
_SEEK = 4  # postings that are read one after the other in the time that it takes to look one up
_MOST_WORDS = 64  # of a query, the rarest; a whole page as a query finds what its telling words find
_PROBE = "Čapek's 1,904 well-known robots don't dream of 3.5 electric sheep: who lives? 東京に住む。 กรุงเทพ"

_Word = tuple[bool, int, list[int]]  # whether it is faint, in how many memories it is, and its number in each scope


class Lexicon:
    """The inverted index of all memories. `add` and `remove` belong inside the transaction that changes them."""

    def __init__(self, session: MemorySession) -> None:
        self._session = session

    def add(self, connection: Connection, entries: Iterable[Entry]) -> None:
        """Puts the words of memories into the index."""
        frequencies: Counter[tuple[int, str]] = Counter()
        postings: list[tuple[int, int, int, int, str]] = []
        sizes: defaultdict[int, list[int]] = defaultdict(list)
        for memory, scope, content in entries:
            tokens = terms(content)
            sizes[scope].append(len(tokens))
            for word, times in Counter(tokens).items():
                frequencies[scope, word] += 1
                postings.append((memory, times, len(tokens), scope, word))
        connection.executemany(
            "INSERT INTO words (scope, word, memories) VALUES (?, ?, ?) "
            "ON CONFLICT (scope, word) DO UPDATE SET memories = words.memories + excluded.memories",
            [(*key, count) for key, count in sorted(frequencies.items())],
        )
        postings.sort(key=lambda posting: posting[3:])  # the pages of a word are touched once
        connection.executemany(
            "INSERT INTO postings (word, memory, times, length) "
            "SELECT number, ?, ?, ? FROM words WHERE scope = ? AND word = ?",
            postings,
        )
        connection.executemany(
            "UPDATE scopes SET memories = memories + ?, words = words + ?, checksum = checksum + ? WHERE number = ?",
            [(len(lengths), sum(lengths), COUNTED * len(lengths), scope) for scope, lengths in sizes.items()],
        )

    def remove(self, connection: Connection, entries: Iterable[Entry]) -> int:
        """Takes the words of memories out of the index, and those that a scope no longer holds; how many postings."""
        postings: list[tuple[int, str, int]] = []
        sizes: list[tuple[int, int]] = []
        for memory, scope, content in entries:
            tokens = terms(content)
            postings += [(scope, word, memory) for word in set(tokens)]
            sizes.append((len(tokens), scope))
        postings.sort()
        keys = [(scope, word) for scope, word, _ in postings]
        removed = connection.executemany(
            "DELETE FROM postings WHERE word = (SELECT number FROM words WHERE scope = ? AND word = ?) AND memory = ?",
            postings,
        )
        connection.executemany("UPDATE words SET memories = memories - 1 WHERE scope = ? AND word = ?", keys)
        connection.executemany(
            "DELETE FROM words WHERE scope = ? AND word = ? AND memories = 0", list(dict.fromkeys(keys))
        )
        connection.executemany(
            f"UPDATE scopes SET memories = memories - 1, words = words - ?, checksum = checksum - {COUNTED} "  # noqa: S608
            "WHERE number = ?",
            sizes,
        )
        return int(removed.rowcount) if postings else 0

    def search(
        self, query: str, scopes: Sequence[int], top_k: int, faint: frozenset[str] = frozenset()
    ) -> list[tuple[int, float]]:
        """(number of a memory, score) of at most `top_k` memories in the scopes, best first; equal scores: newest.

        Lucene's BM25 (k1 = 1.5, b = 0.75) with the counts of these scopes together, each word of the query once, of a
        long query the 64 rarest. faint: words that weigh a fifth. Words are read from the rarest on, the faint ones
        last, until those that are left could bring no other memory among the best; they are looked up for what was
        found. So the ranking is exact, unless more than 10,000 postings come before that: then the best 256 memories
        (or `top_k`) so far get the scores of the other words.
        """
        if not scopes:
            return []
        marks = ",".join("?" * len(scopes))
        [(count, length)] = self._session.query(
            f"SELECT sum(memories), sum(words) FROM scopes WHERE number IN ({marks})",  # noqa: S608
            scopes,
        )
        if not count or not length:
            return []
        # The length's part of a word's weight in a memory: norm[0] + norm[1] * its length.
        norm = (K1 * (1 - B), K1 * B * count / length)
        frequencies = self._frequencies(query, scopes, marks, frozenset(map(stem, faint)))
        weights = [_weight(count, frequency) * (_FAINT if is_faint else 1.0) for is_faint, frequency, _ in frequencies]
        scores: dict[int, float] = {}
        read, settled = 0, False  # settled: nothing but what is in `scores` can be among the best
        for place, (_, frequency, numbers) in enumerate(frequencies):
            read += frequency
            if place and not settled and read > EXACT_POSTINGS:
                settled, scores = True, {memory: scores[memory] for memory in _best(scores, max(_CANDIDATES, top_k))}
            hopeful = _hopeful(scores, sum(weights[place:]), top_k)
            if hopeful is not None:
                settled, scores = True, hopeful
            for number in numbers:
                shares = self._shares(number, norm, frequency, list(scores) if settled else None)
                _add(scores, weights[place], shares, only_known=settled)
        return [(memory, scores[memory]) for memory in _best(scores, top_k)]

    def is_current(self) -> bool:
        """Whether the index was made with the tokenizer and stemmer of today."""
        return self._session.query("SELECT words FROM state") == [(_tokenizer_digest(),)]

    def rebuild(self, connection: Connection) -> None:
        """Makes the index again from all memories, inside a transaction."""
        self._session.lock_out()
        connection.execute("DELETE FROM postings")
        connection.execute("DELETE FROM words")
        connection.execute("UPDATE scopes SET memories = 0, words = 0, checksum = checksum & ?", (COUNTED - 1,))
        for page in self._session.pages("scope, content"):
            self.add(connection, page)
        connection.execute("UPDATE state SET words = ?", (_tokenizer_digest(),))

    def _frequencies(self, query: str, scopes: Sequence[int], marks: str, faint: frozenset[str]) -> list[_Word]:
        """The words of the query that are known: the rarest first, and the faint ones (by their stems) last."""
        rows = self._session.lookup(
            f"SELECT word, number, memories FROM words WHERE scope IN ({marks}) AND word IN",  # noqa: S608
            sorted(set(terms(query))),
            scopes,
        )
        postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for word, number, memories in rows:
            postings[word].append((memories, number))
        # Sorted, because float sums depend on their order and a query's result must not.
        totals = sorted((word in faint, sum(memories for memories, _ in postings[word]), word) for word in postings)
        chosen = totals[:_MOST_WORDS]
        return [(is_faint, total, [number for _, number in postings[word]]) for is_faint, total, word in chosen]

    def _shares(
        self, number: int, norm: tuple[float, float], frequency: int, among: Sequence[int] | None
    ) -> list[tuple[int, float]]:
        """Memories that hold a word, by its number, each with the share of the word's weight that it gets.

        among: only these have to be there; frequency: in how many memories it is.
        """
        part = "SELECT memory, times / (times + ? + ? * length) FROM postings WHERE word = ?"
        if among is not None and frequency > min(_SEEK * len(among), EXACT_POSTINGS):
            return self._session.lookup(f"{part} AND memory IN", among, (*norm, number))
        return self._session.query(f"{part} ORDER BY memory DESC LIMIT ?", (*norm, number, EXACT_POSTINGS))


def _weight(count: int, frequency: int) -> float:
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


def _add(scores: dict[int, float], weight: float, shares: Iterable[tuple[int, float]], only_known: bool) -> None:
    """Adds shares of a word's weight to scores; only_known: of the memories that have one."""
    for memory, share in shares:
        if memory in scores:
            scores[memory] += weight * share
        elif not only_known:
            scores[memory] = weight * share


def _hopeful(scores: dict[int, float], left: float, top_k: int) -> dict[int, float] | None:
    """The scores that can be among the best `top_k` if none rises by more than `left`; None where others can, too."""
    if len(scores) < top_k or max(scores.values()) <= left:
        return None
    least = _least(np.fromiter(scores.values(), np.float64, len(scores)), top_k)
    if least <= left:
        return None
    return {memory: score for memory, score in scores.items() if score + left >= least}


def _best(scores: dict[int, float], top_k: int) -> list[int]:
    """The `top_k` memories with the largest scores, best first; of equal ones the newest."""
    memories = np.fromiter(scores, np.int64, len(scores))
    values = np.fromiter(scores.values(), np.float64, len(scores))
    if len(values) > top_k:
        kept = values >= _least(values, top_k)
        memories, values = memories[kept], values[kept]
    order = np.lexsort((-memories, -values))[:top_k]
    return [int(memory) for memory in memories[order]]


def _least(values: np.ndarray, top_k: int) -> float:
    """The `top_k`th largest of at least as many values, float64 [n]."""
    return float(np.partition(values, -top_k)[-top_k])


def _tokenizer_digest() -> str:
    """A digest of the terms that tokenizer and stemmer make of a probe; another one asks for a new index."""
    return hashlib.sha256("\n".join(terms(_PROBE)).encode()).hexdigest()[:16]


def terms(text: str) -> list[str]:
    """The stems of a text's words; "lives" is told of people who live somewhere, hardly ever of lives."""
    return [stem("live" if word == "lives" else word) for word in words(text)]
