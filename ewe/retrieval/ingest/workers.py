"""Work on blocks in several processes, with the results in the order of the blocks."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import TypeVar

from ewe.errors import DatastoreError
from ewe.retrieval.ingest.documents import Block
from ewe.retrieval.ingest.work import Outcome, Worker, WorkRules

T = TypeVar("T")
_AHEAD = 4  # blocks per process that are read or finished and not yet taken
_worker: Worker | None = None


def work_in_order(
    items: Iterator[tuple[T, Block | None]], rules: WorkRules, processes: int
) -> Iterator[tuple[T, Outcome | None]]:
    """Each item with the outcome of its block (None without a block), in order.

    At most a few blocks per process are held. Raises DatastoreError if a process dies.
    """
    if processes == 1:
        worker = Worker(rules)
        for item, block in items:
            yield item, worker(block) if block is not None else None
        return
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _begin, (rules,))
    waiting: deque[tuple[T, Future[Outcome] | None]] = deque()
    try:
        for item, block in items:
            waiting.append((item, pool.submit(_work, block) if block is not None else None))
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


def _result(item: T, future: Future[Outcome] | None) -> tuple[T, Outcome | None]:
    return item, future.result() if future is not None else None


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
