"""What the two processes tell each other of requests, answers and errors, as JSON holds it and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pydantic import ConfigDict, TypeAdapter

from ewe import errors
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.inputs.request_tokenizer import Limits
from ewe.engine.request import TokenizedRequest
from ewe.engine.startup.engine_summary import EngineSummary
from ewe.engine.status import EngineStatus
from ewe.errors import ConfigError, EWEError
from ewe.server.engine_client.served_models import SentenceTask
from ewe.server.http.error_responses import RefusedError
from ewe.text.tool_calls.formats import FORMATS
from ewe.types import Generation, Passage, VerificationRequest, VerificationResult

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What stays as it is once an engine is loaded, in the words of `ServedEngine`.

    has_verifier: whether it has one of its own for finished texts. holds_text: whether text is held until it is final.
    places: sequences that run at once, which may follow from the device.
    """

    limits: Limits
    summary: EngineSummary | None
    device: str
    memory_lines: tuple[str, ...]
    sentence_models: dict[str, SentenceTask]
    has_verifier: bool
    holds_text: bool
    places: int
    status: EngineStatus


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A sentence encoder or a reranker; dimension: 0 for a reranker."""

    name: str
    max_tokens: int | None
    dimension: int


class Codec(Generic[_T]):
    """Values of one type."""

    def __init__(self, kind: Any, config: ConfigDict | None = None) -> None:
        self._adapter: TypeAdapter[_T] = TypeAdapter(kind, config=config)

    def plain(self, value: _T) -> Any:
        """The value as JSON holds it."""
        return self._adapter.dump_python(value, warnings=False)

    def read(self, plain: Any) -> _T:
        """The value that it was; lists where anything may stand, as in the data of events, stay lists."""
        return self._adapter.validate_python(plain)


FACTS = Codec[EngineFacts](EngineFacts)
MODEL_FACTS = Codec[ModelFacts](ModelFacts)
STATUS = Codec[EngineStatus](EngineStatus)
PASSAGES = Codec[list[Passage]](list[Passage])
CHECKS = Codec[list[VerificationRequest]](list[VerificationRequest])
CHECKED = Codec[list[VerificationResult]](list[VerificationResult])
_GENERATION = Codec[Generation](Generation)
# In a tuple, because a dataclass alone takes no settings; the format of tool calls goes by its name.
_REQUEST = Codec[tuple[TokenizedRequest]](tuple[TokenizedRequest], ConfigDict(arbitrary_types_allowed=True))


def plain_request(request: TokenizedRequest) -> dict[str, Any]:
    """A request as JSON holds it; its listener stays here."""
    plain: dict[str, Any]
    (plain,) = _REQUEST.plain((replace(request, original=replace(request.original, listener=None)),))
    tools = request.original.tools
    if tools is not None:
        plain["original"]["tools"]["form"] = tools.form.name
    return plain


def read_request(plain: Mapping[str, Any]) -> TokenizedRequest:
    """The request that it was, without a listener."""
    original = dict(plain["original"])
    if original["tools"] is not None:
        original["tools"] = {**original["tools"], "form": FORMATS[original["tools"]["form"]]}
    return _REQUEST.read([{**plain, "original": original}])[0]


def plain_event(request_id: str, event: StreamEvent) -> list[Any]:
    """An event of a request as JSON holds it."""
    generation = None if event.generation is None else _GENERATION.plain(event.generation)
    return [request_id, event.kind, event.data, generation, event.index]


def read_event(plain: list[Any]) -> tuple[str, StreamEvent]:
    """The request's id, and its event."""
    request_id, kind, data, generation, index = plain
    return request_id, StreamEvent(kind, data, None if generation is None else _GENERATION.read(generation), index)


_ERRORS = {kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type)}


def plain_error(error: Exception) -> dict[str, Any]:
    """An error as JSON holds it."""
    described: dict[str, Any] = {"kind": type(error).__name__, "arguments": [str(error)]}
    if isinstance(error, RefusedError):
        refusal = {name: getattr(error, name) for name in ("param", "code", "may_retry")}
        return {"kind": "RefusedError", "arguments": [error.status, str(error)], "more": refusal}
    if isinstance(error, ConfigError):
        return {"kind": "ConfigError", "arguments": list(error.problems)}
    if isinstance(error, OSError) and error.filename:
        return {"kind": "OSError", "arguments": [error.errno, error.strerror, str(error.filename)]}
    if isinstance(error, EWEError):
        described["kind"] = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS)
    return described


def read_error(plain: Mapping[str, Any]) -> Exception:
    """The error that it was; for those that nobody raises on purpose a RuntimeError that names it."""
    kind, arguments = plain["kind"], plain["arguments"]
    if kind == "RefusedError":
        return RefusedError(*arguments, **plain["more"])
    if kind == "OSError" and len(arguments) > 1:
        return OSError(*arguments)
    known = _ERRORS.get(kind)
    return (
        known(*arguments) if known is not None else RuntimeError(f"the engine's process failed: {kind}: {arguments[0]}")
    )
