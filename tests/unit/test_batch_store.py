"""The folder of files and batches: whose they are, in which order, and what is left of a killed server."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from hypothesis import given
from hypothesis import strategies as st

from ewe.errors import ConfigError
from ewe.server.batch.batch_schemas import Batch, StoredFile
from ewe.server.batch.batch_store import BatchStore, new_id, page, write_whole


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


def test_results_of_running_batches_count_and_what_goes_counts_no_more(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    store.batches.put("ann", batch("batch_1"))
    store.count_unfinished("ann", 50_000)
    assert (store.used("ann"), store.used("bob")) == (4096 + 50_000, 0)
    store.count_unfinished("ann", -50_000)
    store.files.put("ann", file("file-1", 10_000))
    store.files.put("ann", file("file-1", 20_000))
    assert store.used("ann") == 4096 + 20_000
    store.remove_file(file("file-1"))
    store.close()
    assert store.used("ann") == BatchStore(tmp_path).used("ann") == 4096


def test_a_name_that_utf_8_cannot_carry_does_not_break_the_list(tmp_path: Path) -> None:
    """A server before may have kept one."""
    (tmp_path / "files").mkdir()
    record = json.dumps({"key": "ann", "record": {**file("file-1").model_dump(), "filename": "\ud800.jsonl"}})
    (tmp_path / "files" / "file-1.json").write_text(record)
    kept = BatchStore(tmp_path).files.of_key("ann")
    assert page(kept, None, 10).model_dump_json()
    assert [one.filename for one in kept] == ["?.jsonl"]


def test_of_ended_batches_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.server.batch.batch_store._MOST_ENDED", 2)
    store = BatchStore(tmp_path)
    store.batches.put("ann", batch("batch_0"))
    for number in range(1, 6):
        store.batches.put("ann", batch(f"batch_{number}", status="completed"))
        store.batches.put("bob", batch(f"batch_{number}b", status="failed"))
    store.forget_old_batches("ann")
    assert [one.id for one in store.batches.of_key("ann")] == ["batch_0", "batch_4", "batch_5"]
    assert store.batches.count("bob") == 5
    store.close()
    again = BatchStore(tmp_path)
    assert [one.id for _, one in again.batches.all()] == ["batch_0", "batch_4", "batch_4b", "batch_5", "batch_5b"]


def test_records_are_written_beside_the_event_loop_the_latest_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers: list[threading.Thread] = []
    monkeypatch.setattr("ewe.server.batch.batch_store.os.fsync", lambda _: writers.append(threading.current_thread()))

    async def keep_all(store: BatchStore) -> None:
        kept = [store.files.keep("ann", file("file-1", size)) for size in range(20)]
        gone = asyncio.gather(*kept, store.files.keep("ann", file("file-2")))
        await asyncio.sleep(0)
        assert store.files.find("ann", "file-1") == file("file-1", 19), "in memory at once"
        store.remove_file(file("file-2"))
        await gone

    store = BatchStore(tmp_path)
    asyncio.run(keep_all(store))
    store.close()
    assert threading.main_thread() not in writers
    assert [one for _, one in BatchStore(tmp_path).files.all()] == [file("file-1", 19)]


def test_a_record_that_cannot_be_written_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    store = BatchStore(tmp_path)
    asyncio.run(store.files.keep("ann", file("file-1")))
    monkeypatch.setattr("ewe.server.batch.batch_store.os.fsync", fail)
    for name in ("file-1", "file-2"):
        with pytest.raises(OSError, match="No space"):
            asyncio.run(store.files.keep("ann", file(name)))
    assert store.files.of_key("ann") == [file("file-1")]


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
    store.files.put("", file("file-1")).result()
    store.batches.put("", batch("batch_1", status="in_progress")).result()
    store.batches.put("", batch("batch_2", status="completed")).result()
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
