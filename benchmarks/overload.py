"""What becomes of requests that come twice as fast as two replicas can answer them.

Requests arrive at random (Poisson) at the router, whatever is still under way. The replicas are the stand-ins of
benchmarks/replicas.py, whose model waits a fixed time, with the server's own admission control; the router is the real
one. Goodput is answers per second from the time when the queues are full until the last arrival, as a share of what
the replicas' places can write. Every request must be answered or refused with 429 and `Retry-After`: others are lost.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from dataclasses import dataclass, replace
from typing import Any

import httpx
import numpy as np

from benchmarks.common import parse_arguments, report
from benchmarks.ewe_serve import ewe_serve
from benchmarks.replicas import Load, stack

REPLICAS, FACTOR = 2, 2.0
MESSAGES = [{"role": "user", "content": "Who was it?"}]
STAND_IN_BODY: dict[str, Any] = {"units": [], "messages": MESSAGES}
BODY: dict[str, Any] = {"messages": MESSAGES, "max_tokens": 64, "ignore_eos": True}


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
    arguments = parse_arguments(__doc__, _add_model)
    load = Load(200, 0.0, 0, places=8, waiting=8) if arguments.model else Load(2000, 1.0, 1, places=8, waiting=16)
    if arguments.smoke:
        load = replace(load, requests=40, answer_s=0.1, places=2, waiting=2)
    settings: dict[str, Any] = {"replicas": REPLICAS, "places": load.places, "max_waiting": load.waiting}
    if arguments.model:
        capacity, outcomes = overload_model(arguments.model, load)
        settings |= {"model": arguments.model, "max_tokens": BODY["max_tokens"]}
    else:
        capacity = REPLICAS * load.places / load.answer_s
        with stack(REPLICAS, load) as url:
            outcomes = asyncio.run(ask_all(url, STAND_IN_BODY, load.requests, FACTOR * capacity))
        settings["answer_s"] = load.answer_s
    rates = {"capacity_per_s": capacity, "offered_per_s": FACTOR * capacity, "requests": load.requests}
    warm_s = REPLICAS * load.waiting / capacity
    report("overload", arguments, settings | rates, figures(outcomes, capacity, warm_s, load.requests))


def overload_model(model: str, load: Load) -> tuple[float, list[Outcome]]:
    """The answers per second that the replicas of a model write, and what becomes of twice as many requests."""
    settings = {"scheduler.max_num_seqs": load.places, "server.max_waiting": load.waiting}
    # Two engines on few cores: threads that wait for each other within each would take longer than the work.
    with ewe_serve(model, settings, "--replicas", str(REPLICAS), environment={"OMP_NUM_THREADS": "1"}) as url:
        places = REPLICAS * load.places
        asyncio.run(ask_in_turn(url, places, places))
        count = min(4 * places, load.requests)
        begin = time.perf_counter()
        asyncio.run(ask_in_turn(url, places, count))
        capacity = count / (time.perf_counter() - begin)
        return capacity, asyncio.run(ask_all(url, BODY, load.requests, FACTOR * capacity))


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help="what the replicas serve, instead of stand-ins that wait")


async def ask_in_turn(url: str, clients: int, count: int) -> None:
    """Asks so often, each client as soon as it is answered; whatever is refused makes the figures worthless."""
    numbers = iter(range(count))

    async def client(http: httpx.AsyncClient) -> None:
        for number in numbers:
            outcome = await ask(http, url, BODY, number, 0.0)
            assert outcome.status == 200, outcome

    async with httpx.AsyncClient(timeout=120.0) as http, asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client(http))


async def ask_all(url: str, body: dict[str, Any], count: int, rate: float) -> list[Outcome]:
    """Sends so many requests, so many per second on average."""
    chance, limits = random.Random(0), httpx.Limits(max_connections=None, max_keepalive_connections=256)
    async with httpx.AsyncClient(timeout=120.0, limits=limits) as http, asyncio.TaskGroup() as group:
        begin = time.perf_counter()
        due, tasks = begin, []
        for number in range(count):
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(group.create_task(ask(http, url, body, number, begin)))
            due += chance.expovariate(rate)
    return [task.result() for task in tasks]


async def ask(http: httpx.AsyncClient, url: str, body: dict[str, Any], number: int, begin: float) -> Outcome:
    """Asks once; every other answer is a stream."""
    sent = time.perf_counter()
    try:
        answer = await http.post(f"{url}/v1/chat/completions", json={**body, "stream": bool(number % 2)})
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
