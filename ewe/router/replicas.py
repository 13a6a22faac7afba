"""The servers behind the router: which of them can be asked now, and how much each has to do."""

import asyncio
import logging
from collections.abc import AsyncIterator, Container, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import httpx

from ewe.router.ring import HashRing

READY = "ready"
UNREACHABLE = "unreachable"
ENGINE_DEAD = "engine_dead"
STALLED = "stalled"

_LOOK_AGAIN_S = 1.0
_PATIENCE_S = 5.0  # for a server that is busy to say that it is ready
_MOST_MISSED = 3

_log = logging.getLogger("ewe.server")


@dataclass(eq=False, slots=True)
class Replica:
    """One server. name: its place on the ring, and in metrics. url: of its root, without a slash at the end.

    state: READY, UNREACHABLE, or the code of the error that its /ping answers with. missed: checks in a row without an
    answer in time, or whose answer was that the engine stands still. load: requests under way; asked, failed: requests
    that were sent there, and those that it broke off or refused.
    """

    name: str
    url: str = ""
    state: str = UNREACHABLE
    missed: int = 0
    load: int = 0
    asked: int = 0
    failed: int = 0
    _waits: set[asyncio.Timeout] = field(default_factory=set, init=False)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """While one request is under way there."""
        self.load += 1
        self.asked += 1
        try:
            yield
        finally:
            self.load -= 1

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """While something is to come from it; raises httpx.ReadTimeout when it is found to hang."""
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
        """Finds out what state it is in; whoever waits for one that hangs waits no more."""
        was_ready = self.state == READY or self.missed > 0  # one that starts may take its time
        is_missed = False
        try:
            response = await client.get(f"{self.url}/ping", timeout=_PATIENCE_S)
            self.state = READY if response.is_success else str(response.json()["error"]["code"])
            is_missed = self.state == STALLED
        except httpx.TimeoutException:
            self.state, is_missed = UNREACHABLE, True
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError, TypeError):
            self.state = UNREACHABLE
        self.missed = self.missed + 1 if is_missed and was_ready else 0
        if self.is_hung and self._waits:
            _log.warning("a replica hangs", extra={"fields": {"replica": self.name, "requests": len(self._waits)}})
        while self.is_hung and self._waits:
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

    def choose(self, key: str, tried: Container[str] = ()) -> Replica | None:
        """Who serves a key, of those that are ready and not tried; without a key, who has the least to do."""
        free = {each.name: each for each in self.replicas if each.state == READY and each.name not in tried}
        if not free:
            return None
        if not key:
            return min(free.values(), key=lambda each: each.load)
        return free[self._ring.choose(key, {name: each.load for name, each in free.items()})]

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
