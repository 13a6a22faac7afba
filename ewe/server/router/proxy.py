"""Requests go to a replica and answers come back; what is refused, or breaks unseen, is asked again elsewhere."""

import asyncio
import json
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from ewe.engine.evidence.workers import Worker
from ewe.server.http.error_responses import RefusedError
from ewe.server.request_handling.thread_work import unless_gone
from ewe.server.router.forwarding import OF_THE_FIRST, Call, Refusal, ask, passed_on
from ewe.server.router.replicas import ENGINE_DEAD, QUEUE_FULL, READY, UNREACHABLE, Replica, ReplicaSet, is_local
from ewe.server.traffic.affinity import SESSION_HEADER, FindPassage, affinity_key

_OURS = (b"x-request-id", b"x-forwarded-for", b"x-forwarded-proto")  # headers in which servers trust the router
_FIND_S = 2.0  # for a passage that only helps to choose a replica

_log = logging.getLogger("ewe.server")


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
            key_of = partial(affinity_key, "", find_passage=find_passage)
            self._finder = Worker("routing", lambda bodies: list(map(key_of, bodies)), wake=lambda: None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request; raises RefusedError, then nothing was sent."""
        if self._replicas.is_draining:
            raise RefusedError(503, "the server is shutting down", code="shutting_down")
        if scope["method"] == "CONNECT":
            raise RefusedError(405, "this is no proxy for connections", code="method_not_allowed")
        request, has_begun = Request(scope, receive), False

        async def send_seen(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            call = await self._read(request)
            work = asyncio.ensure_future(self._serve(call, send_seen))
            # While a body is still read, that tells of a client who has gone.
            refusal = await (unless_gone(request, work) if isinstance(call.content, bytes) else work)
        except ClientDisconnect as error:
            raise RefusedError(499, "the client has gone") from error
        except RefusedError:
            if has_begun:  # the client has gone within its answer, and there is nobody to tell
                return
            raise
        if refusal is not None:
            await send(refusal.start)
            await send({"type": "http.response.body", "body": refusal.body})

    async def _read(self, request: Request) -> Call:
        target: bytes = request.scope["raw_path"]
        if request.scope["query_string"]:
            target += b"?" + request.scope["query_string"]
        path = _path(target)
        # The length is that of the body as we have read it, which the client may have sent in chunks.
        headers = passed_on(request.headers.raw, b"content-length", *_OURS)
        headers.append((b"x-request-id", request.scope["state"]["request_id"].encode()))
        if request.client is not None:
            headers.append((b"x-forwarded-for", request.client.host.encode()))
        if request.method == "POST" and path == OF_THE_FIRST[0]:
            return Call(request.method, target, path, headers, request.stream())
        content = await request.body()
        return Call(request.method, target, path, headers, content, await self._key(request, content))

    async def _key(self, request: Request, content: bytes) -> str:
        """The key of a request; empty for none, or a body that every replica refuses."""
        session = request.headers.get(SESSION_HEADER, "")
        try:
            body = None if session else json.loads(content or b"null")
            key = None
            if self._finder is not None and isinstance(body, dict):
                key = await self._passage_key(self._finder, body)
            return affinity_key(session, body) if key is None else key
        except (ValueError, RecursionError):
            return ""

    async def _passage_key(self, finder: Worker, body: dict[str, Any]) -> str | None:
        """The key with a passage; None if that fails or takes long: a datastore that hangs holds nobody up."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        job = finder.submit(body, _FIND_S, lambda: loop.call_soon_threadsafe(done.set))
        try:
            await asyncio.wait_for(done.wait(), _FIND_S)
        except TimeoutError:
            finder.abandon_overdue(job.deadline)
        return cast(str | None, job.result)

    async def _serve(self, call: Call, send: Send) -> Refusal | None:
        """Asks one replica after the other until one answers; gives a refusal if none takes the request."""
        tries = _Tries(call)
        while (replica := self._next(call, tries.names)) is not None:
            tries.names.add(replica.name)
            try:
                with replica.serving(call.asks_model):
                    refusal = await ask(self._client, replica, call, send)
                if refusal is None:
                    return None
                tries.refused(replica, refusal)
            except httpx.LocalProtocolError as error:
                raise RefusedError(400, f"this request cannot be passed on: {error}") from error
            except httpx.TransportError as error:
                tries.failed(replica, error)
            replica.failed += 1
            _log.warning("not answered", extra={"fields": {"replica": replica.name, "state": replica.state}})
            if tries.is_over:
                break
        return tries.outcome(not call.is_under(OF_THE_FIRST) and self._replicas.has_busy(tries.names))

    def _next(self, call: Call, tried: set[str]) -> Replica | None:
        if not call.is_under(OF_THE_FIRST):
            return self._replicas.choose(call.key, tried, call.asks_model)
        first = self._replicas.replicas[0]
        if first.state != READY and not tried:
            message = "the first server, which keeps files and batches, is not ready; try again in a moment"
            raise RefusedError(503, message, code="no_replica")
        return None if tried else first


@dataclass(slots=True)
class _Tries:
    """What has become of one request so far; names: the replicas that were asked.

    A request that two were lost over is asked no more: it may be what they were lost over.
    """

    call: Call
    names: set[str] = field(default_factory=set)
    _refusals: list[Refusal] = field(default_factory=list)
    _last: Refusal | None = None
    _lost: int = 0
    _saw_busy: bool = False

    def refused(self, replica: Replica, refusal: Refusal) -> None:
        """Takes a refusal in."""
        if refusal.code != ENGINE_DEAD:
            self._refusals.append(refusal)
            return
        replica.state = ENGINE_DEAD  # until it is looked at again
        if refusal.was_begun:
            self._lost += 1
            self._last = refusal

    def failed(self, replica: Replica, error: httpx.TransportError) -> None:
        """Takes in that a replica gave no answer; raises RefusedError if others must not be asked instead."""
        if isinstance(error, httpx.ConnectTimeout) or (isinstance(error, httpx.ConnectError) and is_local(error)):
            self._saw_busy = True
        elif isinstance(error, httpx.ConnectError):
            replica.state = UNREACHABLE  # until it is looked at again
        else:
            self._lost += 1
            if self.is_over:
                message = "the server was lost before it answered: look whether it did what it was asked"
                raise RefusedError(502, message, code="replica_lost", may_retry=False) from error

    @property
    def is_over(self) -> bool:
        """Whether nobody else is to be asked."""
        return self._lost > (1 if self.call.may_repeat else 0)

    def outcome(self, has_busy: bool) -> Refusal:
        """What to answer when nobody took it; has_busy: whether there is one without room. Raises RefusedError."""
        if self.is_over and self._last is not None:
            return self._last
        if self._refusals and (refusal := min(self._refusals, key=lambda each: each.status)).status == 429:
            return refusal
        if has_busy or self._saw_busy:
            message = "every server has as much to do as it takes; try again in a moment"
            raise RefusedError(429, message, code=QUEUE_FULL)
        if self._refusals:
            return self._refusals[-1]
        raise RefusedError(503, "no server that could answer is ready; try again in a moment", code="no_replica")


def _path(target: bytes) -> str:
    """The path that a replica sees: without escapes and "..". Raises RefusedError for a target that is no path."""
    try:
        if target.startswith(b"/"):  # anything else would change whom we ask
            return httpx.URL("http://replica").copy_with(raw_path=target).path
    except (httpx.InvalidURL, ValueError):
        pass
    raise RefusedError(400, "the target of a request must be a path")
