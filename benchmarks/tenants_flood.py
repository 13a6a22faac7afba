"""A client that sends the same request as fast as it is answered, until it is ended; see benchmarks/tenants.py.

Its arguments: the server's address, the flood's name, the number of connections, and the process's `nice`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

import httpx

_CHATS = "/v1/chat/completions"
FLOODS: dict[str, tuple[str, Any]] = {
    "verify": ("/v1/verify", {"text": "The river is 320 km long. The town was founded in 1850. " * 10}),
    "large_chats": (_CHATS, {"messages": [{"role": "user", "content": "words " * 650_000}]}),
    "longest_read_chats": (_CHATS, {"messages": [{"role": "user", "content": "words " * 330_000}]}),
}


async def flood(url: str, name: str, connections: int) -> None:
    """Sends until it is ended."""
    path, body = FLOODS[name]
    content = json.dumps(body).encode()
    headers = {"authorization": "Bearer flood", "content-type": "application/json"}

    async def send(http: httpx.AsyncClient) -> None:
        while True:
            with contextlib.suppress(httpx.TransportError):  # what is too large may be refused before it has been sent
                await http.post(path, content=content, headers=headers)

    async with httpx.AsyncClient(base_url=url, timeout=120.0) as http:
        await asyncio.gather(*(send(http) for _ in range(connections)))


if __name__ == "__main__":
    os.nice(int(sys.argv[4]))
    asyncio.run(flood(sys.argv[1], sys.argv[2], int(sys.argv[3])))
