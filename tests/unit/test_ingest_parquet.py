"""Parquet that unpacks to far more than it has bytes: bounded in memory, and refused with a reason."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ewe.retrieval.ingest import parquet_files
from ewe.retrieval.ingest.documents import Block, Document, Problem, ReadOptions, SourceFile, UnreadableError
from ewe.retrieval.ingest.parquet_pages import largest_page
from ewe.retrieval.ingest.readers import read_blocks, read_documents

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TEXT = "A sentence that is there. "


def repeated(path: Path, text: str, rows: int, **options: Any) -> Path:
    """A file in which the same text stands so many times."""
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows), pyarrow.array([text]))
    return table(path, {"text": column}, **options)


def table(path: Path, columns: Any, **options: Any) -> Path:
    parquet.write_table(pyarrow.table(columns), path, compression="zstd", **options)
    return path


def blocks_of(path: Path) -> list[Block | Problem]:
    return list(read_blocks(SourceFile(path, path.name, "parquet"), ReadOptions()))


def read(path: Path) -> list[Document | Problem | None]:
    found: list[Document | Problem | None] = []
    for block in blocks_of(path):
        found += [block] if isinstance(block, Problem) else read_documents(block, ReadOptions())
    return found


def test_a_few_long_rows_are_decoded_at_once_and_come_in_blocks_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = repeated(tmp_path / "a.parquet", TEXT * 12_000, 700)
    monkeypatch.setattr(parquet_files, "_ROWS_TO_FILE", 1_000_000)
    assert path.stat().st_size < 2000
    before, pool = pyarrow.default_memory_pool(), pyarrow.proxy_memory_pool(pyarrow.default_memory_pool())
    pyarrow.set_memory_pool(pool)
    try:
        blocks = 0
        for block in read_blocks(SourceFile(path, path.name, "parquet"), ReadOptions()):
            assert isinstance(block, Block), block
            [document] = read_documents(block, ReadOptions())
            assert isinstance(document, Document)
            blocks += len(document.text) == len(TEXT) * 12_000
    finally:
        pyarrow.set_memory_pool(before)
    assert blocks == 700
    assert pool.max_memory() < 2 * parquet_files._MOST_BYTES


def test_rows_that_unpack_to_far_more_than_the_file_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = repeated(tmp_path / "a.parquet", TEXT * 400, 2000)
    monkeypatch.setattr(parquet_files, "LONGEST_ROW", 1 << 20)
    *documents, end = read(path)
    assert str(end) == "a.parquet: it unpacks to more than 100 times its size: the rest is left"
    assert all(isinstance(document, Document) for document in documents)
    assert len(documents) == (1 << 20) // (len(TEXT) * 400 + 8)


def test_a_page_that_unpacks_to_much_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(tmp_path / "a.parquet", {"text": ["a", TEXT * 100_000]}, use_dictionary=False, row_group_size=1)
    monkeypatch.setattr(parquet_files, "LARGEST_WHOLE", 2 << 20)
    first, end = read(path)
    assert isinstance(first, Document)
    assert str(end) == "a.parquet: its pages unpack to 2 MiB at once; at most 2 can be read"
    monkeypatch.setattr(parquet_files, "LARGEST_WHOLE", 3 << 20)
    assert [len(document.text) for document in read(path)] == [1, 26 * 100_000]


def test_a_row_that_is_too_long_is_a_problem_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(tmp_path / "a.parquet", {"text": ["a", TEXT * 50_000, "c"]})
    monkeypatch.setattr(parquet_files, "LONGEST_ROW", 1 << 20)
    monkeypatch.setattr(parquet_files, "_ROWS_TO_FILE", 1_000_000)
    first, second, third = read(path)
    assert (first.text, str(second), third.text) == ("a", "a.parquet:2: the row is longer than 1 MiB", "c")


def test_fields_of_lists_are_refused_and_other_lists_left_out(tmp_path: Path) -> None:
    lists = [[0] * 1000]
    [found] = read(table(tmp_path / "a.parquet", {"text": ["a"], "title": lists}))
    assert str(found) == "a.parquet: its column 'title' holds lists, not texts or numbers"
    [found] = read(table(tmp_path / "b.parquet", {"text": ["a"], "other": lists, "text.other": lists}))
    assert (found.text, found.metadata) == ("a", {})
    within = pyarrow.array([{"x": [0] * 1000}])  # Arrow reads m.x of the struct with the column that has its name
    [found] = read(table(tmp_path / "c.parquet", {"text": ["a"], "m": within, "m.x": ["b"]}))
    assert str(found) == "c.parquet: its column 'm' holds lists, not texts or numbers"


def test_values_of_a_fixed_length_count_though_no_page_holds_them(tmp_path: Path) -> None:
    path = table(
        tmp_path / "a.parquet", {"text": ["a"], **{name: pyarrow.nulls(1, pyarrow.binary(200 << 20)) for name in "xy"}}
    )
    assert path.stat().st_size < 2000
    [found] = read(path)
    assert str(found) == "a.parquet: its pages unpack to 400 MiB at once; at most 256 can be read"


def test_columns_that_share_bytes_are_refused() -> None:
    chunk = SimpleNamespace(total_compressed_size=60)
    group = SimpleNamespace(column=lambda place: chunk)
    schema = SimpleNamespace(column=lambda place: SimpleNamespace(max_repetition_level=0, length=0))
    metadata = SimpleNamespace(num_row_groups=1, row_group=lambda number: group)
    opened = SimpleNamespace(reader=SimpleNamespace(column_paths=[["a"], ["b"]]), schema=schema, metadata=metadata)
    with pytest.raises(UnreadableError, match="its columns have more bytes than it"):
        next(parquet_files._Rows(opened, io.BytesIO(), 100, ["a", "b"]).all())


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("statistics", [True, False])
def test_the_largest_page_is_found_in_both_versions(tmp_path: Path, version: str, statistics: bool) -> None:
    texts = [TEXT * number for number in range(200)]
    path = table(
        *(tmp_path / "a.parquet", {"text": texts}),
        **{"use_dictionary": False, "data_page_version": version, "write_statistics": statistics},
        **{"data_page_size": 100_000, "write_batch_size": 1, "write_page_checksum": True},
    )
    with path.open("rb") as raw:
        found = largest_page(raw, parquet.read_metadata(path).row_group(0).column(0))
    assert 100_000 <= found < 100_000 + len(texts[-1]) + 4 * 200


def test_what_is_no_header_of_a_page_is_refused(tmp_path: Path) -> None:
    chunk = parquet.read_metadata(table(tmp_path / "a.parquet", {"text": [TEXT]})).row_group(0).column(0)
    for damaged in (b"", b"PAR1" + b"\x1c" * 100, b"PAR1" + b"\xff" * 100, b"PAR1" + b"\x00" * 100):
        with pytest.raises(UnreadableError, match="a page without a header"):
            largest_page(io.BytesIO(damaged), chunk)
