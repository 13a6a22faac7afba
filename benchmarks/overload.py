"""What becomes of requests that come twice as fast as two replicas can answer them.

Requests arrive at random (Poisson) at the router, whatever is still under way. The replicas are the stand-ins of
benchmarks/replicas.py, whose model waits a fixed time, with the server's own admission control; the router is the real
one. Goodput is answers per second from the time when the queues are full until the last arrival, as a share of what
the replicas' places can write. Every request must be answered or refused with 429 and `Retry-After`: others are lost.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, replace
from typing import Any

import httpx
import numpy as np

from benchmarks.common import parse_arguments, report
from benchmarks.replicas import Load, stack

REPLICAS, FACTOR = 2, 2.0
BODY: dict[str, Any] = {"units": [], "messages": [{"role": "user", "content": "Who was it?"}]}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one request ended: at which second, after how many, and with what; status 0: the connection was lost."""

    at: float
    took: float
    status: int
    code: str
    may_retry: bool


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__)
    load = Load(2000, 1.0, 1, places=8, waiting=16)
    if arguments.smoke:
        load = replace(load, requests=40, answer_s=0.1, places=2, waiting=2)
    capacity = REPLICAS * load.places / load.answer_s
    with stack(REPLICAS, load) as url:
        outcomes = asyncio.run(ask_all(url, load.requests, FACTOR * capacity))
    settings = {"replicas": REPLICAS, "places": load.places, "max_waiting": load.waiting, "answer_s": load.answer_s}
    rates = {"capacity_per_s": capacity, "offered_per_s": FACTOR * capacity, "requests": load.requests}
    warm_s = load.waiting * load.answer_s / load.places
    report("overload", arguments, settings | rates, figures(outcomes, capacity, warm_s, load.requests))


async def ask_all(url: str, count: int, rate: float) -> list[Outcome]:
    """Sends so many requests, so many per second on average."""
    chance, limits = random.Random(0), httpx.Limits(max_connections=None, max_keepalive_connections=256)
    async with httpx.AsyncClient(timeout=120.0, limits=limits) as http, asyncio.TaskGroup() as group:
        begin = time.perf_counter()
        due, tasks = begin, []
        for number in range(count):
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(group.create_task(ask(http, url, number, begin)))
            due += chance.expovariate(rate)
    return [task.result() for task in tasks]


async def ask(http: httpx.AsyncClient, url: str, number: int, begin: float) -> Outcome:
    """Asks once; every other answer is a stream."""
    sent = time.perf_counter()
    try:
        answer = await http.post(f"{url}/v1/chat/completions", json={**BODY, "stream": bool(number % 2)})
    except httpx.TransportError:
        return Outcome(time.perf_counter() - begin, time.perf_counter() - sent, 0, "lost", False)
    now = time.perf_counter()
    code = "" if answer.status_code == 200 else answer.json()["error"]["code"]
    if answer.status_code == 200 and number % 2 and "[DONE]" not in answer.text:
        code = "broken_off"
    return Outcome(now - begin, now - sent, answer.status_code, code, "retry-after" in answer.headers)


def figures(outcomes: list[Outcome], capacity: float, warm_s: float, count: int) -> dict[str, float]:
    """What became of the requests; capacity: answers per second that can be written."""
    answered = [each for each in outcomes if each.status == 200 and not each.code]
    refused = [each for each in outcomes if each.status == 429 and each.may_retry]
    end = max(each.at - each.took for each in outcomes)
    inside = sum(warm_s <= each.at <= end for each in answered)
    quick = [1e3 * each.took for each in refused] or [0.0]
    return {
        "goodput_of_capacity": round(inside / (capacity * (end - warm_s)), 4),
        "answered": len(answered),
        "refused_with_retry_after": len(refused),
        "lost": count - len(answered) - len(refused),
        "no_replica": sum(each.code == "no_replica" for each in outcomes),
        "refused_ms_p50": round(float(np.percentile(quick, 50)), 1),
        "refused_ms_p99": round(float(np.percentile(quick, 99)), 1),
    }


if __name__ == "__main__":
    main()
