"""What is done to a block apart from writing: read it, cut it, and find the keys of its passages.

It needs no store, so that several processes can do it, with the results in the order of the blocks.
"""

import os
import signal
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Literal, TypeVar

from ewe.errors import DatastoreError
from ewe.retrieval.ingest.chunker import Chunker, ChunkRules
from ewe.retrieval.ingest.dedup import exact_key, near_keys
from ewe.retrieval.ingest.documents import Block, Document, Problem, ReadOptions
from ewe.retrieval.ingest.readers import read_documents
from ewe.types import Passage

Dedup = Literal["near", "exact", "off"]
"""Which duplicates are left out: near ones too, equal passages only, or none."""


@dataclass(frozen=True, slots=True)
class WorkRules:
    """Everything that decides which passages a block gives; veracity: by source, "*" for the others."""

    read: ReadOptions
    chunks: ChunkRules
    dedup: Dedup = "near"
    veracity: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A passage and the keys under which its duplicates would be found, the exact one first."""

    passage: Passage
    keys: tuple[int, ...]


@dataclass(slots=True)
class Outcome:
    """What a part of a file gave; size: bytes of the file that are done with it. empty counts documents without text.

    ends: nothing of the file comes after it.
    """

    prepared: list[Prepared] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    empty: int = 0
    size: int = 0
    ends: bool = False


class Worker:
    """Turns blocks into passages; equal blocks give equal passages, in whatever process."""

    def __init__(self, rules: WorkRules) -> None:
        self._rules = rules
        self._chunker = Chunker(rules.chunks)

    def __call__(self, block: Block) -> Outcome:
        """The passages, problems and empty texts of a block."""
        outcome = Outcome(size=block.size)
        for document in read_documents(block, self._rules.read):
            if document is None:
                outcome.empty += 1
            elif isinstance(document, Problem):
                outcome.problems.append(document)
            else:
                outcome.prepared += [Prepared(passage, self._keys(passage)) for passage in self._passages(document)]
        return outcome

    def _passages(self, document: Document) -> Iterator[Passage]:
        chunks = self._chunker.chunks(document)
        table = self._rules.veracity
        veracity = document.veracity
        if veracity is None:
            veracity = table.get(document.source, table.get("*", 1.0))
        for number, chunk in enumerate(chunks, 1):
            yield Passage(
                id=document.id if len(chunks) == 1 else f"{document.id}#{number}",
                text=document.text[chunk.start : chunk.end],
                title=chunk.mark.title or document.title,
                source=document.source,
                url=chunk.mark.url or document.url,
                date=document.date,
                veracity=veracity,
                metadata=document.metadata,
            )

    def _keys(self, passage: Passage) -> tuple[int, ...]:
        if self._rules.dedup == "off":
            return ()
        exact = exact_key(passage.title, passage.text)
        return (exact, *near_keys(passage.title, passage.text)) if self._rules.dedup == "near" else (exact,)


T = TypeVar("T")
_AHEAD = 4  # blocks per process that are read or finished and not yet taken
_worker: Worker | None = None


def work_in_order(
    items: Iterator[tuple[T, Block | Outcome]], rules: WorkRules, processes: int
) -> Iterator[tuple[T, Outcome]]:
    """Each item with the outcome of its block, or the one that it came with, in order.

    At most a few blocks per process are held. Raises DatastoreError if a process dies.
    """
    if processes == 1:
        worker = Worker(rules)
        for item, block in items:
            yield item, worker(block) if isinstance(block, Block) else block
        return
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _begin, (rules,))
    waiting: deque[tuple[T, Future[Outcome] | Outcome]] = deque()
    try:
        for item, block in items:
            waiting.append((item, pool.submit(_work, block) if isinstance(block, Block) else block))
            if len(waiting) > _AHEAD * processes:
                yield _result(*waiting.popleft())
        while waiting:
            yield _result(*waiting.popleft())
    except BrokenProcessPool as error:
        raise DatastoreError(
            "a worker process died, for lack of memory perhaps: run again to go on, with fewer --workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _result(item: T, outcome: Future[Outcome] | Outcome) -> tuple[T, Outcome]:
    return item, outcome.result() if isinstance(outcome, Future) else outcome


def _begin(rules: WorkRules) -> None:
    """In each process: leaves interrupts to the parent, and ends when the parent is killed."""
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    _worker = Worker(rules)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(block: Block) -> Outcome:
    assert _worker is not None
    return _worker(block)
