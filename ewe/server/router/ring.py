"""Consistent hashing with bounded loads: who serves a key, when some are full or gone."""

import math
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping

from ewe.server.traffic.affinity import place_of

LOAD_FACTOR = 1.1  # with two, at the bound, one has 1.22 times the load of the other


class HashRing:
    """Names at fixed places of a ring, `points` each; a key belongs to the first name after its own place.

    A name that leaves gives only its own keys away, to many others. Places are the same in every process.
    """

    def __init__(self, names: Iterable[str], points: int = 128) -> None:
        placed = sorted((place_of(f"{name}#{number}"), name) for name in set(names) for number in range(points))
        self._places = [place for place, _ in placed]
        self._names = [name for _, name in placed]
        self._num_names = len(set(self._names))

    def walk(self, key: str) -> Iterator[str]:
        """Every name once, in the order in which they come after the key: its owner, the owner without that one, ..."""
        start, seen = bisect(self._places, place_of(key)), set[str]()
        for index in range(start, start + len(self._names)):
            if len(seen) == self._num_names:
                return
            name = self._names[index % len(self._names)]
            if name not in seen:
                seen.add(name)
                yield name

    def choose(self, key: str, loads: Mapping[str, int], factor: float = LOAD_FACTOR) -> str:
        """Who serves the key: the first of those in `loads` that has less than `factor` times its share.

        loads: requests under way of everybody who may be chosen, not empty and all on the ring. The share counts this
        request too, so that somebody always has room (Mirrokni, Thorup and Zadimoghaddam 2018).
        """
        most = math.ceil(factor * (sum(loads.values()) + 1) / len(loads))
        return next(name for name in self.walk(key) if loads.get(name, most) < most)
