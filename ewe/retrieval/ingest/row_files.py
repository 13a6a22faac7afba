"""Reading JSON: one object, an array of them, or one per line; groups of rows of any kind."""

import json
from collections.abc import Iterable, Iterator
from typing import BinaryIO, TypeVar

from ewe.retrieval.ingest.documents import (
    LONGEST_ROW,
    Block,
    Document,
    Problem,
    ReadOptions,
    SourceFile,
    UnreadableError,
    whole_file,
)
from ewe.retrieval.ingest.fields import document
from ewe.retrieval.ingest.files import decode, decode_line

Row = TypeVar("Row")
_BLOCK = 256 << 10
_ROW = 200  # bytes that an object of a JSON file stands for, about
_TOO_LONG = None


def json_blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """The objects in groups. Raises UnreadableError for what is no JSON, or no object and no array."""
    list(whole_file(file, options))
    try:
        values = json.loads(decode(file.path.read_bytes(), options.encoding))
    except (ValueError, RecursionError) as error:
        hint = "; one object per line is .jsonl" if "Extra data" in str(error) else ""
        raise UnreadableError(f"it is not valid JSON ({error}){hint}") from error
    rows = values if isinstance(values, list) else [values]
    for group, first, size in groups((row, _ROW) for row in rows):
        yield Block(file, group, first, size)


def json_documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """One entry per object."""
    for number, row in enumerate(block.payload, block.first):
        yield object_document(row, number, block, options)


def jsonl_blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """Lines in groups of about 256 KiB; one that is too long to hold is left out of its group, as None."""
    with file.path.open("rb") as raw:
        for lines, first, size in groups(_lines(raw)):
            yield Block(file, lines, first, size)


def jsonl_documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """One entry per line that is not blank: a document, a problem, or None for an empty text."""
    for number, line in enumerate(block.payload, block.first):
        where = f"{block.file.label}:{number}"
        if line is _TOO_LONG:
            yield Problem(where, f"the line is longer than {LONGEST_ROW >> 20} MiB")
            continue
        try:
            text = decode_line(line, options.encoding)
            if text.strip("\ufeff \t\r\n"):
                values = json.loads(text.lstrip("\ufeff"))
                yield object_document(values, number, block, options)
        except UnicodeDecodeError as error:
            yield Problem(
                where, f"it is not {error.encoding.upper()} ({error.reason} at byte {error.start} of the line)"
            )
        except (ValueError, RecursionError) as error:
            yield Problem(where, f"it is not valid JSON ({error})")


def object_document(value: object, number: int, block: Block, options: ReadOptions) -> Document | Problem | None:
    """As `document`, of one value of JSON; a problem for one that is no object."""
    if isinstance(value, dict):
        return document(value, number, block, options)
    return Problem(f"{block.file.label}:{number}", f"expected a JSON object, found {type(value).__name__}")


def groups(rows: Iterable[tuple[Row, int]]) -> Iterator[tuple[list[Row], int, int]]:
    """(rows, number of the first, size) of groups of about 256 KiB, from rows with their sizes."""
    group: list[Row] = []
    first, size = 1, 0
    try:
        for row, length in rows:
            group.append(row)
            size += length
            if size >= _BLOCK:
                yield group, first, size
                group, first, size = [], first + len(group), 0
    except Exception:  # what was read before it counts
        if group:
            yield group, first, size
        raise
    if group:
        yield group, first, size


def _lines(raw: BinaryIO) -> Iterator[tuple[bytes | None, int]]:
    """(line or None if it is too long, bytes read)."""
    while line := raw.readline(LONGEST_ROW):
        length = len(line)
        if length < LONGEST_ROW or line.endswith(b"\n"):
            yield line, length
            continue
        while rest := raw.readline(LONGEST_ROW):
            length += len(rest)
            if rest.endswith(b"\n"):
                break
        yield _TOO_LONG, length
