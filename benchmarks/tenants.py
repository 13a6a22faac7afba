"""How long one tenant waits for first tokens while another floods the server, over how long without the flood.

`ewe serve` with the built-in model, two keys, in a process of its own. One key asks short chats one after another; the
other sends, from several connections, texts to `/v1/verify`, or chats of almost 4 MB, which the server refuses (413).
Quiet times are taken before and after each flood, in the same run, so that other work on the machine is in both.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
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

FLOODERS = 8
CHAT: Any = {"messages": [{"role": "user", "content": "Who wrote it?"}], "max_tokens": 4, "stream": True}
FLOODS: dict[str, tuple[str, Any]] = {
    "verify": ("/v1/verify", {"text": "The river is 320 km long. The town was founded in 1850. " * 10}),
    "large_chats": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "words " * 650_000}]}),
}


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__)
    count = 3 if arguments.smoke else 100
    with serving() as url:
        figures = asyncio.run(measure(url, count))
    report("tenants", arguments, {"chats": count, "connections_of_the_flood": FLOODERS}, figures)


async def measure(url: str, count: int) -> dict[str, float]:
    """The figures of each flood: half of the quiet chats come before it, half after it."""
    found: dict[str, float] = {}
    async with httpx.AsyncClient(base_url=url, timeout=120.0) as http:
        await first_tokens(http, 3)
        for name, (path, body) in FLOODS.items():
            quiet = await first_tokens(http, -(-count // 2))
            async with flooding(url, path, json.dumps(body).encode()) as sent:
                busy = await first_tokens(http, count)
            quiet += await first_tokens(http, count // 2)
            found[f"{name}_flood_requests"] = len(sent)
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
        async with http.stream("POST", "/v1/chat/completions", json=CHAT, headers=_key("quiet")) as answer:
            answer.raise_for_status()
            found = None
            async for line in answer.aiter_lines():
                if found is None and '"content":"' in line and '"content":""' not in line:
                    found = time.perf_counter() - sent
        times.append(found if found is not None else time.perf_counter() - sent)
    return times


@contextlib.asynccontextmanager
async def flooding(url: str, path: str, body: bytes) -> Any:
    """While the other key sends as fast as it is answered; gives the statuses of its answers."""
    statuses: list[int] = []

    async def flood(http: httpx.AsyncClient) -> None:
        while True:
            headers = {**_key("flood"), "content-type": "application/json"}
            try:
                statuses.append((await http.post(path, content=body, headers=headers)).status_code)
            except httpx.TransportError:  # what is too large is refused before it has been read
                statuses.append(413)

    async with httpx.AsyncClient(base_url=url, timeout=120.0) as http:
        tasks = [asyncio.ensure_future(flood(http)) for _ in range(FLOODERS)]
        await asyncio.sleep(0.5)
        try:
            yield statuses
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The server; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys"
        keys.write_text("quiet\nflood\n")
        settings = [f"server.port={port}", f"server.api_key_file={keys}", "verifier=builtin", "datastore=builtin"]
        options = [part for setting in settings for part in ("--set", setting)]
        command = [sys.executable, "-m", "ewe.cli.main", "serve", "builtin", *options]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:  # noqa: S603
            url = f"http://127.0.0.1:{port}"
            while process.poll() is None and not _is_ready(url):
                time.sleep(0.2)
            try:
                yield url
            finally:
                process.terminate()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ping").is_success
    except httpx.TransportError:
        return False


def _key(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}


if __name__ == "__main__":
    main()
