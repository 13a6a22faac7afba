"""Vectors of new memories, made in a thread a moment after they were added."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

from ewe.longterm.store import MemoryStore
from ewe.retrieval.encoders import Encoder

_GATHER_S = 0.2  # what is added one after the other is encoded together
_log = logging.getLogger("ewe.longterm")


class _ClosedError(Exception):
    pass


class BackgroundEmbedding:
    """Gives the memories of a store vectors, soon after `start` was called; safe to call from several threads."""

    def __init__(self, store: MemoryStore, encoder: Encoder) -> None:
        self._store, self._encoder = store, encoder
        self._waiting, self._closed = threading.Event(), threading.Event()
        self._open = threading.Lock()  # held while work is submitted, which a closed executor refuses
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ewe-memory-vectors")

    def start(self) -> None:
        """Has every memory that has no vector given one; returns at once."""
        with self._open:
            if not self._waiting.is_set() and not self._closed.is_set():
                self._waiting.set()
                self._thread.submit(self._embed)

    def close(self) -> None:
        """Waits for the vectors that are being made, 256 at most; the others are made when the store is open again."""
        with self._open:
            self._closed.set()
        self._thread.shutdown(cancel_futures=True)

    def _embed(self) -> None:
        self._closed.wait(_GATHER_S)
        self._waiting.clear()
        try:
            self._store.embeddings.embed(self._encoder, progress=self._go_on)
        except _ClosedError:
            pass
        except Exception:  # the memories are there, and found by their words
            _log.warning("vectors of memories failed", exc_info=True)

    def _go_on(self, done: int, total: int) -> None:
        if self._closed.is_set():
            raise _ClosedError
