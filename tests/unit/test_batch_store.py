"""The folder of files and batches: whose they are, in which order, and what is left of a killed server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from hypothesis import given
from hypothesis import strategies as st

from ewe.errors import ConfigError
from ewe.server.batch_store import BatchStore, new_id, page, write_whole
from ewe.server.schemas.batch_schemas import Batch, StoredFile


def file(file_id: str, size: int = 3) -> StoredFile:
    return StoredFile(id=file_id, bytes=size, created_at=5, filename="a.jsonl", purpose="batch")


def batch(batch_id: str, **fields: Any) -> Batch:
    return Batch(id=batch_id, endpoint="/v1/completions", input_file_id="file-1", created_at=5, expires_at=9, **fields)


def test_records_come_back_and_belong_to_one_key(tmp_path: Path) -> None:
    store = BatchStore(tmp_path / "new" / "folder")
    write_whole(store.content("file-1"), [b"abc"])
    store.files.put("ann", file("file-1"))
    store.batches.put("ann", batch("batch_1", metadata={"a": "b"}))
    store.batches.put("", batch("batch_2", status="failed"))
    store.close()
    again = BatchStore(tmp_path / "new" / "folder")
    assert again.files.find("ann", "file-1") == file("file-1")
    assert again.batches.find("ann", "batch_1") == batch("batch_1", metadata={"a": "b"})
    assert [key for key, _ in again.batches.all()] == ["ann", ""]
    for stranger in ("", "bob"):
        assert again.files.find(stranger, "file-1") is None
        assert again.batches.find(stranger, "batch_1") is None
        assert again.files.of_key(stranger) == []
    assert again.files.find("", "file-none") is None
    again.remove_file(file("file-1"))
    assert again.files.find("ann", "file-1") is None
    assert list((tmp_path / "new" / "folder" / "files").iterdir()) == []
    assert (tmp_path / "new" / "folder").stat().st_mode & 0o777 == 0o700


def test_small_things_count_as_a_block_of_the_disk(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    store.files.put("ann", file("file-1"))
    store.files.put("ann", file("file-2", 10_000))
    store.files.put("bob", file("file-3"))
    store.batches.put("ann", batch("batch_1"))
    assert (store.used("ann"), store.used("bob"), store.used("")) == (4096 + 10_000 + 4096, 4096, 0)


def test_one_server_at_a_time(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    with pytest.raises(ConfigError, match="another server uses"):
        BatchStore(tmp_path)
    store.close()
    BatchStore(tmp_path).close()


def test_folders_and_records_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match="cannot use"):
        BatchStore(tmp_path / "taken")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "file-1.json").write_text('{"key": "ann", "record": {}}')
    with pytest.raises(ConfigError, match=r"file-1\.json is damaged; move it away"):
        BatchStore(tmp_path)


def test_what_a_killed_server_left_goes_and_nothing_else(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    for name in ("file-1", "file-2"):
        write_whole(store.content(name), [b"abc"])
    store.files.put("", file("file-1"))
    store.batches.put("", batch("batch_1", status="in_progress"))
    store.batches.put("", batch("batch_2", status="completed"))
    names = ["files/file-3.partial", "files/file-1.json.partial", "batches/batch_1.log", "batches/batch_2.log"]
    for name in [*names, "batches/batch_3.log", "files/notes.txt", "files/file-x"]:
        (tmp_path / name).write_bytes(b"abc")
    store.close()
    BatchStore(tmp_path).close()
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {
        *("lock", "files/file-1", "files/file-1.json", "files/notes.txt", "files/file-x"),
        *("batches/batch_1.json", "batches/batch_2.json", "batches/batch_1.log"),
    }


def test_later_ids_are_greater() -> None:
    ids = [new_id("file-") for _ in range(100)]
    assert len(set(ids)) == 100
    assert [one[:21] for one in ids] == sorted(one[:21] for one in ids)


@given(count=st.integers(0, 12), limit=st.integers(1, 5), newest_first=st.booleans(), gone=st.sets(st.integers(0, 11)))
def test_pages_together_are_the_list(count: int, limit: int, newest_first: bool, gone: set[int]) -> None:
    """Also where what a page ended with is deleted before the next is asked for."""
    left = {number: file(f"file-{number:02d}") for number in range(count)}
    seen: list[str] = []
    after = None
    while True:
        shown = page(left.values(), after, limit, newest_first=newest_first)
        seen += [item.id for item in shown.data]
        if not shown.has_more:
            break
        assert (shown.first_id, shown.last_id) == (shown.data[0].id, shown.data[-1].id)
        after = shown.last_id
        number = int(str(after)[-2:])
        if number in gone:
            del left[number]
    assert seen == sorted((f"file-{number:02d}" for number in range(count)), reverse=newest_first)
