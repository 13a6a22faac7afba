"""How long one tenant waits for first tokens while another floods the server, over how long without the flood.

`ewe serve` with the built-in model, two keys, in a process of its own. One key asks short chats one after another. The
other sends from several connections, as fast as it is answered: texts to `/v1/verify`; chats of almost 4 MB, which the
server refuses by their heads (413); or the largest that it reads, parses and then refuses.

The flood's client has a process of its own, whose priority is the lowest (`nice` 19), so that the ratios are the
server's doing. What its sharing the machine costs beside that is in the ratios named `with_its_client`, where it has
the priority of everything else. The flood goes on for some seconds before anything is measured. Quiet times are taken
before and after each flood, in the same run, so that other work on the machine is in both; the percentiles are those of
all repeats together.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.common import parse_arguments, report
from benchmarks.ewe_serve import ewe_serve
from benchmarks.tenants_flood import FLOODS

FLOODERS, LEAD_S = 8, 3.0
LOWEST = 19
QUIET = {"authorization": "Bearer quiet"}
CHAT: Any = {"messages": [{"role": "user", "content": "Who wrote it?"}], "max_tokens": 4, "stream": True}


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__)
    count = 3 if arguments.smoke else 100
    with serving() as url:
        figures = asyncio.run(measure(url, count, arguments.repeats))
    report("tenants", arguments, {"chats": count, "connections_of_the_flood": FLOODERS}, figures)


async def measure(url: str, count: int, repeats: int) -> dict[str, float]:
    """The figures of each flood: half of the quiet chats come before it, half after it."""
    found: dict[str, float] = {}
    async with httpx.AsyncClient(base_url=url, timeout=120.0) as http:
        await first_tokens(http, 3)
        for name in FLOODS:
            for priority, suffix in ((LOWEST, ""), (0, "_with_its_client")):
                quiet: list[float] = []
                busy: list[float] = []
                for _ in range(repeats):
                    quiet += await first_tokens(http, -(-count // 2))
                    with flooding(url, name, priority):
                        await asyncio.sleep(LEAD_S)
                        busy += await first_tokens(http, count)
                    quiet += await first_tokens(http, count // 2)
                found |= compared(f"{name}{suffix}", quiet, busy)
    return found


def compared(name: str, quiet: list[float], busy: list[float]) -> dict[str, float]:
    """Median and 99th percentile of both, in ms, and what the flood makes of the quiet ones."""
    found: dict[str, float] = {}
    for percent in (50, 99):
        before, now = (float(np.percentile(times, percent)) for times in (quiet, busy))
        found[f"{name}_quiet_ms_p{percent}"] = round(1e3 * before, 1)
        found[f"{name}_flooded_ms_p{percent}"] = round(1e3 * now, 1)
        found[f"{name}_p{percent}_over_quiet"] = round(now / before, 3)
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
def flooding(url: str, name: str, priority: int) -> Iterator[None]:
    """While the other key sends as fast as it is answered."""
    options = [url, name, str(FLOODERS), str(priority)]
    command = [sys.executable, "-m", "benchmarks.tenants_flood", *options]
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
