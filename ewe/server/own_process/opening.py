"""Documents of a request that are being indexed, a part at a time as the other process asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from ewe.errors import JudgeError
from ewe.server.engine_client.text_verifiers import InParts, TimedVerifier


class Opening:
    """A verifier that is made in a thread of its own; in_parts: by calls of `go_on`, else without a rest."""

    def __init__(self, make: Callable[[InParts], TimedVerifier], in_parts: bool) -> None:
        self._made: Future[TimedVerifier] = Future()
        self._begun, self._ended = threading.Semaphore(0), threading.Semaphore(0)  # parts
        self._is_closed = False
        around: InParts = self._in_parts if in_parts else iter
        threading.Thread(target=self._make, args=(make, around), name="ewe-documents", daemon=True).start()

    def go_on(self) -> bool:
        """Has the next part done; whether it was the last one. Raises what making the verifier raises."""
        self._begun.release()
        self._ended.acquire()
        return self._made.done() and self.verifier() is not None

    def verifier(self) -> TimedVerifier:
        """The verifier, which without parts is waited for; raises what making it raises."""
        return self._made.result()

    def close(self) -> None:
        """Ends the making, or the verifier; calls under way fail."""
        self._is_closed = True
        self._begun.release()
        self._made.add_done_callback(_close)

    def _make(self, make: Callable[[InParts], TimedVerifier], around: InParts) -> None:
        try:
            self._made.set_result(make(around))
        except Exception as error:  # told to whoever asked
            self._made.set_exception(error)
        self._ended.release()

    def _in_parts(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self._begun.acquire()
            if self._is_closed:
                raise JudgeError("the documents have been closed")
            yield item
            self._ended.release()


def _close(made: Future[TimedVerifier]) -> None:
    if made.exception() is None:
        made.result().close()
