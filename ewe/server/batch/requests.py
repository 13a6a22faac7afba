"""Files of requests in OpenAI's batch format: JSONL, or Parquet with the same columns."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import from_json

from ewe.errors import InvalidRequestError
from ewe.server.batch.parquet_rows import parquet_rows
from ewe.server.http.json_sizes import num_values

BatchUrl = Literal["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"]
"""What a request of a batch may ask."""

_Row = bytes | dict[str, Any]  # a line of JSON, or a row of a table
_SKIPPED = 1 << 20  # bytes at once of a line that is too long
_MOST_ERRORS = 100  # that are told of one file
_LONGEST_NAME = 64  # characters of a custom_id that an error tells: a batch's record holds its errors


class _Line(BaseModel):
    """What a line says beside the request's body."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    custom_id: Annotated[str, Field(min_length=1, max_length=512)]
    method: Literal["POST"]
    url: BatchUrl


class BatchRequest(_Line):
    """One line: a request to `url`, and the caller's name for it, which its answer bears."""

    body: dict[str, JsonValue]


class _CheckedBody(BaseModel):
    """What a check wants to know of a body; making objects of the rest would take ten times as long."""

    model_config = ConfigDict(extra="ignore", strict=True)

    stream: JsonValue = None


class _CheckedLine(_Line):
    body: _CheckedBody


@dataclass(frozen=True, slots=True)
class LineLimits:
    """What is read of files that strangers send: lines, blank ones too, and what one line may have.

    values: counted by commas and brackets; containers: lists and objects among them.
    """

    lines: int
    bytes: int
    values: int
    containers: int


class LineError(BaseModel):
    """What is wrong with a line, counted from 1 (None: with the file); param: the field that it is about."""

    model_config = ConfigDict(frozen=True)

    code: str
    message: str
    param: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        return self.message if self.line is None else f"line {self.line}: {self.message}"


@dataclass(slots=True)
class BatchFile:
    """What a check found: how many requests there are, and the first errors."""

    total: int = 0
    errors: list[LineError] = field(default_factory=list)


class LineLimitError(InvalidRequestError):
    """A line over the limits; error: what is said of it."""

    def __init__(self, error: LineError) -> None:
        super().__init__(str(error))
        self.error = error


def read_requests(path: Path, limits: LineLimits | None = None) -> Iterator[BatchRequest]:
    """The requests of a file that `check_requests` found no error in.

    Raises LineLimitError for a line over limits that were higher when it was checked.
    """
    for number, row in _rows(path, limits):
        error = _over_limits(row, limits)
        if error is not None:
            raise LineLimitError(error.model_copy(update={"line": number}))
        yield request_of(row)


def check_requests(
    path: Path, url: str | None = None, most: int | None = None, limits: LineLimits | None = None
) -> BatchFile:
    """Reads all of a file; url: what every request has to ask; most: how many there may be.

    Raises InvalidRequestError for a file that cannot be read at all.
    """
    result = BatchFile()
    try:
        _check_rows(result, _rows(path, limits), url, most, limits)
    except LineLimitError as error:
        result.errors.append(error.error)
    if not result.total and not result.errors:
        result.errors.append(LineError(code="empty_file", message="the file holds no request"))
    return result


def _check_rows(
    result: BatchFile, rows: Iterator[tuple[int, _Row]], url: str | None, most: int | None, limits: LineLimits | None
) -> None:
    ids = set[str]()
    for number, row in rows:
        if result.total == most:
            result.errors.append(LineError(code="too_many_requests", message=f"a batch has at most {most} requests"))
            break
        result.total += 1
        error = _over_limits(row, limits) or _check(row, url, ids, limits)
        if error is not None:
            result.errors.append(error.model_copy(update={"line": number}))
            if len(result.errors) == _MOST_ERRORS:
                break


def _over_limits(row: _Row, limits: LineLimits | None) -> LineError | None:
    """What is said of a line that would take too long to parse, or that no endpoint takes as a body."""
    if limits is None or not isinstance(row, bytes):
        return None
    if len(row) > limits.bytes:
        message = f"the line is longer than {limits.bytes} bytes (server.max_body_bytes)"
        return LineError(code="line_too_long", message=message)
    if num_values(row) > limits.values:
        return LineError(code="too_many_values", message=f"the line has more than {limits.values} values")
    return None


def _has_more_containers(line: bytes, most: int) -> bool:
    """Whether a line of JSON holds more lists and objects; brackets in its texts are none."""
    if line.count(b"[") + line.count(b"{") <= most:
        return False
    plain = b"".join(line.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    return plain.count(b"[") + plain.count(b"{") > most


def _check(row: _Row, url: str | None, ids: set[str], limits: LineLimits | None) -> LineError | None:
    """What is wrong with a row; ids: those before it, to which its own is added."""
    try:
        if isinstance(row, bytes):
            request = _CheckedLine.model_validate_json(row)
        else:
            request = _CheckedLine.model_validate(request_of(row).model_dump())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"]))
        code = "invalid_json_line" if first["type"] == "json_invalid" else "invalid_request"
        return LineError(code=code, message=f"{name}: {first['msg']}" if name else first["msg"], param=name or None)
    if request.custom_id in ids:
        message = f"custom_id: {request.custom_id[:_LONGEST_NAME]!r} stands on an earlier line too"
        return LineError(code="duplicate_custom_id", message=message, param="custom_id")
    ids.add(request.custom_id)
    if url is not None and request.url != url:
        return LineError(code="mismatched_url", message=f"url: the batch is for {url}", param="url")
    if request.body.stream:
        message = "body.stream: the answers of a batch come whole; leave it out"
        return LineError(code="invalid_request", message=message, param="body.stream")
    if limits is not None and isinstance(row, bytes) and _has_more_containers(row, limits.containers):
        message = f"body: more than {limits.containers} lists and objects"
        return LineError(code="too_many_values", message=message, param="body")
    return None


def request_of(row: _Row) -> BatchRequest:
    """The request in a line of JSON or a row of a table, whose `body` is JSON or what JSON stands for.

    Raises pydantic's ValidationError.
    """
    if isinstance(row, bytes):
        return BatchRequest.model_validate_json(row)
    return BatchRequest.model_validate({**row, "body": _body(row.get("body"))})


def _rows(path: Path, limits: LineLimits | None) -> Iterator[tuple[int, _Row]]:
    """Each row that is not blank, with its number; the limits are those of lines."""
    try:
        if path.suffix == ".parquet":
            yield from enumerate(parquet_rows(path, BatchRequest.model_fields), 1)
        else:
            yield from _lines(path, limits)
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror or error}") from error


def _lines(path: Path, limits: LineLimits | None) -> Iterator[tuple[int, bytes]]:
    """Each line that is not blank, with its number; of one that is too long its first bytes, one more than it may have.

    Raises LineLimitError for too many lines.
    """
    most = -1 if limits is None else limits.bytes + 1
    with path.open("rb") as file:
        for number, line in enumerate(iter(partial(file.readline, most), b""), 1):
            if limits is not None and number > limits.lines:
                message = f"the file has more than {limits.lines} lines, blank ones too"
                raise LineLimitError(LineError(code="too_many_lines", message=message))
            if not line.isspace():
                yield number, line
            rest = line if len(line) == most else b""
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(_SKIPPED)


def _body(value: object) -> object:
    """A body as JSON holds it; text that is none, and what JSON cannot hold, stays and is refused."""
    if isinstance(value, str):
        try:
            return from_json(value)
        except ValueError:
            return value
    return value
