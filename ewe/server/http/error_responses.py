"""Errors on the wire: every one has the same shape, and a status that tells a client what to do."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from ewe.errors import EngineDeadError, EWEError, InvalidRequestError, PromptTooLongError, SchemaError
from ewe.server.http.error_forms import error_body, error_record
from ewe.server.schemas.common import ErrorDetail

RETRY_AFTER_S = 2
_MOST_PROBLEMS = 16  # of one request that an answer tells
_LONGEST_TOLD = 500  # characters of one problem
_NAMES_OF_TYPES = frozenset(
    {
        "str",
        "int",
        "float",
        "Document",
        "TextPart",
        "InputMessage",
        "FunctionCall",
        "FunctionCallOutput",
        "ReasoningItem",
    }
)
_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class RefusedError(EWEError):
    """A request that gets no answer.

    param: the field that it is about; code: for programs. Clients of OpenAI's retry 429, 5xx and some others by
    themselves; may_retry: whether they should.
    """

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None, may_retry: bool = True
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.may_retry = may_retry

    @property
    def detail(self) -> ErrorDetail:
        """What clients are told, in OpenAI's words."""
        kind = _TYPES.get(self.status) or ("invalid_request_error" if self.status < 500 else "server_error")
        return ErrorDetail(message=str(self), type=kind, param=self.param, code=self.code)

    @property
    def body(self) -> dict[str, Any]:
        """What goes over the wire, in OpenAI's form."""
        return self.body_for("")

    def body_for(self, path: str) -> dict[str, Any]:
        """What goes over the wire to who asked this path."""
        return error_body(path, self.status, self.detail)

    def record_for(self, path: str) -> str:
        """What tells who asked this path, within a stream, that it breaks off."""
        return error_record(path, self.status, self.detail)

    @property
    def headers(self) -> dict[str, str]:
        """Whether and when to try again."""
        if not self.may_retry:
            return {"x-should-retry": "false"}
        return {"retry-after": str(RETRY_AFTER_S)} if self.status in (429, 503) else {}


def refusal_of(error: Exception) -> RefusedError:
    """What a client is told of an error; of an unforeseen one only that there was one."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, PromptTooLongError):
        return RefusedError(400, str(error), code="context_length_exceeded")
    if isinstance(error, InvalidRequestError):
        field, colon, _ = str(error).partition(": ")  # what is wrong with a field begins with its name
        code = "invalid_json_schema" if isinstance(error, SchemaError) else None
        return RefusedError(400, str(error), param=field if colon and " " not in field else None, code=code)
    if isinstance(error, EngineDeadError):
        return RefusedError(500, f"the engine is not running: {error}", code="engine_dead", may_retry=False)
    return RefusedError(500, "an internal error; the server's log has it", code="internal_error", may_retry=False)


def shortened(text: str) -> str:
    """No answer repeats to its client all that the client sent."""
    return text if len(text) <= _LONGEST_TOLD else f"{text[:_LONGEST_TOLD]}..."


def answer_of(refused: RefusedError, path: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The HTTP answer for an error, to who asked this path."""
    return JSONResponse(refused.body_for(path), refused.status, {**refused.headers, **(headers or {})})


def code_of(body: bytes) -> str:
    """The code of an error as servers send it; empty if that is none."""
    try:
        code = json.loads(body)["error"]["code"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return code if isinstance(code, str) else ""


def add_handlers(app: Starlette) -> None:
    """Has every error of the app, its framework's own included, answered in the one shape."""

    async def on_refusal(request: Request, error: Exception) -> JSONResponse:
        return answer_of(refusal_of(error), request.scope["path"])

    async def on_invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return answer_of(_invalid(error), request.scope["path"])

    async def on_http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        if isinstance(cause := error.__cause__, ValueError | RecursionError):
            reason = "it is nested too deep" if isinstance(cause, RecursionError) else str(cause)
            return answer_of(_not_json(reason), request.scope["path"])
        message = f"{error.detail}: {request.method} {request.url.path}"
        codes = {413: "body_too_large", 404: "not_found", 405: "method_not_allowed"}
        refused = RefusedError(error.status_code, message, code=codes.get(error.status_code))
        return answer_of(refused, request.scope["path"], error.headers)

    app.add_exception_handler(EWEError, on_refusal)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)


def _invalid(error: RequestValidationError) -> RefusedError:
    """What is wrong with a request, its first problems; the first field is its param."""
    problems: dict[str, str] = {}
    # Of a field's alternatives, those that a value of its type could have been tell more than those that it could not.
    for item in sorted(error.errors(), key=lambda item: item["type"].endswith("_type")):
        if item["type"] == "json_invalid":
            return _not_json(item["ctx"]["error"])
        if item["loc"] == ("body",) and (item["type"] == "missing" or isinstance(item["input"], bytes)):
            return RefusedError(400, "send the body as JSON, with the header `content-type: application/json`")
        name = _field_name(item["loc"])
        problems.setdefault(name, _problem(item, name))
    first = next(iter(problems), None)
    summary = "; ".join(shortened(problem) for problem in islice(problems.values(), _MOST_PROBLEMS))
    more = len(problems) - _MOST_PROBLEMS
    return RefusedError(
        400, f"{summary}; and {more} more" if more > 0 else summary, param=shortened(first or "") or None
    )


def _not_json(reason: str) -> RefusedError:
    return RefusedError(400, f"the body is not valid JSON: {reason}", code="invalid_json")


def _field_name(location: tuple[int | str, ...]) -> str:
    """`messages.0.content` from a location; names of types, which pydantic adds for alternatives, are left out."""
    parts = [str(part) for part in location if isinstance(part, int) or str(part).isidentifier()]
    plain = [part for part in parts if part not in _NAMES_OF_TYPES]
    return ".".join(plain[1:] if plain[:1] in (["body"], ["query"]) else plain)


def _problem(item: dict[str, Any], name: str) -> str:
    where = name or "the body"
    if item["type"] == "extra_forbidden":
        return f"{where}: this server knows no such field"
    if item["type"] == "none_required" or (item["type"] == "too_long" and "at most 0" in item["msg"]):
        return f"not supported yet: {where}; leave it out"
    if item["type"] == "literal_error":
        return f"not supported yet: {where} with this value ({item['msg']})"
    return f"{where}: {item['msg'].removeprefix('Value error, ')}"
