"""Reading rows: CSV, Parquet, and JSONL with one object per line."""

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO, TypeVar

from ewe.retrieval.ingest.documents import (
    FIELDS,
    LONGEST_ROW,
    Block,
    Document,
    Problem,
    ReadOptions,
    SourceFile,
    UnreadableError,
    from_extra,
)
from ewe.retrieval.ingest.fields import check_columns, document
from ewe.retrieval.ingest.files import check_text, open_text

Row = TypeVar("Row")
_BLOCK = 256 << 10
_ROWS = 1024


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
                for group, first, size in _groups((row, sum(map(len, row)) + len(row)) for row in rows):
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


def parquet_blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """Batches of 1024 rows, columns of vectors and the like left out. Raises UnreadableError for a damaged file."""
    pyarrow, parquet = from_extra("Parquet", "pyarrow"), from_extra("Parquet", "pyarrow.parquet")
    try:
        with parquet.ParquetFile(file.path) as table:
            names = table.schema_arrow.names
            check_columns(names, options)
            fields = {options.columns.get(field, field) for field in FIELDS}
            flat = {column.name for column in table.schema_arrow if not pyarrow.types.is_nested(column.type)}
            columns = [name for name in names if name in fields or name in flat]
            rows = max(1, table.metadata.num_rows)
            first = 1
            for batch in table.iter_batches(_ROWS, columns=list(dict.fromkeys(columns))):
                size = file.path.stat().st_size * batch.num_rows // rows
                yield Block(file, batch, first, size)
                first += batch.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise UnreadableError(f"it is damaged or no Parquet file ({error})") from error


def parquet_documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """One entry per row; a problem for one with a value that Python cannot hold, such as a day of the year 20000."""
    for number, values in enumerate(_parquet_rows(block.payload), block.first):
        if isinstance(values, Exception):
            yield Problem(f"{block.file.label}:{number}", f"a value cannot be read ({values})")
        else:
            yield document(values, number, block, options)


def _parquet_rows(batch: Any) -> Iterator[dict[str, Any] | Exception]:
    """The values of each row by column; of a batch where some cannot be read, row by row, which takes longer."""
    try:
        columns = batch.to_pydict()
    except (ValueError, OverflowError) as error:
        if batch.num_rows == 1:
            yield error
        else:
            for index in range(batch.num_rows):
                yield from _parquet_rows(batch.slice(index, 1))
        return
    for index in range(batch.num_rows):
        yield {name: column[index] for name, column in columns.items()}


_TOO_LONG = None


def jsonl_blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """Lines in groups of about 256 KiB; one that is too long to hold is left out of its group, as None."""
    with file.path.open("rb") as raw:
        for lines, first, size in _groups(_lines(raw)):
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


def _groups(rows: Iterable[tuple[Row, int]]) -> Iterator[tuple[list[Row], int, int]]:
    """(rows, number of the first, size) of groups of about 256 KiB, from rows with their sizes."""
    group: list[Row] = []
    first, size = 1, 0
    for row, length in rows:
        group.append(row)
        size += length
        if size >= _BLOCK:
            yield group, first, size
            group, first, size = [], first + len(group), 0
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
