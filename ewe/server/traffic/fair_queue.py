"""Work that takes long, done in threads beside the event loop: tenants take turns, and each has a queue of its own."""

import asyncio
import sys
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from starlette.types import Scope

from ewe.server.http.error_responses import RefusedError

_T = TypeVar("_T")

LARGE = 1 << 16
"""Bytes of JSON or text; what is smaller is parsed, written or looked through faster than a thread takes it over."""

_SWITCH_S = 5e-4  # A step of the engine lets go of the interpreter at every operation of torch: then it waits so long.


def take_short_turns() -> None:
    """Has the threads of this process change places more often, so that work beside the engine does not hold it up."""
    sys.setswitchinterval(_SWITCH_S)


def tenant_of(scope: Scope) -> str:
    """Whose turn it is where several wait: the key's by its name, or without keys the address's; batches' apart."""
    client = scope.get("client")
    return holder_of(scope) or (client[0] if client else "")


def holder_of(scope: Scope) -> str:
    """Whose places a request takes: its key's, or those of the key's batches, which take none from other requests."""
    state = scope.get("state", {})
    return f"{state.get('key', '')}{' (batches)' if state.get('in_batch') else ''}"


class _Job(NamedTuple):
    work: Callable[[], Any]
    answer: asyncio.Future[Any]


class FairQueue:
    """Threads for one kind of work; used on one event loop at a time.

    what: the kind, as refusals name it. threads: works that are done at once. most_waiting: of one tenant (None: as
    many as come). A tenant begins another work only while more threads are free than it has, so that whoever comes new
    finds one free however long the works of others take.
    """

    def __init__(self, what: str, threads: int, most_waiting: int | None = None) -> None:
        self._what = what
        self._most_waiting = most_waiting
        self._free = threads
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Job]] = {}  # whose turn is next comes first
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"ewe-server-{what.replace(' ', '-')}")

    def submit(self, tenant: str, work: Callable[[], _T]) -> asyncio.Future[_T]:
        """What the work will give; cancelled while it waits, it is not begun. Raises RefusedError for a full queue."""
        waiting = self._waiting.setdefault(tenant, deque())
        if self._most_waiting is not None and len(waiting) >= self._most_waiting:
            message = (
                f"{len(waiting)} requests of this key wait for {self._what} (server.max_queued_per_key); try again "
                "when one of them is answered"
            )
            raise RefusedError(429, message, code="too_many")
        job = _Job(work, asyncio.get_running_loop().create_future())
        waiting.append(job)
        job.answer.add_done_callback(partial(self._leave, tenant, job))
        self._begin()
        return job.answer

    @property
    def waiting(self) -> dict[str, int]:
        """How many works of each tenant wait."""
        return {tenant: len(jobs) for tenant, jobs in self._waiting.items() if jobs}

    def close(self) -> None:
        """Begins no more; who waits is cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for job in [job for waiting in self._waiting.values() for job in waiting]:
            with suppress(RuntimeError):  # its event loop has been closed
                job.answer.cancel()

    def _leave(self, tenant: str, job: _Job, answer: asyncio.Future[Any]) -> None:
        """Takes a job that nobody waits for any more out of the queue."""
        waiting = self._waiting.get(tenant)
        if waiting is not None and job in waiting:
            waiting.remove(job)
            if not waiting:
                del self._waiting[tenant]

    def _begin(self) -> None:
        """Begins what may begin, each tenant in its turn."""
        while (tenant := self._next()) is not None:
            waiting = self._waiting.pop(tenant)
            job = waiting.popleft()
            if waiting:
                self._waiting[tenant] = waiting  # behind all others
            self._free -= 1
            self._running[tenant] += 1
            self._threads.submit(job.work).add_done_callback(partial(self._tell, tenant, job))

    def _next(self) -> str | None:
        return next((tenant for tenant in self._waiting if self._free > self._running[tenant]), None)

    def _tell(self, tenant: str, job: _Job, done: Future[Any]) -> None:
        """Called in the work's thread."""
        with suppress(RuntimeError):  # the event loop has been closed: nobody waits
            job.answer.get_loop().call_soon_threadsafe(self._end, tenant, job.answer, done)

    def _end(self, tenant: str, answer: asyncio.Future[Any], done: Future[Any]) -> None:
        self._free += 1
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        if not answer.done():
            error = done.exception()
            if error is None:
                answer.set_result(done.result())
            else:
                answer.set_exception(error)
        self._begin()


class WorkQueues:
    """The queues of one server: one for each kind of work, so that none waits for another kind.

    most_waiting: of one tenant in each of them. Prompts, ends of answers and their citations have no such bound, since
    admission control bounds the answers that they belong to.
    """

    def __init__(self, most_waiting: int) -> None:
        self.prompts = FairQueue("prompts", 4)
        self.ends = FairQueue("ends of answers", 4)
        self.citations = FairQueue("citations", 4)
        self.tokens = FairQueue("tokens", 4, most_waiting)
        self.verification = FairQueue("verification", 8, most_waiting)
        self.memories = FairQueue("memories", 8, most_waiting)
        self.sentence_models = FairQueue("sentence models", 4, most_waiting)

    @property
    def waiting(self) -> dict[tuple[str, str], int]:
        """How many works of a tenant wait, by kind of work and tenant."""
        kinds = vars(self).items()
        return {(kind, tenant): count for kind, queue in kinds for tenant, count in queue.waiting.items()}

    def close(self) -> None:
        """Begins no more work."""
        for queue in vars(self).values():
            queue.close()
