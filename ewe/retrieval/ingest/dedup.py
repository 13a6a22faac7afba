"""Leaving out passages that are in the store already, word for word or nearly so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ewe.retrieval.ingest.minhash import are_similar, normalized
from ewe.retrieval.ingest.work import Prepared
from ewe.retrieval.store import PassageStore

# Passages are held by number, which no later passage gets: what was removed is simply no longer found.
_TABLE = (
    "CREATE TABLE IF NOT EXISTS ingest_keys (key INTEGER, passage INTEGER, PRIMARY KEY (key, passage)) WITHOUT ROWID"
)
_ASKED_AT_ONCE = 500
_COMPARED = 16  # passages under one key that are compared; more of them under one key say the same anyway


class Deduplicator:
    """Finds the passages to come that duplicate what is there, or each other. Use inside a transaction."""

    def __init__(self, store: PassageStore) -> None:
        self._store = store
        with store.transaction() as connection:
            connection.execute(_TABLE)

    def unique(self, prepared: Sequence[Prepared]) -> list[Prepared]:
        """Those that duplicate nothing, in order; of several duplicates the first stays."""
        there = self._stored(key for item in prepared for key in item.keys)
        kept = []
        for item in prepared:
            seen = [text for key in item.keys for text in there[key][:_COMPARED]]
            if not any(_same(item, text) for text in dict.fromkeys(seen)):
                kept.append(item)
                for key in item.keys:
                    there[key].append(item.passage.text)
        return kept

    def remember(self, rows: Iterable[tuple[int, Prepared]]) -> None:
        """Makes passages known that are now in the store, with their row numbers."""
        with self._store.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO ingest_keys VALUES (?, ?)",
                ((key, row) for row, item in rows for key in item.keys),
            )

    def _stored(self, keys: Iterable[int]) -> defaultdict[int, list[str]]:
        """The texts in the store under each key."""
        wanted = list(dict.fromkeys(keys))
        pairs: list[tuple[int, int]] = []
        for first in range(0, len(wanted), _ASKED_AT_ONCE):
            part = wanted[first : first + _ASKED_AT_ONCE]
            marks = ",".join("?" * len(part))
            pairs += self._store.query(f"SELECT key, passage FROM ingest_keys WHERE key IN ({marks})", part)  # noqa: S608
        texts = dict(self._store.lookup("rowid, text", "rowid", sorted({row for _, row in pairs})))
        found: defaultdict[int, list[str]] = defaultdict(list)
        for key, row in sorted(pairs):
            if row in texts:
                found[key].append(texts[row])
        return found


def _same(item: Prepared, text: str) -> bool:
    """Whether a passage that shares a key with another of this text duplicates it."""
    if normalized(item.passage.text) == normalized(text):
        return True
    return len(item.keys) > 1 and are_similar(item.passage.text, text)
