"""Around every request: keys, limits of heads and bodies, an id, and a line in the log.

Plain ASGI: with Starlette's BaseHTTPMiddleware the routes would not learn that a client has hung up.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import re
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Literal

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ewe.server.http.error_responses import RefusedError, answer_of, refusal_of
from ewe.server.observability.log_lines import PROBES, LogFormatter, OnceAMinute, say_as, shown_method, shown_path
from ewe.server.request_handling.ignored import HEADER as IGNORED_HEADER
from ewe.server.settings import ServerSettings
from ewe.server.traffic.body_limits import BodyBudget, limited, too_large
from ewe.server.traffic.fair_queue import tenant_of
from ewe.server.traffic.pacing import Pacing

if TYPE_CHECKING:
    from ewe.server.observability.tracing import Tracing

_log = logging.getLogger("ewe.server")
_MOST_HEADERS = 256  # what is done with each of them may take the longer the more there are
_BODIES, _FILES = 16, 2  # largest ones of a tenant that may be under way at once
_OPEN = frozenset({"/health", "/ping"})
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def set_up_logs(form: Literal["text", "json"]) -> None:
    """Has the server's log, and uvicorn's, written to standard error, and what is said of the start."""
    say_as(form)
    own, foreign = logging.StreamHandler(sys.stderr), logging.StreamHandler(sys.stderr)
    for handler in (own, foreign):
        handler.setFormatter(LogFormatter(form))
    foreign.addFilter(OnceAMinute())  # whoever sends no HTTP must not fill the log
    for name, level, handler in (
        ("ewe.server", logging.INFO, own),
        ("ewe.longterm", logging.INFO, own),
        ("uvicorn", logging.WARNING, foreign),
        ("asyncio", logging.WARNING, foreign),
    ):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False


def open_tracing(settings: ServerSettings) -> Tracing | None:
    """What makes spans, if the settings ask for them; raises ConfigError where its packages are missing."""
    if not settings.tracing:
        return None
    from ewe.server.observability.tracing import Tracing

    return Tracing.to_collector()


def log_request(scope: Scope, request_id: str, status: int, seconds: float) -> None:
    """One line for a request. status 0: the client had gone before the answer."""
    trace = {"trace_id": scope["state"]["trace_id"]} if "trace_id" in scope["state"] else {}
    request = {"method": shown_method(scope["method"]), "path": shown_path(scope["path"])}
    fields = {"request_id": request_id, **trace, **request, "status": status, "seconds": round(seconds, 4)}
    _log.info("request", extra={"fields": fields})


class RequestLogMiddleware:
    """Gives every request an id and a line in the log, and its answer the headers about both. Goes around all else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._last_status = dict.fromkeys(PROBES, 200)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        begin, status = time.monotonic(), 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                if "ignored" in scope["state"]:
                    headers[IGNORED_HEADER] = scope["state"]["ignored"]
            await send(message)

        try:
            await self._app(scope, receive, send_marked)
        finally:
            # Probes come every second: what they hear has a line when it changes.
            if self._last_status.get(scope["path"]) != status:
                log_request(scope, request_id, status, time.monotonic() - begin)
            if scope["path"] in PROBES:
                self._last_status[scope["path"]] = status


class AccessMiddleware:
    """Lets requests in. keys: what opens the server, empty for one that is open to all; max_body_bytes: per request.

    max_file_bytes: of a file that is sent. A key comes as a bearer token, as the password of basic authentication,
    which browsers can ask for, or in `x-api-key`. pacing: of tenants' work (None: all is let in at once).
    keys_are_checked_behind: whether each key that is given counts as a tenant, though nothing is known of it here.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: Sequence[str],
        max_body_bytes: int,
        max_file_bytes: int = 0,
        pacing: Pacing | None = None,
        keys_are_checked_behind: bool = False,
    ) -> None:
        self._app = app
        self._pacing = pacing
        self._keys_are_checked_behind = keys_are_checked_behind
        self._keys = [hashlib.sha256(key.encode()).digest() for key in keys]
        self._max_body_bytes = max_body_bytes
        self._max_file_bytes = max(max_file_bytes, max_body_bytes)
        self._bodies = BodyBudget(_BODIES * self._max_body_bytes)
        self._files = BodyBudget(_FILES * self._max_file_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        has_begun = False

        async def send_seen(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._serve(scope, headers, receive, send_seen)
        except RefusedError as error:
            await answer_of(error, scope["path"], _challenge(error, headers))(scope, receive, send)
        except Exception as error:  # whatever it is, the client gets an answer and the log the reason
            _log.exception("request %s failed", scope["state"]["request_id"])
            if not has_begun:
                await answer_of(refusal_of(error), scope["path"])(scope, receive, send)

    async def _serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        if len(scope["headers"]) > _MOST_HEADERS:
            raise RefusedError(431, f"a request may have {_MOST_HEADERS} headers", code="too_many_headers")
        if self._keys and "key" not in scope["state"]:  # a line of a batch has its owner's
            scope["state"]["key"] = self._name_of_key(headers)
            if not scope["state"]["key"] and scope["path"] not in _OPEN:
                message = "this server needs an API key: send it as `Authorization: Bearer KEY` or `x-api-key: KEY`"
                raise RefusedError(401, message, code="invalid_api_key")
        length = headers.get("content-length", "")
        async with nullcontext() if self._pacing is None else self._pacing.around(scope, length):
            await self._bounded(scope, length, receive, send)

    async def _bounded(self, scope: Scope, length: str, receive: Receive, send: Send) -> None:
        """Serves a request whose body is as large as it may be; raises RefusedError for a larger one."""
        is_file = scope["path"] == "/v1/files"
        most = self._max_file_bytes if is_file else self._max_body_bytes
        if length.isdecimal() and int(length) > most:
            raise too_large(most)
        budget = self._files if is_file else self._bodies
        with budget.share(self._holder(scope)) as take:
            await self._app(scope, limited(receive, most, take), send)

    def _holder(self, scope: Scope) -> str:
        """Whose bytes they are: the tenant's, and before servers that check keys those of who gives this one."""
        given = _given_key(Headers(scope=scope)) if self._keys_are_checked_behind else b""
        return hashlib.sha256(given).hexdigest() if given else tenant_of(scope)

    def _name_of_key(self, headers: Headers) -> str:
        """A name for the key that does not tell it; empty for a wrong one. Takes the same time for any key."""
        digest = hashlib.sha256(_given_key(headers)).digest()
        matches = [hmac.compare_digest(digest, key) for key in self._keys]
        return hashlib.sha256(b"name" + digest).hexdigest()[:16] if any(matches) else ""


def _given_key(headers: Headers) -> bytes:
    if "authorization" not in headers:  # so do Anthropic's clients have it
        return headers.get("x-api-key", "").encode("latin-1")
    scheme, _, value = headers["authorization"].partition(" ")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except ValueError:  # no base64
            return b""
    # Headers come as Latin-1, whatever their bytes mean.
    return value.strip().encode("latin-1") if scheme.lower() == "bearer" else b""


def _challenge(error: RefusedError, headers: Headers) -> dict[str, str]:
    """How to authenticate; a browser that opens the page asks its user for the key."""
    if error.status != 401:
        return {}
    return {"www-authenticate": 'Basic realm="ewe"' if "text/html" in headers.get("accept", "") else "Bearer"}
