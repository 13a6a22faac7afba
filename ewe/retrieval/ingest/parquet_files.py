"""Reading Parquet in pieces that fit into memory, however much more than its file's bytes its rows are."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import accumulate
from typing import Any, BinaryIO

import numpy as np

from ewe.retrieval.ingest.documents import (
    FIELDS,
    LARGEST_WHOLE,
    LONGEST_ROW,
    Block,
    Document,
    Problem,
    ReadOptions,
    SourceFile,
    UnreadableError,
    from_extra,
)
from ewe.retrieval.ingest.parquet_pages import largest_page
from ewe.retrieval.ingest.row_files import groups
from ewe.retrieval.ingest.row_tables import layout_of, row_document

_MOST_ROWS, _MOST_CELLS, _MOST_BYTES = 1024, 1 << 18, 64 << 20  # that are decoded at once, one row at least
_PAGES_TO_FILE, _ROWS_TO_FILE = 8, 100  # times the file's bytes that pages held at once and all rows may have
_CELL = 8  # bytes that a value counts for at least
_Row = dict[str, Any] | str  # the values by column, or what keeps them from being read


def parquet_blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """Rows in groups of about 256 KiB, columns of vectors and the like left out.

    Raises UnreadableError for a damaged file, and for one that unpacks to far more than it has bytes.
    """
    pyarrow, parquet = from_extra("Parquet", "pyarrow"), from_extra("Parquet", "pyarrow.parquet")
    size = file.path.stat().st_size
    try:
        with ExitStack() as opened:
            table = opened.enter_context(parquet.ParquetFile(file.path))
            raw = opened.enter_context(file.path.open("rb"))
            columns = _columns(pyarrow, table, options)
            layout = layout_of(columns, options)
            for group, first, _ in groups(_Rows(table, raw, size, columns).all()):
                yield Block(file, (layout, group), first, size * len(group) // max(1, table.metadata.num_rows))
    except (pyarrow.ArrowException, OSError) as error:
        raise UnreadableError(f"it is damaged or no Parquet file ({error})") from error


def parquet_documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """One entry per row; a problem for one with a value that Python cannot hold, such as a day of the year 20000."""
    layout, rows = block.payload
    for number, row in enumerate(rows, block.first):
        if isinstance(row, str):
            yield Problem(f"{block.file.label}:{number}", row)
        else:
            yield row_document(layout, list(row.values()), number, block, options)


def _columns(pyarrow: Any, table: Any, options: ReadOptions) -> list[str]:
    """The fields, and what further columns hold no lists or structs."""
    schema = table.schema_arrow
    fields = {options.columns.get(field, field) for field in FIELDS}
    types = [(column.name, getattr(column.type, "storage_type", column.type)) for column in schema]
    return list(dict.fromkeys(name for name, kind in types if name in fields or not pyarrow.types.is_nested(kind)))


def _leaves(table: Any, columns: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(place, fixed bytes of a value or 0) of what Arrow reads for these columns; raises UnreadableError for lists."""
    read = set(columns)
    for place, path in enumerate(table.reader.column_paths):
        if any(name in read for name in accumulate(path, "{}.{}".format)):
            leaf = table.schema.column(place)
            if leaf.max_repetition_level:
                raise UnreadableError(f"its column {path[0]!r} holds lists, not texts or numbers")
            yield place, leaf.length


def rows_at_once(raw: BinaryIO, group: Any, leaves: Sequence[tuple[int, int]], size: int) -> int:
    """How many rows of a group may be decoded at once; size: bytes of the file.

    Raises UnreadableError for pages that unpack to far more than that, since each is unpacked whole.
    """
    longest = sum(max(largest_page(raw, group.column(place)), length) for place, length in leaves)
    most = max(LARGEST_WHOLE, _PAGES_TO_FILE * size)
    if longest > most:
        raise UnreadableError(f"its pages unpack to {longest >> 20} MiB at once; at most {most >> 20} can be read")
    return max(1, min(_MOST_ROWS, _MOST_CELLS // max(1, len(leaves)), _MOST_BYTES // max(1, longest)))


class _Rows:
    """The rows of an open file, decoded a few at a time.

    A value is unpacked from one page, so that a row has at most as many bytes as the largest pages of its columns.
    """

    def __init__(self, table: Any, raw: BinaryIO, size: int, columns: list[str]) -> None:
        self._table, self._raw, self._size, self._columns = table, raw, size, columns
        self._leaves = list(_leaves(table, columns))

    def all(self) -> Iterator[tuple[_Row, int]]:
        """Each row with about the bytes that it has in memory; raises UnreadableError for rows that are too many."""
        self._check_chunks()
        unpacked = 0
        for number in range(self._table.metadata.num_row_groups):
            for row, size in self._of_group(number):
                unpacked += size
                if unpacked > max(LONGEST_ROW, _ROWS_TO_FILE * self._size):
                    raise UnreadableError(f"it unpacks to more than {_ROWS_TO_FILE} times its size: the rest is left")
                yield (row, size) if size <= LONGEST_ROW else (f"the row is longer than {LONGEST_ROW >> 20} MiB", 0)

    def _check_chunks(self) -> None:
        """Raises UnreadableError where columns share bytes, which are read once for each."""
        groups = map(self._table.metadata.row_group, range(self._table.metadata.num_row_groups))
        packed = sum(group.column(place).total_compressed_size for group in groups for place, _ in self._leaves)
        if packed > self._size:
            raise UnreadableError("it is damaged or no Parquet file (its columns have more bytes than it)")

    def _of_group(self, number: int) -> Iterator[tuple[_Row, int]]:
        group = self._table.metadata.row_group(number)
        at_once = rows_at_once(self._raw, group, self._leaves, self._size)
        for batch in self._table.iter_batches(at_once, row_groups=[number], columns=self._columns):
            for row in _rows(batch):
                yield row, _size(row)


def _rows(batch: Any) -> Iterator[_Row]:
    """The values of each row by column; of a batch where some cannot be read, row by row, which takes longer."""
    try:
        columns = {name: _values(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    except (ValueError, OverflowError) as error:
        if batch.num_rows == 1:
            yield f"a value cannot be read ({error})"
        else:
            for index in range(batch.num_rows):
                yield from _rows(batch.slice(index, 1))
        return
    for index in range(batch.num_rows):
        yield {name: column[index] for name, column in columns.items()}


def _values(column: Any) -> list[Any]:
    """The values of a column; a number of half the width without the digits that come of writing it in full."""
    values: list[Any] = column.to_pylist()
    if str(column.type) not in ("float", "halffloat"):
        return values
    narrow = np.float32 if str(column.type) == "float" else np.float16
    return [None if value is None else float(str(narrow(value))) for value in values]


def _size(row: _Row) -> int:
    values = row.values() if isinstance(row, Mapping) else [row]
    return sum(_CELL + len(value) if isinstance(value, str | bytes) else _CELL for value in values)
