"""What several replicas behind the router are worth: requests per second, encoded units found, requests lost.

The servers are stand-ins whose model waits a fixed time, so that the processor is no limit; the router, its health
checks and its restarts are the real ones, each in a process of its own. Questions are sentences of the Wikipedia
sample's passages, articles asked about with Zipf's frequencies; the four best passages of BM25 are a request's units.

- scaling: one replica and two, from as many clients; how often two answer what one answers;
- units: how many are found encoded, by one replica and by several, behind the router and in turn (round robin), and
  how many requests the busiest replica answers per one of the least busy;
- a loss: a replica is killed under load and started again; requests that get no whole answer are lost. Half are
  streams.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from benchmarks.common import parse_arguments, report
from ewe.config.setting_names import WIKIPEDIA_SAMPLE
from ewe.retrieval.bm25 import BM25Retriever
from ewe.retrieval.open_retriever import open_source

PLACES, CLIENTS = 2, 16
EXPONENT = 0.8
UNITS_PER_REQUEST = 4


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked, how many seconds an answer takes, and how many units a replica keeps.

    places: answers that a replica writes at once; waiting: those that may wait there.
    """

    requests: int
    answer_s: float
    units: int
    places: int = PLACES
    waiting: int = 1024


@dataclass(slots=True)
class Seen:
    """What the clients of one run saw; answered: requests by who answered them."""

    seconds: float = 0.0
    hits: int = 0
    lost: int = 0
    answered: Counter[int] = field(default_factory=Counter)

    @property
    def hit_rate(self) -> float:
        """The share of units that were found encoded."""
        return self.hits / (UNITS_PER_REQUEST * max(1, self.answered.total()))

    @property
    def imbalance(self) -> float:
        """Requests of the busiest replica per one of the least busy."""
        return max(self.answered.values()) / min(self.answered.values())


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__)
    load = Load(16, 0.05, 30) if arguments.smoke else Load(400, 1.0, 150)
    bodies, figures = requests(load.requests), dict[str, float]()
    with stack(1, load) as url:
        one = ask_all(bodies, [url])
    figures["replicas_1_hit_rate"] = round(one.hit_rate, 4)
    figures["replicas_1_requests_per_s"] = round(load.requests / one.seconds, 2)
    for count in (2,) if arguments.smoke else (2, 4):
        with stack(count, load) as url:
            routed = ask_all(bodies, [url])
            killed = ask_all(bodies, [url], kill_after=load.requests // 4)
        name = f"replicas_{count}"
        if count == 2:  # with more, two cores have no time for all processes
            figures[f"{name}_speedup"] = round(one.seconds / routed.seconds, 3)
        figures[f"{name}_imbalance"] = round(routed.imbalance, 3)
        figures[f"{name}_hits_of_one"] = round(routed.hit_rate / one.hit_rate, 4)
        figures[f"{name}_lost"] = routed.lost
        figures[f"{name}_lost_with_a_kill"] = killed.lost
        figures[f"{name}_processes_with_a_kill"] = len(killed.answered)
        with stand_ins(count, load) as urls:
            in_turn = ask_all(bodies, urls)
        figures[f"{name}_round_robin_hits_of_one"] = round(in_turn.hit_rate / one.hit_rate, 4)
    settings = {"requests": load.requests, "clients": CLIENTS, "places": PLACES, "answer_s": load.answer_s}
    report("replicas", arguments, {**settings, "units_kept": load.units, "zipf": EXPONENT}, figures)


def requests(count: int) -> list[dict[str, Any]]:
    """Bodies of requests: questions with the units that they use; every other is a stream."""
    source, chance = open_source(WIKIPEDIA_SAMPLE), random.Random(0)
    articles: dict[str, list[str]] = {}
    for _, passage in source.scan():
        sentences = [part for part in re.split(r"(?<=[.!?]) ", passage.text) if len(part) > 30]
        articles.setdefault(passage.title, []).extend(sentences or [passage.text])
    titles = sorted(articles)
    chance.shuffle(titles)
    weights = [1 / rank**EXPONENT for rank in range(1, len(titles) + 1)]
    asked = [f"{title}: {chance.choice(articles[title])}" for title in chance.choices(titles, weights, k=count)]
    found = BM25Retriever(source).retrieve(asked, UNITS_PER_REQUEST)
    return [
        {
            "messages": [{"role": "user", "content": question}],
            "units": [each.passage.id for each in passages],
            "stream": bool(number % 2),
        }
        for number, (question, passages) in enumerate(zip(asked, found, strict=True))
    ]


def ask_all(bodies: list[dict[str, Any]], urls: list[str], kill_after: int | None = None) -> Seen:
    """Sends all requests, CLIENTS at once, to the addresses in turn.

    kill_after: so many answers after which the replica that gave the last is killed.
    """
    seen, numbers = Seen(), iter(range(len(bodies)))

    async def client(http: httpx.AsyncClient) -> None:
        nonlocal kill_after
        for number in numbers:
            answer = await ask(http, urls[number % len(urls)], bodies[number])
            if answer is None:
                seen.lost += 1
                continue
            seen.hits += answer["hits"]
            seen.answered[answer["pid"]] += 1
            if kill_after is not None and seen.answered.total() >= kill_after:
                kill_after = None
                os.kill(answer["pid"], signal.SIGKILL)

    async def all_clients() -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=CLIENTS)
        async with httpx.AsyncClient(timeout=120.0, limits=limits) as http:
            await asyncio.gather(*(client(http) for _ in range(CLIENTS)))

    begin = time.perf_counter()
    asyncio.run(all_clients())
    seen.seconds = time.perf_counter() - begin
    return seen


async def ask(http: httpx.AsyncClient, url: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """What was answered; None for a request that got no whole answer."""
    try:
        response = await http.post(f"{url}/v1/chat/completions", json=body)
    except httpx.TransportError:
        return None
    if response.status_code != 200:
        return None
    records = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    if body["stream"] and (len(records) != 3 or records[2] != "[DONE]" or "hits" not in records[1]):
        return None
    answer: dict[str, Any] = json.loads(records[1] if body["stream"] else response.text)
    return answer


@contextmanager
def stack(replicas: int, load: Load) -> Iterator[str]:
    """The router with so many replicas behind it; gives its address."""
    with _started(load, "--replicas", str(replicas)) as url:
        while list(_get(f"{url}/health").get("replicas", {}).values()) != ["ready"] * replicas:
            time.sleep(0.1)
        yield url


@contextmanager
def stand_ins(count: int, load: Load) -> Iterator[list[str]]:
    """Servers without a router; gives their addresses."""
    if not count:
        yield []
        return
    with _started(load) as url, stand_ins(count - 1, load) as others:
        while not _get(f"{url}/ping"):
            time.sleep(0.1)
        yield [url, *others]


@contextmanager
def _started(load: Load, *more: str) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    own = (
        "--places",
        load.places,
        "--waiting",
        load.waiting,
        "--answer_s",
        load.answer_s,
        "--units",
        load.units,
        "--set",
        f"server.port={port}",
        *more,
    )
    options = [*map(str, own), "--set", f"server.port={port}", *more]
    command = [sys.executable, "-m", "benchmarks.replicas_stand_in", *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        yield f"http://127.0.0.1:{port}"
        process.terminate()


def _get(url: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = httpx.get(url).json()
    except httpx.TransportError:
        return {}
    return answer


if __name__ == "__main__":
    main()
