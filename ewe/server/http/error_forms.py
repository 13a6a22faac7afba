"""Errors as each API spells them: a request's path says whose form its caller reads.

All forms hold OpenAI's `code` under `error`, which is what the router goes by.
"""

from typing import Any

from ewe.server.http.sse import DONE, record
from ewe.server.schemas.common import ErrorBody, ErrorDetail

ANTHROPIC, COUNT_TOKENS = "/v1/messages", "/v1/messages/count_tokens"
COHERE, COHERE_EMBED = "/v2/chat", "/v2/embed"
COHERE_TOKENIZE, COHERE_DETOKENIZE = "/v1/tokenize", "/v1/detokenize"
"""Paths of the routes whose clients are not OpenAI's."""

_OF_ANTHROPIC = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def error_body(path: str, status: int, detail: ErrorDetail) -> dict[str, Any]:
    """The body of an error for whoever asked this path."""
    if path.startswith(ANTHROPIC):
        kind = _OF_ANTHROPIC.get(status) or ("invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {**detail.model_dump(), "type": kind}}
    if path in (COHERE, COHERE_EMBED, COHERE_TOKENIZE, COHERE_DETOKENIZE):
        return {"message": detail.message, "error": detail.model_dump()}
    return ErrorBody(error=detail).model_dump()


def error_record(path: str, status: int, detail: ErrorDetail) -> str:
    """The record of a stream that breaks off, for whoever asked this path."""
    body = error_body(path, status, detail)
    if path == ANTHROPIC:  # its clients pass over records without the name of an event
        return record(body, "error")
    if path == COHERE:  # its clients know no event for errors but the end
        delta = {"finish_reason": "ERROR", "error": detail.message}
        return record({"type": "message-end", "delta": delta, "error": body["error"]}, "message-end")
    return record(body)


def end_of_stream(path: str) -> str:
    """What follows the last record."""
    return "" if path == ANTHROPIC else DONE
