"""How long one tenant waits for first tokens while another floods the server, over how long without the flood.

`ewe serve` with the built-in model, two keys, in a process of its own. One key asks short chats one after another. The
other sends from several connections, as fast as it is answered: texts to `/v1/verify`, with and without 500 KB of
documents of their own; chats whose answers cite 500 KB; chats of almost 4 MB, which the server refuses by their heads
(413); or the largest that it reads, parses and then refuses.

The flood's client has a process of its own, whose priority is the lowest (`nice` 19), so that the ratios are the
server's doing. It goes on for some seconds before anything is measured.

Other work on the machine makes single percentiles differ by half. So quiet and flooded stretches take turns within each
repeat, which gives one ratio; what counts is the median of the repeats' ratios (`over_quiet`), beside the least and the
greatest of them, and the ratio of the percentiles of all repeats together (`pooled`). `load` is what else ran.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.common import parse_arguments, report
from benchmarks.ewe_serve import ewe_serve
from benchmarks.tenants_flood import FLOODS

FLOODERS, STRETCHES, LEAD_S, REST_S = 8, 4, 2.0, 1.5
QUIET = {"authorization": "Bearer quiet"}
CHAT: Any = {"messages": [{"role": "user", "content": "Who wrote it?"}], "max_tokens": 4, "stream": True}
Pairs = list[tuple[list[float], list[float]]]
"""Of each repeat the seconds of all quiet and of all flooded chats."""


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__)
    count = 1 if arguments.smoke else 25
    with serving() as url:
        figures = asyncio.run(measure(url, count, arguments.repeats))
    settings = {
        "chats_of_a_stretch": count,
        "stretches_of_a_repeat": STRETCHES,
        "connections_of_the_flood": FLOODERS,
    }
    report("tenants", arguments, settings, {**figures, "load": round(os.getloadavg()[2], 1)})


async def measure(url: str, count: int, repeats: int) -> dict[str, float]:
    """The figures of each flood."""
    found: dict[str, float] = {}
    async with httpx.AsyncClient(base_url=url, timeout=120.0) as http:
        await first_tokens(http, 3)
        for name in FLOODS:
            pairs = [await repeat(http, url, name, count) for _ in range(repeats)]
            found |= compared(name, pairs)
            print(name, found[f"{name}_p99_over_quiet"], flush=True)
    return found


async def repeat(http: httpx.AsyncClient, url: str, name: str, count: int) -> tuple[list[float], list[float]]:
    """Seconds of the quiet and of the flooded chats of one repeat."""
    quiet: list[float] = []
    busy: list[float] = []
    for _ in range(STRETCHES):
        quiet += await first_tokens(http, count)
        with flooding(url, name):
            await asyncio.sleep(LEAD_S)
            busy += await first_tokens(http, count)
        await asyncio.sleep(REST_S)  # what the flood has begun comes to its end
    return quiet, busy


def compared(name: str, pairs: Pairs) -> dict[str, float]:
    """Median and 99th percentile of all chats, in ms, and what the flood makes of the quiet ones."""
    found: dict[str, float] = {}
    pooled = [list(chain.from_iterable(own)) for own in zip(*pairs, strict=True)]
    for percent in (50, 99):
        quiet_ms, flooded_ms = (1e3 * float(np.percentile(times, percent)) for times in pooled)
        ratios = [float(np.percentile(busy, percent) / np.percentile(quiet, percent)) for quiet, busy in pairs]
        found[f"{name}_quiet_ms_p{percent}"] = round(quiet_ms, 1)
        found[f"{name}_flooded_ms_p{percent}"] = round(flooded_ms, 1)
        found[f"{name}_p{percent}_over_quiet"] = round(statistics.median(ratios), 3)
        found[f"{name}_p{percent}_over_quiet_least"] = round(min(ratios), 3)
        found[f"{name}_p{percent}_over_quiet_most"] = round(max(ratios), 3)
        found[f"{name}_p{percent}_over_quiet_pooled"] = round(flooded_ms / quiet_ms, 3)
    return found


async def first_tokens(http: httpx.AsyncClient, count: int) -> list[float]:
    """Seconds to the first text of so many chats, one after the other."""
    times = []
    for _ in range(count):
        sent = time.perf_counter()
        async with http.stream("POST", "/v1/chat/completions", json=CHAT, headers=QUIET) as answer:
            answer.raise_for_status()
            found = None
            async for line in answer.aiter_lines():
                if found is None and '"content":"' in line and '"content":""' not in line:
                    found = time.perf_counter() - sent
        times.append(found if found is not None else time.perf_counter() - sent)
    return times


@contextlib.contextmanager
def flooding(url: str, name: str) -> Iterator[None]:
    """While the other key sends as fast as it is answered."""
    command = [sys.executable, "-m", "benchmarks.tenants_flood", url, name, str(FLOODERS)]
    with subprocess.Popen(command) as process:  # noqa: S603
        try:
            yield
        finally:
            process.terminate()


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The server; gives its address."""
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys"
        keys.write_text("quiet\nflood\n")
        settings = {"server.api_key_file": keys, "verifier": "builtin", "datastore": "builtin"}
        with ewe_serve("builtin", settings) as url:
            yield url


if __name__ == "__main__":
    main()
