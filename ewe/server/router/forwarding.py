"""One request to one replica: what is passed on there, and what comes back, piece by piece."""

import logging
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import NamedTuple

import httpx
from starlette.types import Message, Send

from ewe.server.http.error_forms import end_of_stream
from ewe.server.http.error_responses import RefusedError, code_of
from ewe.server.http.sse import DEATH, PING
from ewe.server.router.replicas import ENGINE_DEAD, QUEUE_FULL, Replica
from ewe.server.traffic.pacing import ANSWER_PATHS

OF_THE_FIRST = ("/v1/files", "/v1/batches")  # what only one server keeps
_WITH_EFFECTS = (*OF_THE_FIRST, "/v1/memories")  # what may have been done although the answer is lost
_OF_THE_CONNECTION = {b"connection", b"expect", b"host", b"keep-alive", b"proxy-authenticate", b"proxy-connection"}
_OF_THE_CONNECTION |= {b"te", b"trailer", b"transfer-encoding", b"upgrade"}
# Servers close connections after 5 s without a request; one that is taken up just then would break.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=256, keepalive_expiry=2.0)
_CONNECT_S = 5.0
_MOST_HELD = 1 << 20  # bytes of an answer that are looked through before it is passed on; no error takes as many
_MOST_HEADERS = 256
_END_OF_RECORD = re.compile(rb"\n\r?\n|\r\r")
_LOST = RefusedError(502, "the server that wrote this answer is gone; ask again", code="replica_lost")

_log = logging.getLogger("ewe.server")


def open_client() -> httpx.AsyncClient:
    """The connections to the replicas. How long an answer may take is theirs to say."""
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))  # one client's must not reach the others
    timeout = httpx.Timeout(None, connect=_CONNECT_S)
    client = httpx.AsyncClient(limits=_LIMITS, timeout=timeout, trust_env=False, cookies=no_cookies)
    del client.headers["accept-encoding"]  # that is for our clients to say
    return client


@dataclass(frozen=True, slots=True)
class Call:
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
        """Whether its path is one of these, or below."""
        return self.path.startswith(paths)

    @property
    def asks_model(self) -> bool:
        """Whether the model is to write: what a replica's capacity is about."""
        return self.method == "POST" and self.path in ANSWER_PATHS

    @property
    def may_repeat(self) -> bool:
        """Whether nothing is done twice if it is asked twice."""
        return self.method in ("GET", "HEAD") or not self.is_under(_WITH_EFFECTS)


class Refusal(NamedTuple):
    """An answer that says that there is none here; code: of its error; was_begun: whether it came too late for that."""

    start: Message
    body: bytes
    code: str
    was_begun: bool

    @property
    def status(self) -> int:
        """Its HTTP status."""
        return int(self.start["status"])


async def ask(client: httpx.AsyncClient, replica: Replica, call: Call, send: Send) -> Refusal | None:
    """Passes an answer on, or gives the refusal; raises httpx.TransportError if all broke before it was sent."""
    url = httpx.URL(replica.url).copy_with(raw_path=call.target)
    asking = client.stream(call.method, url, headers=call.headers, content=call.content)
    async with AsyncExitStack() as stack:
        async with replica.waiting():
            response = await stack.enter_async_context(asking)
            _check_head(response)
            answer = _Answer(replica, response, call.path)
            refusal = await answer.open()
        if refusal is None:
            await answer.pass_on(send)
    return refusal


def passed_on(headers: Iterable[tuple[bytes, bytes]], *without: bytes) -> list[tuple[bytes, bytes]]:
    """The headers that are not about one connection only, and not named in `without`."""
    given = list(headers)
    named = [value for name, value in given if name.lower() == b"connection"]
    of_this_one = {part.strip().lower() for value in named for part in value.split(b",")}
    left_out = _OF_THE_CONNECTION.union(without, of_this_one)
    return [(name, value) for name, value in given if name.lower() not in left_out]


def _check_head(response: httpx.Response) -> None:
    """Raises httpx.RemoteProtocolError for what no server of HTTP answers with."""
    if not 200 <= response.status_code < 600:
        raise httpx.RemoteProtocolError(f"a status of {response.status_code}")
    if len(response.headers.raw) > _MOST_HEADERS:
        raise httpx.RemoteProtocolError(f"more than {_MOST_HEADERS} headers")


def _as_seen_here(header: tuple[bytes, bytes], url: str) -> tuple[bytes, bytes]:
    """A header as it is true before the router; url: of the replica, where clients must not be led to."""
    name, value = header
    if name.lower() == b"location" and value.startswith(f"{url}/".encode()):
        return name, value[len(url) :]
    return header


class _Answer:
    """What a replica says: its beginning is looked at before anything is passed on."""

    def __init__(self, replica: Replica, response: httpx.Response, path: str) -> None:
        self._replica = replica
        self._path = path
        # A length beside chunks means nothing, and must not be told.
        without = [b"date", *([b"content-length"] if "transfer-encoding" in response.headers else [])]
        headers = [_as_seen_here(header, replica.url) for header in passed_on(response.headers.raw, *without)]
        headers.append((b"x-ewe-replica", replica.name.encode()))
        self._start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
        self._status = response.status_code
        self._may_retry = "retry-after" in response.headers
        self._is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        self._pieces = self._heard(response)
        self._held = b""

    async def open(self) -> Refusal | None:
        """Reads as much as shows whether this is an answer; gives the refusal if it is none."""
        if self._status in (429, 500, 503):
            return await self._open_error()
        self._held = await anext(self._pieces, b"")
        if self._is_stream:  # its first piece only opens it: whoever is lost before the first news can be replaced
            await self._read_news()
            if DEATH.encode() in self._held:
                return Refusal(self._start, self._held + await self._rest(), ENGINE_DEAD, was_begun=True)
        return None

    async def pass_on(self, send: Send) -> None:
        """Sends what was read and what comes; says so, where that can be said, if the rest is lost."""
        await send(self._start)
        await send({"type": "http.response.body", "body": self._held, "more_body": True})
        end: bytes | None = b""
        try:
            async with self._replica.waiting():
                async for piece in self._pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        except httpx.TransportError:
            self._replica.failed += 1
            fields = {"replica": self._replica.name, "state": self._replica.state}
            _log.warning("broken off", extra={"fields": fields})
            end = None
            if self._is_stream:
                end = f"\n\n{_LOST.record_for(self._path)}{end_of_stream(self._path)}".encode()
        if end is not None:  # else there is none, so that nobody takes the answer for whole
            await send({"type": "http.response.body", "body": end})

    async def _open_error(self) -> Refusal | None:
        self._held = await self._rest()
        if len(self._held) > _MOST_HELD:
            return None
        code = code_of(self._held)
        is_dead = code == ENGINE_DEAD and self._status != 429
        is_full = code == QUEUE_FULL and self._status == 429
        if is_dead or is_full or (self._status == 503 and self._may_retry):
            # A dead engine that is asked says 503; 500 says whoever lost it under way.
            return Refusal(self._start, self._held, code, was_begun=self._status == 500)
        return None

    async def _rest(self) -> bytes:
        """What comes, as far as it may be held."""
        content = b""
        async for piece in self._pieces:
            content += piece
            if len(content) > _MOST_HELD:
                break
        return content

    async def _read_news(self) -> None:
        """Reads up to the first whole record after the opening, or what says for a long silence that all is well."""
        begin = len(self._held)
        async for piece in self._pieces:
            self._held += piece
            start = self._held.find(b"data:", begin)
            is_whole = start >= 0 and _END_OF_RECORD.search(self._held, start) is not None
            if is_whole or PING.encode() in self._held[begin:] or len(self._held) > _MOST_HELD:
                return

    async def _heard(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """The pieces as they come, each of which is a sign of life."""
        self._replica.num_received += 1
        async for piece in response.aiter_raw():
            self._replica.num_received += 1
            yield piece
