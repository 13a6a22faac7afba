"""Rows of Parquet files of requests, a few at a time, however much more than its file's bytes they are."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from ewe.errors import InvalidRequestError
from ewe.retrieval.ingest.documents import UnreadableError
from ewe.retrieval.ingest.parquet_files import rows_at_once


def parquet_rows(path: Path, names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Rows with those of the columns that there are; `body` is JSON, or a struct whose nulls are fields left out.

    Raises InvalidRequestError for a damaged file, and for one whose pages unpack to far more than it has bytes.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InvalidRequestError("reading Parquet needs pyarrow: pip install 'ewe-engine[documents]'") from error
    try:
        with parquet.ParquetFile(path) as table, path.open("rb") as raw:
            columns = [name for name in names if name in table.schema_arrow.names]
            leaves = [(place, 0) for place, found in enumerate(table.reader.column_paths) if found[0] in columns]
            for number in range(table.metadata.num_row_groups):
                at_once = rows_at_once(raw, table.metadata.row_group(number), leaves, path.stat().st_size)
                for batch in table.iter_batches(at_once, row_groups=[number], columns=columns):
                    yield from batch.to_pylist()
    except UnreadableError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error}") from error
    except pyarrow.ArrowException as error:
        raise InvalidRequestError(f"{path} is damaged or no Parquet file: {error}") from error
