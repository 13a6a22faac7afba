"""Files of requests in OpenAI's batch format: JSONL, or Parquet with the same columns."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import from_json

from ewe.errors import InvalidRequestError

BatchUrl = Literal["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"]
"""What a request of a batch may ask."""

_ROWS = 1024  # of a Parquet file at once
_MOST_ERRORS = 100  # that are told of one file


class BatchRequest(BaseModel):
    """One line: a request to `url`, and the caller's name for it, which its answer bears."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    custom_id: Annotated[str, Field(min_length=1, max_length=512)]
    method: Literal["POST"]
    url: BatchUrl
    body: dict[str, JsonValue]


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


def read_requests(path: Path) -> Iterator[BatchRequest]:
    """The requests of a file that `check_requests` found no error in."""
    for _, row in _rows(path):
        yield request_of(row)


def check_requests(path: Path, url: str | None = None, most: int | None = None) -> BatchFile:
    """Reads all of a file; url: what every request has to ask; most: how many there may be.

    Raises InvalidRequestError for a file that cannot be read at all.
    """
    found, ids = BatchFile(), set[str]()
    for number, row in _rows(path):
        if found.total == most:
            found.errors.append(LineError(code="too_many_requests", message=f"a batch has at most {most} requests"))
            break
        found.total += 1
        error = _check(row, url, ids)
        if error is not None:
            found.errors.append(error.model_copy(update={"line": number}))
            if len(found.errors) == _MOST_ERRORS:
                break
    if not found.total:
        found.errors.append(LineError(code="empty_file", message="the file holds no request"))
    return found


def _check(row: bytes | dict[str, Any], url: str | None, ids: set[str]) -> LineError | None:
    """What is wrong with a row; ids: those before it, to which its own is added."""
    try:
        request = request_of(row)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        code = "invalid_json_line" if first["type"] == "json_invalid" else "invalid_request"
        return LineError(code=code, message=f"{name}: {first['msg']}" if name else first["msg"], param=name or None)
    if request.custom_id in ids:
        message = f"custom_id: {request.custom_id!r} stands on an earlier line too"
        return LineError(code="duplicate_custom_id", message=message, param="custom_id")
    ids.add(request.custom_id)
    if url is not None and request.url != url:
        return LineError(code="mismatched_url", message=f"url: the batch is for {url}", param="url")
    if request.body.get("stream"):
        message = "body.stream: the answers of a batch come whole; leave it out"
        return LineError(code="invalid_request", message=message, param="body.stream")
    return None


def request_of(row: bytes | dict[str, Any]) -> BatchRequest:
    """The request in a line of JSON or a row of a table, whose `body` is JSON or what JSON stands for.

    Raises pydantic's ValidationError.
    """
    if isinstance(row, bytes):
        return BatchRequest.model_validate_json(row)
    return BatchRequest.model_validate({**row, "body": _body(row.get("body"))})


def _rows(path: Path) -> Iterator[tuple[int, bytes | dict[str, Any]]]:
    """Each row that is not blank, with its number."""
    try:
        if path.suffix == ".parquet":
            yield from enumerate(_parquet_rows(path), 1)
            return
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror or error}") from error


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Rows with the columns of a request; `body` is JSON, or a struct whose nulls are fields left out."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InvalidRequestError("reading Parquet needs pyarrow: pip install 'ewe-engine[documents]'") from error
    try:
        with parquet.ParquetFile(path) as table:
            columns = [name for name in BatchRequest.model_fields if name in table.schema_arrow.names]
            for batch in table.iter_batches(_ROWS, columns=columns):
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise InvalidRequestError(f"{path} is damaged or no Parquet file: {error}") from error


def _body(value: object) -> object:
    """A body as JSON holds it; text that is none, and what JSON cannot hold, stays and is refused."""
    if isinstance(value, str):
        try:
            return from_json(value)
        except ValueError:
            return value
    return value
