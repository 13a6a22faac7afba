"""The servers behind the router: which of them can be asked now, and how much each has to do."""

import asyncio
import errno
import json
import logging
import re
from collections.abc import AsyncIterator, Container, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import httpx

from ewe.server.http.error_responses import code_of
from ewe.server.router.ring import HashRing

READY = "ready"
UNREACHABLE = "unreachable"
ENGINE_DEAD = "engine_dead"
STALLED = "stalled"
QUEUE_FULL = "queue_full"  # no state: what a replica without room refuses with

_LOOK_AGAIN_S = 1.0
_PATIENCE_S = 5.0  # for a server to say that it is ready; one that takes longer is busy
_MOST_MISSED = 3
_MOST_BYTES = 1 << 16  # of what it says then
_CAPACITY = 1024  # of a server that does not tell its own
_USED_UP = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL}
_CODE = re.compile(r"[a-z_]{1,40}")

_log = logging.getLogger("ewe.server")


@dataclass(eq=False, slots=True)
class Replica:
    """One server. name: its place on the ring, and in metrics. url: of its root, without a slash at the end.

    state: READY, UNREACHABLE, or the code of the error that its /ping answers with. missed: checks in a row in which
    nothing at all came from it in time, or whose answer was that the engine stands still. load: requests under way;
    answers: those of them that the model is to answer; capacity: the most of these that it takes; num_requests,
    failed: requests that were sent there, and those that it broke off or refused. num_received: counts whatever comes
    from it.
    """

    name: str
    url: str = ""
    state: str = UNREACHABLE
    missed: int = 0
    load: int = 0
    answers: int = 0
    capacity: int = _CAPACITY
    num_requests: int = 0
    failed: int = 0
    num_received: int = 0
    _waits: set[asyncio.Timeout] = field(default_factory=set, init=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)

    @contextmanager
    def serving(self, asks_model: bool) -> Iterator[None]:
        """While one request is under way there; asks_model: whether it takes of the capacity."""
        self.load += 1
        self.answers += asks_model
        self.num_requests += 1
        try:
            yield
        finally:
            self.load -= 1
            self.answers -= asks_model

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """While something is to come from it; raises httpx.ReadTimeout when it is found to hang."""
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as wait:
                self._waits.add(wait)
                try:
                    yield
                finally:
                    self._waits.discard(wait)
        except TimeoutError as error:
            raise httpx.ReadTimeout("it hangs") from error

    def restarted(self, url: str) -> None:
        """Another process answers for it, elsewhere."""
        self.url, self.missed = url, 0

    @property
    def is_hung(self) -> bool:
        """Whether it was ready once and does not answer any more, though its connections hold."""
        return self.missed >= _MOST_MISSED

    async def check(self, client: httpx.AsyncClient) -> None:
        """Finds out what state it is in; whoever waits for one that hangs waits no more.

        From any thread. One that is late is in the state that it was in; it hangs if nothing else comes from it either.
        """
        was_ready = self.state == READY or self.missed > 0  # one that starts may take its time
        received, is_missed = self.num_received, False
        try:
            async with asyncio.timeout(_PATIENCE_S):
                self.state = await self._ask_state(client)
            is_missed = self.state == STALLED
        except (TimeoutError, httpx.TimeoutException):
            is_missed = self.num_received == received
        except httpx.ConnectError as error:
            if not is_local(error):
                self.state = UNREACHABLE
        except (httpx.HTTPError, httpx.InvalidURL):
            self.state = UNREACHABLE
        self.missed = self.missed + 1 if is_missed and was_ready else 0
        if self.is_hung:
            self.state = UNREACHABLE
            if self._waits and self._loop is not None:
                self._loop.call_soon_threadsafe(self._give_up)

    async def _ask_state(self, client: httpx.AsyncClient) -> str:
        body = b""
        async with client.stream("GET", f"{self.url}/ping", timeout=_PATIENCE_S) as response:
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _MOST_BYTES:
                    return UNREACHABLE
        if response.is_success:
            self.capacity = _capacity_of(body) or self.capacity
            return READY
        code = code_of(body)
        return code if _CODE.fullmatch(code) and code != READY else UNREACHABLE

    def _give_up(self) -> None:
        """Ends the waiting; on the event loop of those who wait."""
        _log.warning("a replica hangs", extra={"fields": {"replica": self.name, "requests": len(self._waits)}})
        while self._waits:
            self._waits.pop().reschedule(0.0)

    async def watch(self, client: httpx.AsyncClient) -> None:
        """Looks after it until it is cancelled."""
        while True:
            await self.check(client)
            await asyncio.sleep(_LOOK_AGAIN_S)


class ReplicaSet:
    """All servers; the first alone keeps what belongs to one server. is_draining: whether no more is taken in."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self.replicas = replicas
        self.is_draining = False
        self._ring = HashRing(replica.name for replica in replicas)

    def choose(self, key: str, tried: Container[str] = (), asks_model: bool = True) -> Replica | None:
        """Who serves a key, of those that are ready, have room and are not tried; without one, who has least to do.

        asks_model: only then a replica's capacity is room; other requests have queues there. Whoever is silent now is
        asked where nobody else has room.
        """
        free = [each for each in self._ready(tried) if not asks_model or each.answers < each.capacity]
        free = [each for each in free if not each.missed] or free
        if not free:
            return None
        if not key:
            return min(free, key=lambda each: each.load)
        by_name = {each.name: each for each in free}
        return by_name[self._ring.choose(key, {name: each.load for name, each in by_name.items()})]

    def has_busy(self, tried: Container[str] = ()) -> bool:
        """Whether there is one that is ready and not tried: where `choose` finds none it has no room."""
        return bool(self._ready(tried))

    def _ready(self, tried: Container[str]) -> list[Replica]:
        return [each for each in self.replicas if each.state == READY and each.name not in tried]

    @property
    def is_ready(self) -> bool:
        """Whether a request can be served now."""
        return not self.is_draining and any(replica.state == READY for replica in self.replicas)

    async def watch(self, client: httpx.AsyncClient) -> None:
        """Looks after all of them until it is cancelled; one that hangs does not hold up the others."""
        await asyncio.gather(*(replica.watch(client) for replica in self.replicas))

    async def wait_until_idle(self, timeout_s: float) -> None:
        """Returns when no request is under way any more, or the time is over."""
        end = asyncio.get_running_loop().time() + timeout_s
        while any(replica.load for replica in self.replicas) and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.05)


def is_local(error: httpx.ConnectError) -> bool:
    """Whether it was this process that had no means to connect: that says nothing of the other side."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _USED_UP:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _capacity_of(body: bytes) -> int | None:
    """How many answers a server says that it takes at once."""
    try:
        state = json.loads(body)
    except (ValueError, RecursionError):
        return None
    capacity = state.get("capacity") if isinstance(state, dict) else None
    return capacity if type(capacity) is int and capacity > 0 else None
