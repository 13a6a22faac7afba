"""What long-term memory costs with a million memories: writing them, and finding ten by words, by vectors, by both.

Memories of 8 to 20 made-up words whose frequencies fall as in natural text (Zipf), each with a vector of 384 numbers
from 5,000 clusters; queries are six consecutive words of a memory with a vector from the same clusters. Twice: all of
them shared, in one scope, and 1,000 for each of many users, where a query sees one user's and nothing else. Times are
medians of single searches in one process that only reads, after a warm-up, with the ten memories read; encoding is left
out (benchmarks/retrieval_speed.py measures it). Recall is the share of the exact ten nearest vectors that are found.
Written in batches of 1,000, each on the disk before the next. `after_deletes_s` is the time of a scrub.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks import plots
from benchmarks.common import parse_arguments, report
from benchmarks.retrieval_speed import Words, clustered, milliseconds
from ewe.longterm.memory_search import MemorySearch
from ewe.longterm.records import Memory, Scope
from ewe.longterm.store import MemoryStore

_PER_USER = 1000
_TOP_K = 10
_QUERY_WORDS = 6
_DELETED = 100
_MIB = 1 << 20


class Placed:
    """An encoder whose texts name their vectors: "m17 ..." is the 17th stored one, "q17 ..." the 17th that is asked."""

    name = "clustered vectors"

    def __init__(self, stored: np.ndarray, asked: np.ndarray) -> None:
        self._stored, self._asked = stored, asked
        self.dimension = stored.shape[1]

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension]; what is no memory of the benchmark gets the first vector."""
        return self._stored[[int(text.split(" ", 1)[0][1:]) if text[0] == "m" else 0 for text in texts]]

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension]."""
        return self._asked[[int(text.split(" ", 1)[0][1:]) for text in texts]]


def memories(texts: Sequence[str], users: int) -> Iterator[Memory]:
    """One per text; shared without users, else dealt out to them in turn."""
    for number, text in enumerate(texts):
        scope = Scope(f"user{number % users}") if users else Scope()
        yield Memory(f"m{number}", f"m{number} {text}", scope=scope)


def measure(
    folder: Path, texts: Sequence[str], encoder: Placed, queries: Sequence[str], users: int, repeats: int
) -> dict[str, float]:
    """Filling a store, then searching it."""
    figures = {}
    with MemoryStore.create(folder) as store:
        stream, spent = memories(texts, users), 0.0
        while batch := list(islice(stream, 1000)):  # made up outside the time that counts
            start = time.perf_counter()
            store.add(batch)
            spent += time.perf_counter() - start
        figures["added_per_s"] = len(texts) / spent
        start = time.perf_counter()
        store.embeddings.embed(encoder)
        figures["vectors_kept_per_s"] = len(texts) / (time.perf_counter() - start)
    figures["mib_on_disk"] = sum(path.stat().st_size for path in folder.iterdir()) / _MIB
    scope = Scope("user0") if users else Scope()
    with MemoryStore.open(folder) as store:
        for name, search in (("words", MemorySearch(store)), ("both", MemorySearch(store, encoder, -1.0))):
            figures |= {f"{name}_{key}": value for key, value in timed(search, queries, scope, repeats).items()}
        figures["vectors_recall_at_10"] = recall(store, encoder, queries, scope)
    with MemoryStore.open(folder, read_only=False) as store:
        start = time.perf_counter()
        store.delete(scope, [f"m{number * max(users, 1)}" for number in range(_DELETED)], at=1.0, reason="benchmark")
        figures["deleted_per_s"] = _DELETED / (time.perf_counter() - start)
        start = time.perf_counter()
        store.scrub()
        figures["after_deletes_s"] = time.perf_counter() - start
    return figures


def timed(search: MemorySearch, queries: Sequence[str], scope: Scope, repeats: int) -> dict[str, float]:
    """Median and 95th percentile of one search at a time."""
    return milliseconds(lambda query: search.search([query], [scope], _TOP_K), queries, repeats)


def recall(store: MemoryStore, encoder: Placed, queries: Sequence[str], scope: Scope) -> float:
    """The share of the ten nearest vectors of a scope that a search by vectors finds."""
    numbers = np.array([int(memory.id[1:]) for memory in store.scan([scope])])
    vectors = encoder.encode_passages([f"m{number}" for number in numbers])
    found = total = 0
    for vector in encoder.encode_queries(queries[:50]):
        exact = {f"m{number}" for number in numbers[np.argsort(-(vectors @ vector))[:_TOP_K]]}
        hits = store.embeddings.search(vector, store.scope_numbers([scope]), _TOP_K)
        ids = {memory.id for memory in store.rows([number for number, _ in hits], [scope]).values()}
        found += len(ids & exact)
        total += len(exact)
    return found / total


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    figures, owners = document["figures"], ("shared", "users")

    def bars(owner: str, ending: str) -> dict[str, float]:
        found = plots.found(figures, rf"{owner}: (\w+)_{ending}")
        return {name.replace("_", " "): value for name, value in found.items()}

    return [
        plots.Panel(
            "One recall (by words, by words and vectors)",
            "",
            "milliseconds",
            {owner: bars(owner, "ms") for owner in owners},
        ),
        plots.Panel(
            "Changing the store",
            "",
            "memories per second",
            {owner: bars(owner, "per_s") for owner in owners},
        ),
    ]


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        plots.add_option(parser)
        parser.add_argument("--memories", type=int, default=1_000_000, help="how many, of each sort")
        parser.add_argument("--queries", type=int, default=200, help="how many searches of each sort")
        parser.add_argument("--folder", type=Path, help="where to put 5 GB for a million memories (default: /tmp)")

    arguments = parse_arguments(__doc__, add)
    count, asked = (600, 10) if arguments.smoke else (arguments.memories, arguments.queries)
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        texts = Words(min(300_000, 10 * count)).queries(count)
        encoder = Placed(*clustered(folder, count, asked))
        table = {}
        for name, users in (("shared", 0), ("users", max(1, count // _PER_USER))):
            places = np.random.default_rng(2).integers(0, count // max(1, users), asked) * max(1, users)
            queries = [f"q{i} " + " ".join(texts[place].split()[:_QUERY_WORDS]) for i, place in enumerate(places)]
            table[name] = measure(folder / name, texts, encoder, queries, users, arguments.repeats)
            shutil.rmtree(folder / name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    settings = {"memories": count, "queries": asked, "top_k": _TOP_K, "per_user": min(count, _PER_USER)}
    figures = {f"{name}: {key}": round(value, 3) for name, column in table.items() for key, value in column.items()}
    document = report("longterm_store", arguments, settings, figures)
    plots.draw(arguments.plot, panels, document)


if __name__ == "__main__":
    main()
