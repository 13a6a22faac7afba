"""Reading rows: CSV, and JSONL with one object per line."""

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO, TypeVar

from ewe.retrieval.ingest.documents import (
    LONGEST_ROW,
    Block,
    Document,
    Problem,
    ReadOptions,
    SourceFile,
    UnreadableError,
)
from ewe.retrieval.ingest.fields import check_columns, document
from ewe.retrieval.ingest.files import check_text, open_text

Row = TypeVar("Row")
_BLOCK = 256 << 10


def csv_blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """Rows with their header in groups of about 256 KiB. The first line names the columns; "," ";" or tab part them.

    Raises UnreadableError for bad quotes, rows that are too long, and missing columns.
    """
    csv.field_size_limit(LONGEST_ROW)
    with open_text(file.path, options.encoding) as text:
        sample = text.readline()
        text.seek(0)
        check_text(sample)
        delimiter = "\t" if file.path.suffix.lower() == ".tsv" else max(",;\t", key=sample.count)
        rows = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for names in islice(rows, 1):
                header = [name.strip() for name in names]
                check_columns(header, options)
                for group, first, size in groups((row, sum(map(len, row)) + len(row)) for row in rows):
                    yield Block(file, (header, group), first, size)
        except csv.Error as error:
            raise UnreadableError(f"line {rows.line_num} is no CSV ({error})") from error


def csv_documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """One entry per row that is not blank."""
    header, rows = block.payload
    for number, row in enumerate(rows, block.first):
        if not row:
            continue
        if len(row) != len(header):
            yield Problem(f"{block.file.label}:{number}", f"the row has {len(row)} fields, the header {len(header)}")
        else:
            yield document(dict(zip(header, row, strict=True)), number, block, options)


_TOO_LONG = None


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
            text = line.decode(options.encoding or "utf-8")
            if text.strip("\ufeff \t\r\n"):
                values = json.loads(text.lstrip("\ufeff"))
                if isinstance(values, dict):
                    yield document(values, number, block, options)
                else:
                    yield Problem(where, f"expected a JSON object, found {type(values).__name__}")
        except UnicodeDecodeError as error:
            yield Problem(
                where, f"it is not {error.encoding.upper()} ({error.reason} at byte {error.start} of the line)"
            )
        except (ValueError, RecursionError) as error:
            yield Problem(where, f"it is not valid JSON ({error})")


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
