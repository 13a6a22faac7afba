"""Whether a store outside the process finds what the embedded datastore finds: the share of the same ten best passages.

Passages are three sentences each, drawn with a fixed seed from the evidence of FEVER and Fool-Me-Twice; queries are
claims of both. The embedded side is exact: BM25, and a flat index. Vectors are sums of one fixed random vector per
word, weighted by the word's rarity and of unit length: an encoder's would take hours on a CPU for as many passages.
The store is Milvus Lite in a folder of its own, or what --address names; its collection or index must not exist.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import ROOT, parse_arguments, report
from benchmarks.retrieval_recall import Task, made_up, read_fever, read_fool_me_twice
from ewe.config import FilterConfig
from ewe.retrieval.bm25 import BM25Retriever
from ewe.retrieval.datastore import PassageList
from ewe.retrieval.dense import DenseRetriever
from ewe.retrieval.hybrid import LEXICAL_AND_DENSE, fuse
from ewe.retrieval.vector_stores.connect import connect
from ewe.retrieval.vector_stores.push import push
from ewe.retrieval.vector_stores.stored_retrievers import StoredBM25, StoredDense, metadata_of
from ewe.text.words import words
from ewe.types import Passage, ScoredPassage
from ewe.types.protocols import Retriever

Ranking = list[list[ScoredPassage]]  # per query, best first

_TOP_K, _DEPTH = 10, 100  # what is compared; what the hybrid retriever fuses
_BATCH = 5  # queries at a time: Milvus Lite searches sparse vectors in Python
_SENTENCES = 3


class ProjectionEncoder:
    """Random projections of word counts. texts: what the rarity of words is learned from."""

    name, dimension = "random projection", 384

    def __init__(self, texts: Sequence[str]) -> None:
        counts = Counter(word for text in texts for word in dict.fromkeys(words(text)))  # a set has no fixed order
        self._place = {word: place for place, word in enumerate(counts)}
        rarity = np.array([math.log(len(texts) / count) + 1e-3 for count in counts.values()], dtype=np.float32)
        drawn = np.random.default_rng(0).standard_normal((len(counts), self.dimension), dtype=np.float32)
        self._vectors = drawn * rarity[:, None]

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension], of unit length."""
        rows = [[self._place[word] for word in words(text) if word in self._place] for text in texts]
        found = np.stack([self._vectors[row].sum(axis=0) for row in rows]) + np.float32(1e-6)
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)

    encode_passages = encode_queries


def draw(tasks: Sequence[Task], count: int, queries: int) -> tuple[list[Passage], list[str]]:
    """Made-up passages of real sentences, and claims about some of them."""
    chosen = random.Random(0)
    sentences = [passage.text for task in tasks for passage in task.passages]
    passages = [Passage(f"p{number}", " ".join(chosen.sample(sentences, _SENTENCES))) for number in range(count)]
    asked = [query for task in tasks for query, _ in task.queries]
    return passages, chosen.sample(asked, min(queries, len(asked)))


def rank(lexical: Retriever, dense: Retriever, queries: Sequence[str]) -> dict[str, Ranking]:
    """Per retriever the ranked passages of every query; hybrid is what `HybridRetriever` makes of the two."""
    rankings: list[Ranking] = [[], []]
    for start in range(0, len(queries), _BATCH):
        for ranking, retriever in zip(rankings, (lexical, dense), strict=True):
            ranking += retriever.retrieve(queries[start : start + _BATCH], _DEPTH)
    hybrid = [fuse(rows, LEXICAL_AND_DENSE) for rows in zip(*rankings, strict=True)]
    return {"bm25": rankings[0], "dense": rankings[1], "hybrid": hybrid}


def agreement(found: Ranking, wanted: Ranking) -> dict[str, float]:
    """The mean share of the ten best that were wanted and are found, and how often the first is the same."""
    shares, firsts = [], []
    for rows in zip(found, wanted, strict=True):
        ids, expected = ([scored.passage.id for scored in row[:_TOP_K]] for row in rows)
        shares.append(len(set(ids) & set(expected)) / max(1, len(expected)))
        firsts.append(ids[:1] == expected[:1])
    return {"recall_at_10": float(np.mean(shares)), "same_first": float(np.mean(firsts))}


def measure(address: str, passages: Sequence[Passage], queries: Sequence[str]) -> dict[str, float]:
    """Pushes the passages twice, and compares what is found."""
    source, store = PassageList(passages), connect(address)
    encoder = ProjectionEncoder([passage.text for passage in passages])
    start = time.process_time()
    first = push(source, store, encoder)
    figures = {"pushed": first.pushed, "push_cpu_s": time.process_time() - start}
    figures["pushed_again"] = push(source, store, encoder).pushed
    dense = StoredDense(store, metadata_of(store), encoder, FilterConfig())
    there = rank(StoredBM25(store, FilterConfig()), dense, queries)
    here = rank(BM25Retriever(source), DenseRetriever(source, encoder, "flat"), queries)
    for name, found in there.items():
        figures |= {f"{name}: {key}": value for key, value in agreement(found, here[name]).items()}
    return figures


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the public sets")
        parser.add_argument("--address", help="an empty store, as `ewe index push` takes it (default: Milvus Lite)")
        parser.add_argument("--passages", type=int, default=100_000)
        parser.add_argument("--queries", type=int, default=200)

    arguments = parse_arguments(__doc__, add)
    tasks = [made_up(30)] if arguments.smoke else [read_fever(arguments.data), read_fool_me_twice(arguments.data)]
    passages, queries = draw(tasks, *((100, 5) if arguments.smoke else (arguments.passages, arguments.queries)))
    with tempfile.TemporaryDirectory() as folder:
        address = arguments.address or f"milvus+file:{folder}/stores.db/passages"
        figures = measure(address, passages, queries)
    settings = {"store": address.partition(":")[0], "passages": len(passages), "queries": len(queries)}
    report("stores", arguments, settings, {name: round(value, 4) for name, value in figures.items()})


if __name__ == "__main__":
    main()
