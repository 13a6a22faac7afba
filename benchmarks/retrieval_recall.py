"""How often the gold evidence is among the first five passages: BM25, dense and hybrid on public sets.

FEVER: claims against all evidence texts as one pool. XQuAD: questions against all paragraphs. Fool-Me-Twice: claims
against all sentences that were shown to its players, each under the title of its page; the gold ones are those that
make up the evidence. Recall is the share of a query's gold passages among the five, averaged over queries; for FEVER,
where one claim may stand beside several evidence texts, one of them is enough. The encoder is the installed
all-MiniLM-L6-v2 unless --encoder names another.

--sweep prints recall for other constants of the rank fusion, on every second query; the figures then are those of the
other half, so that a choice made on the one can be seen on the other.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.common import ROOT, parse_arguments, report
from ewe.retrieval.bm25 import BM25Retriever
from ewe.retrieval.dense import DenseRetriever
from ewe.retrieval.encoders import SentenceEncoder
from ewe.retrieval.hybrid import LEXICAL_AND_DENSE, HybridRetriever, fuse
from ewe.types import Passage, ScoredPassage
from ewe.types.protocols import Retriever

_DEPTH = 5
_SWEEP_DEPTHS = (20, 100)
_SWEEP_OFFSETS = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 60.0)
_SWEEP_WEIGHTS = ((1.0, 1.0), (1.0, 1.5), (1.0, 2.0), (1.0, 3.0), (2.0, 1.0))


@dataclass(frozen=True, slots=True)
class Task:
    """A pool, and queries with the ids of their gold passages; any: whether one of them is enough."""

    name: str
    passages: list[Passage]
    queries: list[tuple[str, frozenset[str]]]
    any: bool = False

    def half(self, which: int) -> Task:
        """The task with every second query."""
        return Task(self.name, self.passages, self.queries[which::2], self.any)

    def recall(self, found: Sequence[Sequence[ScoredPassage]]) -> float:
        """Mean share of gold passages among the first five."""
        shares = []
        for row, (_, gold) in zip(found, self.queries, strict=True):
            hits = len(gold & {scored.passage.id for scored in row[:_DEPTH]})
            shares.append(float(hits > 0) if self.any else hits / len(gold))
        return sum(shares) / len(shares)


def read_fever(folder: Path) -> Task:
    """One query per distinct claim."""
    pool: dict[str, str] = {}
    gold: dict[str, set[str]] = {}
    for row in _read(folder / "fever" / "claims.jsonl"):
        evidence = pool.setdefault(row["evidence"], f"fever-{len(pool)}")
        gold.setdefault(row["claim"], set()).add(evidence)
    passages = [Passage(key, text) for text, key in pool.items()]
    return Task("fever", passages, [(claim, frozenset(ids)) for claim, ids in gold.items()], any=True)


def read_xquad(folder: Path) -> Task:
    """One query per question."""
    path = folder / "xquad_en" / "xquad.en.json"
    _require(path)
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    passages: list[Passage] = []
    queries: list[tuple[str, frozenset[str]]] = []
    for paragraph in itertools.chain.from_iterable(article["paragraphs"] for article in articles):
        passages.append(Passage(f"xquad-{len(passages)}", paragraph["context"]))
        queries += [(item["question"], frozenset({passages[-1].id})) for item in paragraph["qas"]]
    return Task("xquad", passages, queries)


def read_fool_me_twice(folder: Path) -> Task:
    """One query per claim."""
    pool: dict[tuple[str, str], str] = {}
    queries = []
    for row in _read(folder / "fool_me_twice" / "claims.jsonl"):
        keys = {text: pool.setdefault((row["page"], text), f"fm2-{len(pool)}") for text in row["retrieved"]}
        gold = frozenset(key for text, key in keys.items() if text in row["evidence"])
        queries.append((row["claim"], gold))
    return Task("fool_me_twice", [Passage(key, text, page) for (page, text), key in pool.items()], queries)


def made_up(count: int) -> Task:
    """Small made-up passages, to see that the script runs."""
    chosen = random.Random(0)
    texts = [" ".join(chosen.choices(["river", "song", "king", "metal", "bread", "star"], k=8)) for _ in range(count)]
    passages = [Passage(str(number), text) for number, text in enumerate(texts)]
    return Task("made_up", passages, [(passage.text, frozenset({passage.id})) for passage in passages])


def measure(task: Task, encoder: SentenceEncoder) -> dict[str, float]:
    """Recall of each retriever, its time per query in a batch, and the time to encode the pool."""
    bm25 = BM25Retriever(task.passages)
    start = time.perf_counter()
    dense = DenseRetriever(task.passages, encoder)
    figures = {"encoded_passages_per_s": len(task.passages) / (time.perf_counter() - start)}
    retrievers: dict[str, Retriever] = {
        "bm25": bm25,
        "dense": dense,
        "hybrid": HybridRetriever([bm25, dense], LEXICAL_AND_DENSE),
    }
    for name, retriever in retrievers.items():
        start = time.perf_counter()
        found = retriever.retrieve([query for query, _ in task.queries], _DEPTH)
        figures[f"{name}_ms_per_query"] = (time.perf_counter() - start) / len(task.queries) * 1e3
        figures[f"{name}_recall_at_5"] = task.recall(found)
    better = max(figures["bm25_recall_at_5"], figures["dense_recall_at_5"])
    figures["hybrid_minus_better"] = figures["hybrid_recall_at_5"] - better
    return {"passages": len(task.passages), "queries": len(task.queries), **figures}


def sweep(tasks: Sequence[Task], encoder: SentenceEncoder) -> None:
    """Prints recall of the better retriever alone, then of the fusion under each choice of constants."""
    rankings = []
    for task in tasks:
        queries = [query for query, _ in task.queries]
        pair: list[Retriever] = [BM25Retriever(task.passages), DenseRetriever(task.passages, encoder)]
        rankings.append([retriever.retrieve(queries, max(_SWEEP_DEPTHS)) for retriever in pair])
    alone = [[task.recall(rows) for rows in ranking] for task, ranking in zip(tasks, rankings, strict=True)]
    for place, name in enumerate(("bm25", "dense")):
        print(f"{name:34}", *(f"{recalls[place]:.4f}" for recalls in alone))
    for depth, offset, weights in itertools.product(_SWEEP_DEPTHS, _SWEEP_OFFSETS, _SWEEP_WEIGHTS):
        found = []
        for task, (first, second) in zip(tasks, rankings, strict=True):
            pairs = zip(first, second, strict=True)
            found.append(task.recall([fuse([one[:depth], two[:depth]], weights, offset) for one, two in pairs]))
        least = min(value - max(recalls) for value, recalls in zip(found, alone, strict=True))
        print(f"depth {depth:3} k {offset:4g} weights {weights}", *(f"{value:.4f}" for value in found), f"{least:+.4f}")


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    names = {"BM25": "bm25", "dense": "dense", "hybrid": "hybrid"}
    recalls = {title: plots.found(document["figures"], rf"(.+): {name}_recall_at_5") for title, name in names.items()}
    return [plots.Panel("Gold evidence among the first five passages", "", "recall", recalls)]


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the public sets")
        parser.add_argument("--encoder", help="another sentence encoder: a hub id or a folder")
        parser.add_argument("--sweep", action="store_true", help="print recall for other constants of the fusion")
        plots.add_option(parser)

    arguments = parse_arguments(__doc__, add)
    readers = (read_fever, read_xquad, read_fool_me_twice)
    tasks = [made_up(30)] if arguments.smoke else [read(arguments.data) for read in readers]
    encoder = SentenceEncoder(arguments.encoder, device=arguments.device)
    if arguments.sweep:
        sweep([task.half(0) for task in tasks], encoder)
        tasks = [task.half(1) for task in tasks]
    table = {task.name: measure(task, encoder) for task in tasks}
    settings = {"encoder": encoder.name, "queries": "odd half" if arguments.sweep else "all"}
    figures = {f"{name}: {key}": round(value, 4) for name, column in table.items() for key, value in column.items()}
    plots.draw(arguments.plot, panels, report("retrieval_recall", arguments, settings, figures))


def _read(path: Path) -> Collection[dict[str, Any]]:
    _require(path)
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def _require(path: Path) -> None:
    if not path.exists():
        sys.exit(f"{path} is missing: --data names the folder of the public sets (fever, xquad_en, fool_me_twice)")


if __name__ == "__main__":
    main()
