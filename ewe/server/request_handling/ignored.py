"""Fields of requests that have no effect here: told in a header and once in the log, or refused."""

import inspect
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import wraps
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.routing import APIRoute

from ewe.server.http.error_responses import RefusedError
from ewe.server.request_handling.json_bodies import BoundedRequest
from ewe.server.schemas.common import RequestModel

HEADER = "x-ewe-ignored"
_MOST_NAMES = 32  # in one header
_MOST_CHARACTERS = 64  # of one name
_MOST_LOGGED = 256  # names of one process: whoever makes names up must not fill the log

_log = logging.getLogger("ewe.server")


class IgnoredFields:
    """strict: whether fields that this server does not know are refused instead of ignored."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._logged: set[str] = set()

    def take(self, request: Request, parts: Iterable[RequestModel]) -> None:
        """Notes what a request's parts say without effect, for `HEADER`; raises RefusedError if that is refused."""
        fields = [field for part in parts for field in _ignored_fields(part)]
        if self._strict:
            unknown = next((field.name for field in fields if not field.is_label), None)
            if unknown is not None:
                raise RefusedError(400, f"{unknown}: this server knows no such field (server.strict)", param=unknown)
        # As a header can carry them.
        plain = (quote(field.name, safe="", errors="replace")[:_MOST_CHARACTERS] or '""' for field in fields)
        names = list(dict.fromkeys(plain))
        if names:
            request.scope["state"]["ignored"] = ", ".join(names[:_MOST_NAMES] + ["..."] * (len(names) > _MOST_NAMES))
        for name in set(names) - self._logged:
            if len(self._logged) < _MOST_LOGGED:
                self._logged.add(name)
                _log.warning("a field of requests is ignored", extra={"fields": {"field": name}})


class RequestRoute(APIRoute):
    """A route whose requests are bounded, and looked through for fields without effect, before they are served."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        @wraps(endpoint)
        async def looked_through(**arguments: Any) -> Any:
            request: Request = arguments["request"]
            parts = [value for value in arguments.values() if isinstance(value, RequestModel)]
            request.app.state.ignored.take(request, parts)
            return await endpoint(**arguments)

        # With the types themselves in place of their names, which FastAPI could not look up from here.
        looked_through.__signature__ = inspect.signature(endpoint, eval_str=True)  # type: ignore[attr-defined]
        super().__init__(path, looked_through, **settings)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What serves a request."""
        handle = super().get_route_handler()

        async def handle_bounded(request: Request) -> Response:
            return await handle(BoundedRequest(request.scope, request.receive))

        return handle_bounded


class _Ignored(NamedTuple):
    """A field that was given and has no effect; is_label: whether it is one that never changes an answer."""

    name: str
    is_label: bool


def _ignored_fields(part: RequestModel, within: str = "") -> Iterator[_Ignored]:
    """The fields without effect of a request and of all its parts, as `documents.page`."""
    yield from (_Ignored(within + name, False) for name in part.unknown_fields)
    for name in type(part).model_fields:
        value = getattr(part, name)
        if name in part.labels and value is not None:
            yield _Ignored(within + name, True)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, RequestModel):
                yield from _ignored_fields(item, f"{within}{name}.")
