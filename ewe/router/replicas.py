"""The servers behind the router: which of them can be asked now, and how much each has to do."""

import asyncio
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from ewe.router.ring import HashRing

READY = "ready"
UNREACHABLE = "unreachable"
ENGINE_DEAD = "engine_dead"

_LOOK_AGAIN_S = 1.0
_PATIENCE_S = 5.0  # for a server that is busy to say that it is ready


@dataclass(eq=False, slots=True)
class Replica:
    """One server. name: its place on the ring, and in metrics. url: of its root, without a slash at the end.

    state: READY, UNREACHABLE, or the code of the error that its /ping answers with. load: requests under way; asked,
    failed: requests that were sent there, and those that it broke off or refused.
    """

    name: str
    url: str = ""
    state: str = UNREACHABLE
    load: int = 0
    asked: int = 0
    failed: int = 0

    @contextmanager
    def serving(self) -> Iterator[None]:
        """While one request is under way there."""
        self.load += 1
        self.asked += 1
        try:
            yield
        finally:
            self.load -= 1

    async def check(self, client: httpx.AsyncClient) -> None:
        """Finds out what state it is in."""
        try:
            response = await client.get(f"{self.url}/ping", timeout=_PATIENCE_S)
            self.state = READY if response.is_success else str(response.json()["error"]["code"])
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError, TypeError):
            self.state = UNREACHABLE

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
