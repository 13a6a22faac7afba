"""What retrieval costs with a million passages: time per query, memory, and how fast indexes are built.

BM25 over a store on disk: passages of about 90 made-up words whose frequencies fall as in natural text (Zipf), queries
of 8 to 20 consecutive words of some passage, ten results read from the store. Dense: unit vectors of 384 numbers in
5,000 clusters that lie in 64 of the dimensions, queries from the same clusters; each kind of index is built as
`DenseRetriever` builds it, tuned to recall 0.95, and compared with the exact ten best. Times are medians of single
queries in one process, after a warm-up, rates those of all queries at once; encoding a query comes on top and is
measured alone. With --device cuda and a faiss for GPUs the same indexes are searched there, too. Memory: what the
process grew by while it opened the index and answered all queries, and the bytes on disk.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks import plots
from benchmarks.common import parse_arguments, report
from ewe.retrieval.bm25 import BM25Retriever
from ewe.retrieval.dense_index import DenseIndex
from ewe.retrieval.encoders import SentenceEncoder, builtin_encoder_path
from ewe.retrieval.store import PassageStore
from ewe.types import Passage

_DIMENSION, _LATENT, _CLUSTERS = 384, 64, 5000
_VOCABULARY = 300_000
_TOP_K = 10
_MIB = 1 << 20


class Words:
    """Made-up words whose frequencies fall with their rank, and passages and queries of them."""

    def __init__(self, size: int) -> None:
        syllables = [first + second for first in "bcdfghjklmnprstvz" for second in "aeiou"]
        base = len(syllables)
        spelled = []
        for number in range(size):
            word, rest = "", number
            while rest or not word:
                word, rest = word + syllables[rest % base], rest // base
            spelled.append(word)
        self._words = np.array(spelled)
        self._shares = np.cumsum(1 / np.arange(1, size + 1))
        self._shares /= self._shares[-1]

    def passages(self, count: int) -> Iterator[Passage]:
        """Passages of 60 to 120 words, the same ones every time."""
        random = np.random.default_rng(0)
        for number in range(count):
            yield Passage(f"p{number}", " ".join(self._draw(random, int(random.integers(60, 121)))))

    def queries(self, count: int) -> list[str]:
        """8 to 20 words each, as they stand in text."""
        random = np.random.default_rng(1)
        return [" ".join(self._draw(random, int(random.integers(8, 21)))) for _ in range(count)]

    def _draw(self, random: np.random.Generator, length: int) -> np.ndarray:
        return self._words[np.searchsorted(self._shares, random.random(length))]


def clustered(folder: Path, count: int, queries: int) -> tuple[np.ndarray, np.ndarray]:
    """float32 [count, 384] in a file and [queries, 384]: unit vectors around centres, with noise of half their size."""
    random = np.random.default_rng(0)
    basis = random.standard_normal((_LATENT, _DIMENSION), dtype=np.float32)
    centres = random.standard_normal((_CLUSTERS, _LATENT), dtype=np.float32)
    stored = np.memmap(folder / "vectors.f32", dtype=np.float32, mode="w+", shape=(count, _DIMENSION))

    def draw(size: int) -> np.ndarray:
        latent = centres[random.integers(0, _CLUSTERS, size)]
        latent = latent + 0.5 * random.standard_normal(latent.shape, dtype=np.float32)
        vectors = latent @ basis
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    for start in range(0, count, 50_000):
        stored[start : start + 50_000] = draw(min(50_000, count - start))
    return np.asarray(stored), draw(queries)


def milliseconds(function: Callable[[Any], object], queries: Sequence[Any], repeats: int) -> dict[str, float]:
    """Median and 95th percentile of single calls, after a tenth of them as a warm-up."""
    for query in queries[: max(1, len(queries) // 10)]:
        function(query)
    times = []
    for query in [*queries] * repeats:
        start = time.perf_counter()
        function(query)
        times.append((time.perf_counter() - start) * 1e3)
    return {"p50_ms": float(np.median(times)), "p95_ms": float(np.percentile(times, 95))}


def per_second(search: Callable[[Any], object], queries: Any) -> dict[str, float]:
    """Queries per second where all of them come at once, after a run that warms up."""
    search(queries)
    start = time.perf_counter()
    search(queries)
    return {"queries_per_s_at_once": len(queries) / (time.perf_counter() - start)}


def measure_bm25(folder: Path, count: int, queries: int, repeats: int) -> dict[str, float]:
    """A store of made-up passages, its index, and queries of it."""
    made = Words(min(_VOCABULARY, 10 * count))
    figures = {}
    with PassageStore.create(folder / "store") as store:
        passages = made.passages(count)
        spent = 0.0
        while batch := list(islice(passages, 10_000)):  # made up outside the time that counts
            start = time.perf_counter()
            store.add(batch)
            spent += time.perf_counter() - start
        figures["stored_passages_per_s"] = count / spent
        start = time.perf_counter()
        BM25Retriever(store)
        figures["indexed_passages_per_s"] = count / (time.perf_counter() - start)
    before = _resident()
    with PassageStore.open(folder / "store") as store:
        start = time.perf_counter()
        retriever = BM25Retriever(store)
        figures["open_s"] = time.perf_counter() - start
        asked = made.queries(queries)
        figures |= milliseconds(lambda query: retriever.retrieve([query], _TOP_K), asked, repeats)
        figures |= per_second(lambda several: retriever.retrieve(several, _TOP_K), asked)
        figures["memory_mib"] = (_resident() - before) / _MIB
        figures["index_mib_on_disk"] = _size(store.index_dir("bm25")) / _MIB
    return figures


def measure_exact(vectors: np.ndarray, queries: np.ndarray) -> tuple[dict[str, float], list[set[int]]]:
    """The exact search: its time for single queries, and per query what it finds."""
    flat = DenseIndex.build("flat", vectors, np.arange(len(vectors)))
    found = [set(positions.tolist()) for positions, _ in flat.search(queries, _TOP_K)]
    figures = milliseconds(lambda query: flat.search(query[None], _TOP_K), list(queries[:20]), 1)
    return figures | per_second(lambda several: flat.search(several, _TOP_K), queries), found


def measure_dense(
    kind: Any, vectors: np.ndarray, queries: np.ndarray, exact: list[set[int]], folder: Path, repeats: int
) -> dict[str, float]:
    """One kind of index: building, and searching it as it was tuned."""
    start = time.perf_counter()
    built = DenseIndex.build(kind, vectors, np.arange(len(vectors)))
    figures = {"indexed_vectors_per_s": len(vectors) / (time.perf_counter() - start)}
    path = folder / f"{kind}.faiss"
    built.save(path)
    del built
    before = _resident()
    index = DenseIndex.load(path)
    found = [set(index.search(query[None], _TOP_K)[0][0].tolist()) for query in queries]
    figures["recall_at_10"] = _recall(found, exact)
    figures["effort"] = index.effort
    figures |= milliseconds(lambda query: index.search(query[None], _TOP_K), list(queries), repeats)
    figures |= per_second(lambda several: index.search(several, _TOP_K), queries)
    figures["memory_mib"] = (_resident() - before) / _MIB
    figures["index_mib_on_disk"] = path.stat().st_size / _MIB
    return figures


def measure_gpu(path: Path, queries: np.ndarray, exact: list[set[int]], repeats: int) -> dict[str, float]:
    """An index in a file, copied to the first GPU (which the engine does not do) with the effort it was tuned to."""
    import faiss

    index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, faiss.read_index(str(path)))
    figures = milliseconds(lambda query: index.search(query[None], _TOP_K), list(queries), repeats)
    figures["recall_at_10"] = _recall([set(row.tolist()) for row in index.search(queries, _TOP_K)[1]], exact)
    return figures | per_second(lambda several: index.search(several, _TOP_K), queries)


def _recall(found: list[set[int]], exact: list[set[int]]) -> float:
    return sum(len(one & other) for one, other in zip(found, exact, strict=True)) / (_TOP_K * len(exact))


def _gpu_reason(device: str) -> str:
    """Why faiss is not measured on a GPU; empty if it can be."""
    if not device.startswith("cuda"):
        return "--device is not cuda"
    faiss = importlib.import_module("faiss")
    return "" if hasattr(faiss, "StandardGpuResources") else "this faiss uses no GPU (faiss-gpu-cu12 does)"


def measure_encoder(queries: int, repeats: int) -> dict[str, float]:
    """The installed encoder: one query (of 20 at most), and passages of about 90 words in batches (64 at most)."""
    made = Words(1000)
    encoder = SentenceEncoder(device="cpu")
    figures = milliseconds(lambda query: encoder.encode_queries([query]), made.queries(min(20, queries)), repeats)
    texts = [passage.text for passage in made.passages(min(64, queries))]
    start = time.perf_counter()
    encoder.encode_passages(texts)
    return figures | {"encoded_passages_per_s": len(texts) / (time.perf_counter() - start)}


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""

    def bars(name: str) -> dict[str, float]:
        return plots.found(document["figures"], rf"(\w+): {name}")

    passages = f"{document['settings']['passages']:,} passages"
    rates = {"queries": bars("queries_per_s_at_once")}
    times = {"half of them": bars("p50_ms"), "95 in 100": bars("p95_ms")}
    built = {"indexed": bars("indexed_(?:passages|vectors)_per_s"), "encoded": bars("encoded_passages_per_s")}
    return [
        plots.Panel(f"One query over {passages}", "", "milliseconds", times, log_values=True),
        plots.Panel("Many queries at once", "", "queries per second", rates, log_values=True),
        plots.Panel("Building the index", "", "passages or vectors per second", built, log_values=True),
    ]


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        plots.add_option(parser)
        parser.add_argument("--passages", type=int, default=1_000_000, help="how many, of each sort")
        parser.add_argument("--queries", type=int, default=200, help="how many, of each sort")
        parser.add_argument("--indexes", nargs="*", default=["ivf"], help="dense indexes: ivf, hnsw, pq, flat")
        parser.add_argument("--folder", type=Path, help="where to put 5 GB for a million passages (default: /tmp)")

    arguments = parse_arguments(__doc__, add)
    count, queries = (1000, 10) if arguments.smoke else (arguments.passages, arguments.queries)
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        table = {"bm25": measure_bm25(folder, count, queries, arguments.repeats)}
        shutil.rmtree(folder / "store")
        vectors, asked = clustered(folder, count, queries)
        table["flat"], exact = measure_exact(vectors, asked)
        no_gpu = _gpu_reason(arguments.device)
        for kind in [*(["flat"] if not no_gpu else []), *arguments.indexes]:
            table[kind] = measure_dense(kind, vectors, asked, exact, folder, arguments.repeats)
            if not no_gpu and kind != "hnsw":  # faiss has no graphs on GPUs
                table[f"{kind}_on_gpu"] = measure_gpu(folder / f"{kind}.faiss", asked, exact, arguments.repeats)
        print(f"-- faiss on a GPU: {no_gpu or 'measured'}")
        if builtin_encoder_path() is not None:
            table["encoder"] = measure_encoder(queries, arguments.repeats)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    settings = {"passages": count, "queries": queries, "top_k": _TOP_K, "dimension": _DIMENSION}
    figures = {f"{name}: {key}": round(value, 3) for name, column in table.items() for key, value in column.items()}
    plots.draw(arguments.plot, panels, report("retrieval_speed", arguments, settings, figures))


def _resident() -> int:
    return int(psutil.Process().memory_info().rss)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
