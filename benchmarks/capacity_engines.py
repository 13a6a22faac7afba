"""Engines behind the router's hash ring, simulated step by step: what `benchmarks.capacity` loads until it is full."""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ewe.config import RetrievalConfig
from ewe.retrieval.open_retriever import open_retriever, open_source
from ewe.server.router.ring import HashRing

_WAIT_S = 0.5
_PRECISION = 0.03
_FEWEST = 1500  # requests of a simulation

Choose = Callable[[str, Mapping[str, int]], str]


@dataclass(frozen=True, slots=True)
class Gpu:
    """steps: seconds of a step by the answers in it, up to as many as fit; room: units that are kept.

    prompt_s, unit_s: seconds for the prompt of an answer, and for a unit that is not kept.
    """

    steps: Sequence[float]
    prompt_s: float
    unit_s: float
    room: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: when it comes, the passages of its units, and the length of its answer."""

    at: float
    units: tuple[int, ...]
    tokens: int


@dataclass(slots=True)
class Outcome:
    """Seconds that requests waited for their first step, and units that were found or missed."""

    waits: list[float] = field(default_factory=list)
    found: int = 0
    missed: int = 0

    @property
    def units_found(self) -> float:
        """The share of units that were found."""
        return self.found / max(1, self.found + self.missed)

    @property
    def is_full(self) -> bool:
        """Whether more than 5% of the later half of the requests waited for more than half a second."""
        return float(np.percentile(self.waits[len(self.waits) // 2 :], 95)) > _WAIT_S


class Engine:
    """Continuous batching: one token per answer and step; who waits is admitted between steps."""

    def __init__(self, gpu: Gpu, outcome: Outcome) -> None:
        self._gpu, self._outcome = gpu, outcome
        self.waiting: deque[Asked] = deque()
        self._ends: list[int] = []  # the steps after which answers are complete
        self._kept: OrderedDict[int, None] = OrderedDict()  # least recently used first
        self._step = 0

    def next_step(self, now: float) -> tuple[int, float]:
        """Ends a step: answers that are complete, and the seconds of the next step (0: nothing to do)."""
        self._step += 1
        ended, extra = 0, 0.0
        while self._ends and self._ends[0] <= self._step:
            heapq.heappop(self._ends)
            ended += 1
        while self.waiting and len(self._ends) < len(self._gpu.steps) - 1:
            asked = self.waiting.popleft()
            self._outcome.waits.append(now - asked.at)
            extra += self._gpu.prompt_s + self._gpu.unit_s * sum(map(self._misses, asked.units))
            heapq.heappush(self._ends, self._step + asked.tokens)
        return ended, self._gpu.steps[len(self._ends)] + extra

    def _misses(self, unit: int) -> bool:
        """Whether a unit was not kept; it is now."""
        missed = unit not in self._kept
        self._kept[unit] = None
        self._kept.move_to_end(unit)
        if len(self._kept) > self._gpu.room:
            self._kept.popitem(last=False)
        self._outcome.missed += missed
        self._outcome.found += not missed
        return missed


def simulate(gpu: Gpu, num_gpus: int, requests: Sequence[Asked], choose: Choose) -> Outcome:
    """What happens to requests, in the order of their arrival, until the last has come."""
    outcome = Outcome()
    engines = {f"gpu{number}": Engine(gpu, outcome) for number in range(num_gpus)}
    loads = dict.fromkeys(engines, 0)
    steps: list[tuple[float, str]] = []  # when the step that an engine is in ends
    idle = set(engines)
    for asked in requests:
        while steps and steps[0][0] <= asked.at:
            now, name = heapq.heappop(steps)
            ended, seconds = engines[name].next_step(now)
            loads[name] -= ended
            if seconds:
                heapq.heappush(steps, (now + seconds, name))
            else:
                idle.add(name)
        name = choose(f"passage {asked.units[0]}", loads)
        loads[name] += 1
        engines[name].waiting.append(asked)
        if name in idle:
            idle.remove(name)
            heapq.heappush(steps, (asked.at, name))
    left = (asked for engine in engines.values() for asked in engine.waiting)
    outcome.waits.extend(requests[-1].at - asked.at for asked in left)
    return outcome


def by_ring(num_gpus: int) -> Choose:
    """The router's own choice."""
    return HashRing(f"gpu{number}" for number in range(num_gpus)).choose


def most_requests(gpu: Gpu, num_gpus: int, trace: Trace, seconds: float) -> tuple[float, Outcome]:
    """The most requests per second that these GPUs take, a little too few, and what happens then."""
    most = num_gpus * (len(gpu.steps) - 1) / gpu.steps[-1] / trace.mean_tokens
    low, high, best = 0.0, most, Outcome()
    while high - low > _PRECISION * most:
        per_s = (low + high) / 2
        outcome = simulate(gpu, num_gpus, trace.requests(per_s, seconds), by_ring(num_gpus))
        if outcome.is_full:
            high = per_s
        else:
            low, best = per_s, outcome
    return low, best


class Trace:
    """Requests for topics of which the popular ones come often; num_passages: of the catalogue."""

    def __init__(self, num_passages: int, num_units: int, exponent: float, mean_tokens: int) -> None:
        passages = [passage for _, passage in open_source("wikipedia-sample").scan()]
        numbers = {passage.id: number for number, passage in enumerate(passages)}
        queries = [" ".join(passage.text.split()[:12]) for passage in passages]
        found = open_retriever(passages, RetrievalConfig(retriever="bm25")).retrieve(queries, num_units)
        self._topics = [tuple(numbers[item.passage.id] for item in items) for items in found]
        self._num_passages, self._exponent, self.mean_tokens = num_passages, exponent, mean_tokens

    def requests(self, per_s: float, seconds: float) -> list[Asked]:
        """Arrivals at random (Poisson); answers have half to one and a half times the mean length."""
        random = np.random.default_rng(0)
        number = max(_FEWEST, int(per_s * seconds))
        times = np.cumsum(random.exponential(1 / per_s, number)).tolist()
        ranks = zipf_ranks(random.random(number), self._num_passages, self._exponent).tolist()
        tokens = random.integers(self.mean_tokens // 2, self.mean_tokens * 3 // 2 + 1, number).tolist()
        return [Asked(at, self._units(rank), length) for at, rank, length in zip(times, ranks, tokens, strict=True)]

    def _units(self, rank: int) -> tuple[int, ...]:
        copy, topic = divmod(rank, len(self._topics))
        return tuple(copy * len(self._topics) + passage for passage in self._topics[topic])


def zipf_ranks(shares: npt.NDArray[np.float64], total: int, exponent: float) -> npt.NDArray[np.int64]:
    """Ranks from 0 to total - 1 at these quantiles (0 to 1) of a density that falls as rank ** -exponent."""
    power = (1 - exponent) or 1e-9
    places = (1 + shares * ((total + 1.0) ** power - 1)) ** (1 / power)
    ranks: npt.NDArray[np.int64] = np.minimum(places.astype(np.int64), total) - 1
    return ranks
