"""A client that sends the same request as fast as it is answered, until it is ended; see benchmarks/tenants.py.

Its arguments: the server's address, the flood's name, and the number of connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

import httpx

_LOWEST = 19  # priority: what the client takes of the machine is none of the server's doing
_CHATS = "/v1/chat/completions"
_TEXT = "The river is 320 km long. The town was founded in 1850. " * 10
_BOOK = " ".join(f"In {year} the town beside the river had {31 * year} people and a mill." for year in range(8000))
_QUESTION: Any = {"role": "user", "content": "Who was Nurim Nurner?"}
FLOODS: dict[str, tuple[str, Any]] = {
    "verify": ("/v1/verify", {"text": _TEXT}),
    "verify_documents": ("/v1/verify", {"text": _TEXT, "documents": [_BOOK[:500_000]]}),
    "cited_documents": (
        "/v2/chat",
        {
            "model": "builtin",
            "messages": [_QUESTION],
            "max_tokens": 40,
            "documents": [{"id": "book", "data": {"text": _BOOK[:500_000]}}],
        },
    ),
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
    os.nice(_LOWEST)
    asyncio.run(flood(sys.argv[1], sys.argv[2], int(sys.argv[3])))
