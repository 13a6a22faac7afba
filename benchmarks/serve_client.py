"""Clients that stream answers from a server at times of their own.

Imports nothing heavy, because a process of its own runs it.
"""

from __future__ import annotations

import http.client
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

_HOST = "127.0.0.1"
_MOST_AT_ONCE = 512
_PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Load:
    """Requests per second, for how many seconds, prompt and answer tokens, and the seed of arrivals and prompts."""

    rate: float
    seconds: float
    prompt: int
    answer: int
    vocab: int
    seed: int = 0


def arrivals(load: Load) -> list[float]:
    """Seconds after the start, with exponential gaps."""
    draw = random.Random(load.seed)
    times, now = [], draw.expovariate(load.rate)
    while now < load.seconds:
        times.append(now)
        now += draw.expovariate(load.rate)
    return times or [0.0]


def run_clients(port: int, load: Load) -> list[list[float]]:
    """Per request the seconds from its arrival to each of its tokens; called in the clients' process."""
    times = arrivals(load)
    start = time.perf_counter()
    with ThreadPoolExecutor(min(len(times), _MOST_AT_ONCE)) as pool:
        # Every request has a thread that sleeps until it is due, so that none waits for another.
        return list(pool.map(lambda item: _request(port, load, item[0], start + item[1]), enumerate(times)))


def _request(port: int, load: Load, number: int, due: float) -> list[float]:
    draw = random.Random(load.seed * 100_003 + number)
    prompt = [draw.randrange(3, load.vocab) for _ in range(load.prompt)]
    body = {"prompt": prompt, "max_tokens": load.answer, "ignore_eos": True, "temperature": 0, "stream": True}
    time.sleep(max(0.0, due - time.perf_counter()))
    connection = http.client.HTTPConnection(_HOST, port, timeout=_PATIENCE_S)
    seen: list[float] = []
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        if response.status != http.client.OK:
            return []
        for line in response:
            # Text alone: the last record, which tells of the whole answer, is written after the last token.
            if line.startswith(b"data: {") and b'"text":""' not in line and b'"choices":[]' not in line:
                seen.append(time.perf_counter() - due)
    except OSError:
        return []
    finally:
        connection.close()
    return seen
