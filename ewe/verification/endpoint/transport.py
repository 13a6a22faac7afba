"""One JSON document posted to a server, one JSON document back, within a time."""

import json
import time
from typing import Any

import urllib3
from pydantic_core import from_json
from urllib3 import Retry
from urllib3.exceptions import HTTPError, InvalidHeader, LocationParseError, NewConnectionError, TimeoutError

from ewe.errors import ConfigError
from ewe.verification.endpoint.protocol import CompletionError

_CONNECT_SECONDS = 10.0
_MAX_BYTES = 8 * 2**20
_CHUNK = 65536
_EXCERPT = 300
_RETRIED = frozenset({408, 425, 429})


class TransientError(CompletionError):
    """A failure that may pass: no connection, time-out, overload. after_s: seconds that the server asks to wait."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class RefusedError(CompletionError):
    """An answer with an HTTP status that another try will not change."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Transport:
    """Posts to one URL over kept connections; safe to share between threads.

    url: http or https, without credentials; headers are sent along. Redirects are not followed, so that they cannot
    carry the headers elsewhere. Raises ConfigError for a URL that cannot be used.
    """

    def __init__(self, url: str, headers: dict[str, str], connections: int) -> None:
        try:
            parsed = urllib3.util.parse_url(url)
        except LocationParseError as error:
            raise ConfigError(f"{url!r} is no URL: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise ConfigError(f"an endpoint's URL begins with http:// or https:// and a host, got {url!r}")
        if parsed.auth:
            raise ConfigError("an endpoint's URL must not hold credentials; put the key into the environment")
        self._url = url
        self._headers = {"Content-Type": "application/json", **headers}
        self._pool = urllib3.PoolManager(maxsize=connections, retries=False)

    def post(self, document: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """The server's answer to `document`; raises TransientError or CompletionError, each naming the URL."""
        deadline = time.monotonic() + timeout_s
        timeout = urllib3.Timeout(connect=min(_CONNECT_SECONDS, timeout_s), read=timeout_s)
        try:
            response = self._pool.request(
                "POST",
                self._url,
                body=json.dumps(document).encode(),
                headers=self._headers,
                timeout=timeout,
                redirect=False,
                preload_content=False,
            )
            try:
                body = self._read(response, deadline)
            finally:
                response.release_conn()
        except NewConnectionError as error:  # a kind of time-out for urllib3
            raise TransientError(f"{self._url} cannot be reached: {error}") from error
        except TimeoutError as error:
            raise TransientError(f"{self._url} did not answer within {timeout_s:.3g} s") from error
        except (HTTPError, OSError) as error:
            raise TransientError(f"{self._url} cannot be reached: {error}") from error
        if response.status != 200:
            raise self._refusal(response, body)
        return self._parse(body)

    def _read(self, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        """The whole body; a server that trickles or floods is left."""
        body = bytearray()
        while chunk := response.read1(_CHUNK):
            body += chunk
            late, large = time.monotonic() > deadline, len(body) > _MAX_BYTES
            if late or large:
                response.close()
                if late:
                    raise TransientError(f"{self._url} did not finish its answer in time")
                raise CompletionError(f"{self._url} sent more than {_MAX_BYTES} bytes")
        return bytes(body)

    def _refusal(self, response: urllib3.BaseHTTPResponse, body: bytes) -> CompletionError:
        """The error of an answer that is no success, with what the server says."""
        message = " ".join(body[: 4 * _EXCERPT].decode("utf-8", "replace").split())[:_EXCERPT]
        message = f"{self._url} answered HTTP {response.status}" + (f": {message}" if message else "")
        if response.status in _RETRIED or response.status >= 500:
            return TransientError(message, retry_after(response.headers.get("Retry-After")))
        if 300 <= response.status < 400:
            message += " (redirects are not followed; give the final URL)"
        return RefusedError(message, response.status)

    def _parse(self, body: bytes) -> dict[str, Any]:
        try:
            document = from_json(body)  # unlike json, it refuses deep nesting without deep calls
        except ValueError as error:
            message = body[:_EXCERPT].decode("utf-8", "replace")
            raise CompletionError(f"{self._url} answered something that is not JSON: {message!r}") from error
        if not isinstance(document, dict):
            raise CompletionError(f"{self._url} answered JSON that is not an object")
        return document


def retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for (a number or an HTTP date); None if it says nothing usable."""
    try:
        return Retry().parse_retry_after(value) if value else None
    except InvalidHeader:
        return None
