"""The router before servers that play a part, behind a port of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from server_rig import http, httpx, serving, wait_for
from stand_in_servers import Server

from ewe.server.router.replicas import Replica, ReplicaSet
from ewe.server.router.router_app import create_router

CHAT = "/v1/chat/completions"


@contextmanager
def routing(urls: Sequence[str], max_body_bytes: int = 1000) -> Iterator[tuple[str, ReplicaSet]]:
    """The address of a router, and its replicas, all of which are ready."""
    replicas = ReplicaSet([Replica(str(number), url) for number, url in enumerate(urls)])
    with serving(create_router(replicas, max_body_bytes)) as address:
        wait_for(lambda: all(each.state == "ready" for each in replicas.replicas), "all are ready")
        yield address, replicas


def ask(url: str, question: str = "Who?", headers: Any = None, **body: Any) -> httpx.Response:
    messages = [{"role": "user", "content": question}]
    return http.post(f"{url}{CHAT}", json={"messages": messages, **body}, headers=headers)


def owner_first(servers: Sequence[Server], url: str) -> tuple[Server, Server]:
    """Of two servers the one that the question belongs to, and the other one; both have seen nothing then."""
    name = int(ask(url).headers["x-ewe-replica"])
    for server in servers:
        server.seen.clear()
    return servers[name], servers[1 - name]
