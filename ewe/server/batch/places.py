"""Places for requests of batches, which keys share: a free one goes to the key that holds the fewest."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Protocol


class Places(Protocol):
    """One for each request under way."""

    async def acquire(self) -> object:
        """Returns when a place is taken."""

    def release(self) -> None:
        """Gives one back."""


class SharedPlaces:
    """So many places for all keys; of keys that hold as many, whoever has waited longest is next."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._held: Counter[str] = Counter()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []  # who came first comes first

    def of(self, key: str) -> Places:
        """What a key's batch takes places from."""
        return _PlacesOfKey(self, key)

    async def acquire(self, key: str) -> None:
        """Returns when a place is taken for a key."""
        waiter = key, asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._grant()
        try:
            await waiter[1]
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:  # granted before it learned of it
                self.release(key)
            raise

    def release(self, key: str) -> None:
        """Gives a key's place to who is next."""
        self._free += 1
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]
        self._grant()

    def _grant(self) -> None:
        # Who has been cancelled leaves the list only when its task runs next.
        while self._free and (waiting := [one for one in self._waiting if not one[1].done()]):
            waiter = min(waiting, key=lambda one: self._held[one[0]])
            self._waiting.remove(waiter)
            key, taken = waiter
            self._free -= 1
            self._held[key] += 1
            taken.set_result(None)


@dataclass(frozen=True, slots=True)
class _PlacesOfKey:
    shared: SharedPlaces
    key: str

    async def acquire(self) -> None:
        await self.shared.acquire(self.key)

    def release(self) -> None:
        self.shared.release(self.key)
