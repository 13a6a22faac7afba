"""Requests go to a replica and answers come back piece by piece; what breaks unseen is asked again elsewhere."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NamedTuple, cast

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from ewe.engine.workers import Worker
from ewe.router.replicas import READY, UNREACHABLE, Replica, ReplicaSet
from ewe.router.routing_key import FindPassage, routing_key
from ewe.server.error_responses import RefusedError
from ewe.server.streaming import DONE, PING, record, unless_gone

_OF_THE_FIRST = ("/v1/files", "/v1/batches")  # what only one server keeps
_WITH_EFFECTS = (*_OF_THE_FIRST, "/v1/memories")  # what may have been done although the answer is lost
_OF_THE_CONNECTION = {b"connection", b"expect", b"host", b"keep-alive", b"proxy-authenticate"}
_OF_THE_CONNECTION |= {b"te", b"trailer", b"transfer-encoding", b"upgrade"}
# Servers close connections after 5 s without a request; one that is taken up just then would break.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=256, keepalive_expiry=2.0)
_CONNECT_S = 5.0
_FIND_S = 2.0  # for a passage that only helps to choose a replica
_LOST = RefusedError(502, "the server that wrote this answer is gone; ask again", code="replica_lost")
_END_OF_LOST_STREAM = f"\n\n{record(_LOST.body)}{DONE}".encode()

_log = logging.getLogger("ewe.server")


def open_client() -> httpx.AsyncClient:
    """The connections to the replicas. How long an answer may take is theirs to say."""
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))  # one client's must not reach the others
    timeout = httpx.Timeout(None, connect=_CONNECT_S)
    client = httpx.AsyncClient(limits=_LIMITS, timeout=timeout, trust_env=False, cookies=no_cookies)
    del client.headers["accept-encoding"]  # that is for our clients to say
    return client


@dataclass(frozen=True, slots=True)
class _Call:
    """A request to be passed on. target: as it came; path: what it means to a replica.

    content: its whole body, or what comes of it, which can be read only once.
    """

    method: str
    target: bytes
    path: str
    headers: list[tuple[bytes, bytes]]
    content: bytes | AsyncIterator[bytes]
    key: str = ""

    def is_under(self, paths: tuple[str, ...]) -> bool:
        return self.path.startswith(paths)

    @property
    def may_repeat(self) -> bool:
        """Whether nothing is done twice if it is asked twice."""
        return self.method in ("GET", "HEAD") or not self.is_under(_WITH_EFFECTS)


class _Refusal(NamedTuple):
    """How a replica says that it takes nothing now."""

    start: Message
    body: bytes


class Proxy:
    """An ASGI app; the server's middleware around it bounds bodies and answers errors.

    find_passage: what the key of a question is made with, called in a thread (None: with its words).
    """

    def __init__(
        self, replicas: ReplicaSet, client: httpx.AsyncClient, find_passage: FindPassage | None = None
    ) -> None:
        self._replicas = replicas
        self._client = client
        self._finder: Worker | None = None
        if find_passage is not None:
            key_of = partial(routing_key, find_passage=find_passage)
            self._finder = Worker("routing", lambda bodies: list(map(key_of, bodies)), wake=lambda: None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request; raises RefusedError, then nothing was sent."""
        if self._replicas.is_draining:
            raise RefusedError(503, "the server is shutting down", code="shutting_down")
        request = Request(scope, receive)
        try:
            call = await self._read(request)
            work = asyncio.ensure_future(self._serve(call, send))
            # While a body is still read, that tells of a client who has gone.
            refusal = await (unless_gone(request, work) if isinstance(call.content, bytes) else work)
        except ClientDisconnect as error:
            raise RefusedError(499, "the client has gone") from error
        if refusal is not None:
            await send(refusal.start)
            await send({"type": "http.response.body", "body": refusal.body})

    async def _read(self, request: Request) -> _Call:
        target: bytes = request.scope["raw_path"]
        if request.scope["query_string"]:
            target += b"?" + request.scope["query_string"]
        path = _path(target)
        # The length is that of the body as we have read it, which the client may have sent in chunks.
        headers = _passed_on(request.headers.raw, b"x-request-id", b"content-length")
        headers.append((b"x-request-id", request.scope["state"]["request_id"].encode()))
        if request.method == "POST" and path == _OF_THE_FIRST[0]:
            return _Call(request.method, target, path, headers, request.stream())
        content = await request.body()
        return _Call(request.method, target, path, headers, content, await self._key(content))

    async def _key(self, content: bytes) -> str:
        """The key of a body; empty for none, or one that every replica refuses."""
        try:
            body = json.loads(content or b"null")
            if not isinstance(body, dict):
                return ""
            found = None if self._finder is None else await self._found_key(self._finder, body)
            return routing_key(body) if found is None else found
        except (ValueError, RecursionError):
            return ""

    async def _found_key(self, finder: Worker, body: dict[str, Any]) -> str | None:
        """The key with a passage; None if that fails or takes long: a datastore that hangs holds nobody up."""
        loop, found = asyncio.get_running_loop(), asyncio.Event()
        job = finder.submit(body, _FIND_S, lambda: loop.call_soon_threadsafe(found.set))
        try:
            await asyncio.wait_for(found.wait(), _FIND_S)
        except TimeoutError:
            finder.abandon_overdue(job.deadline)
        return cast(str | None, job.result)

    async def _serve(self, call: _Call, send: Send) -> _Refusal | None:
        """Asks one replica after the other until one answers; gives the last refusal if none takes the request.

        A request that two were lost over is asked no more: it may be what they were lost over.
        """
        tried: set[str] = set()
        refusal: _Refusal | None = None
        was_lost = False
        while (replica := self._next(call, tried)) is not None:
            tried.add(replica.name)
            try:
                with replica.serving():
                    refusal = await self._ask(replica, call, send)
                if refusal is None:
                    return None
            except httpx.ConnectError:
                replica.state = UNREACHABLE  # until it is looked at again
            except httpx.TransportError as error:
                if was_lost or not call.may_repeat:
                    message = "the server was lost before it answered: look whether it did what it was asked"
                    raise RefusedError(502, message, code="replica_lost", may_retry=False) from error
                was_lost = True
            replica.failed += 1
            _log.warning("not answered", extra={"fields": {"replica": replica.name, "state": replica.state}})
        if refusal is None:
            raise RefusedError(503, "no server that could answer is ready; try again in a moment", code="no_replica")
        return refusal

    def _next(self, call: _Call, tried: set[str]) -> Replica | None:
        if not call.is_under(_OF_THE_FIRST):
            return self._replicas.choose(call.key, tried)
        first = self._replicas.replicas[0]
        return None if first.name in tried or first.state != READY else first

    async def _ask(self, replica: Replica, call: _Call, send: Send) -> _Refusal | None:
        """Passes an answer on, or gives the refusal; raises httpx.TransportError if all broke before it was sent."""
        url = httpx.URL(replica.url).copy_with(raw_path=call.target)
        asking = self._client.stream(call.method, url, headers=call.headers, content=call.content)
        async with AsyncExitStack() as stack:
            async with replica.waiting():
                response = await stack.enter_async_context(asking)
                headers = [*_passed_on(response.headers.raw, b"date"), (b"x-ewe-replica", replica.name.encode())]
                start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
                pieces = response.aiter_raw()
                if response.status_code == 503 and "retry-after" in response.headers:
                    return _Refusal(start, b"".join([piece async for piece in pieces]))
                held = await anext(pieces, b"")
                is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
                if is_stream:  # its first piece only opens it: whoever is lost before the first news can be replaced
                    held += await _news(pieces)
            await send(start)
            await send({"type": "http.response.body", "body": held, "more_body": True})
            end: bytes | None = b""
            try:
                async with replica.waiting():
                    async for piece in pieces:
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
            except httpx.TransportError:
                replica.failed += 1
                _log.warning("broken off", extra={"fields": {"replica": replica.name, "state": replica.state}})
                end = _END_OF_LOST_STREAM if is_stream else None
            if end is not None:  # else there is none, so that nobody takes the answer for whole
                await send({"type": "http.response.body", "body": end})
        return None


async def _news(pieces: AsyncIterator[bytes]) -> bytes:
    """The pieces of a stream up to the first that holds a record, or that says for a long silence that all is well."""
    found = b""
    async for piece in pieces:
        found += piece
        if b"data:" in piece or PING.encode() in piece:
            break
    return found


def _path(target: bytes) -> str:
    """The path that a replica sees: without escapes and "..". Raises RefusedError for a target that is no path."""
    try:
        if target.startswith(b"/"):  # anything else would change whom we ask
            return httpx.URL("http://replica").copy_with(raw_path=target).path
    except (httpx.InvalidURL, ValueError):
        pass
    raise RefusedError(400, "the target of a request must be a path")


def _passed_on(headers: Iterable[tuple[bytes, bytes]], *without: bytes) -> list[tuple[bytes, bytes]]:
    """The headers that are not about one connection only, and not named in `without`."""
    left_out = _OF_THE_CONNECTION.union(without)
    return [(name, value) for name, value in headers if name.lower() not in left_out]
