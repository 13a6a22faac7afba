"""What batches of one key may take from the others: the disk, the places, and the time of the event loop."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from batch_rig import counts, create, ended, line, results, server
from fastapi.responses import FileResponse
from server_rig import wait_for

from ewe.server.batch import batches
from ewe.server.batch.batch_store import write_whole
from ewe.server.batch.requests import BatchFile, check_requests


def test_a_key_with_many_batches_leaves_another_its_share(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("one\ntwo\n")
    with server(tmp_path / "kept", api_key_file=tmp_path / "keys", batch_concurrency=2) as opened:
        one, two = opened.client("one"), opened.client("two")
        opened.script.gate.clear()
        lines = [line(f"n{number}", f"wait {number}") for number in range(10)]
        many = [create(one, lines) for _ in range(10)]
        wait_for(lambda: opened.app.state.service.admission.num_inside == 2, "they take both places")
        batch = create(two, lines)
        wait_for(lambda: two.batches.retrieve(batch.id).status == "in_progress", "it waits for a place")
        opened.script.gate.set()
        assert ended(two, batch).status == "completed"
        assert sum(counts(one.batches.retrieve(other.id))[1] for other in many) < 60
        for other in many:
            one.batches.cancel(other.id)


def test_results_are_bounded_by_batch_bytes(tmp_path: Path) -> None:
    """The batch ends; what was answered is kept, and what is deleted makes room again."""
    with server(tmp_path, batch_bytes=40_000) as opened:
        client, store = opened.client(), opened.app.state.batches.store
        batch = ended(client, create(client, [line(f"n{number}", "word " * 60, n=4) for number in range(30)]))
        assert (batch.status, bool(batch.failed_at)) == ("failed", True)
        [error] = batch.errors.data
        assert (error.code, error.line) == ("no_room", None)
        assert "40000 bytes (server.batch_bytes)" in error.message
        kept = results(client, batch.output_file_id)
        assert 0 < len(kept) < 30
        assert counts(batch) == (30, len(kept), 0)
        assert 30_000 < store.used("") <= 40_000
        for file_id in (batch.input_file_id, batch.output_file_id):
            client.files.delete(file_id)
        assert ended(client, create(client, [line("a")])).status == "completed"


def test_files_on_their_way_count_for_their_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else many uploads at once would each find the room that only one of them may have."""
    is_writing, may_write = threading.Event(), threading.Event()

    def slowly(path: Path, pieces: Any) -> int:
        is_writing.set()
        may_write.wait(20)
        return write_whole(path, pieces)

    monkeypatch.setattr(batches, "write_whole", slowly)
    with server(tmp_path, batch_bytes=100_000) as opened, ThreadPoolExecutor(1) as pool:
        client, content = opened.client(), b"x" * 60_000
        first = pool.submit(client.files.create, file=("a.jsonl", content), purpose="batch")
        is_writing.wait(20)
        may_write_later = threading.Timer(5, may_write.set)
        may_write_later.start()
        with pytest.raises(openai.BadRequestError, match="batch_bytes"):
            client.files.create(file=("b.jsonl", content), purpose="batch")
        may_write.set()
        assert first.result().bytes == 60_000
        may_write_later.cancel()
        client.files.delete(first.result().id)
        assert client.files.create(file=("b.jsonl", content), purpose="batch").bytes == 60_000


def test_requests_that_a_batch_left_are_named_as_far_as_there_is_room(tmp_path: Path) -> None:
    with server(tmp_path, batch_bytes=130_000) as opened:
        client, store = opened.client(), opened.app.state.batches.store
        opened.script.gate.clear()
        batch = create(
            client, [line("first", "wait 1")] + [line(f"n{number}" + "é" * 200, "x") for number in range(60)]
        )
        wait_for(lambda: opened.app.state.service.admission.num_inside, "it is asked")
        client.batches.cancel(batch.id)
        opened.script.gate.set()
        batch = ended(client, batch)
        left = results(client, batch.error_file_id)
        assert 10 < len(left) < 50
        assert store.used("") <= 130_000


def test_a_line_longer_than_a_request_may_be_is_refused(tmp_path: Path) -> None:
    """It never reaches the endpoint, whose turn would be everybody's wait."""
    with server(tmp_path, max_body_bytes=4096) as opened:
        client = opened.client()
        lines = [line("a"), line("b", prompt=[[]] * 2000), line("c", "x" * 3000), line("d", "x" * 4000)]
        batch = ended(client, create(client, lines))
        assert batch.status == "failed"
        assert [(error.line, error.code) for error in batch.errors.data] == [(2, "line_too_long"), (4, "line_too_long")]
        assert "4096 bytes (server.max_body_bytes)" in batch.errors.data[0].message
        assert ended(client, create(client, lines[::2])).status == "completed"


def test_a_batch_whose_lines_are_too_long_by_now_ends_with_what_it_has(tmp_path: Path) -> None:
    with server(tmp_path) as first:
        first.script.gate.clear()
        lines = [line(f"n{number}", "wait" if number >= 20 else "") for number in range(30)] + [line("c", "x" * 3000)]
        batch = create(first.client(), lines)
        wait_for(lambda: counts(first.client().batches.retrieve(batch.id))[1] >= 10, "some are answered")
    with server(tmp_path, max_body_bytes=1024) as second:
        batch = ended(second.client(), batch)
        assert batch.status == "failed"
        assert [(error.line, error.code) for error in batch.errors.data] == [(31, "line_too_long")]
        assert results(second.client(), batch.output_file_id).keys() >= {f"n{number}" for number in range(10)}


def test_checks_of_cancelled_batches_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who creates and cancels has one file read at a time, not one for each batch."""
    gate, checked = threading.Event(), list[Any]()

    def check(*args: Any) -> BatchFile:
        checked.append(args)
        assert gate.wait(60)
        return check_requests(*args)

    monkeypatch.setattr("ewe.server.batch.batch_runner.check_requests", check)
    with server(tmp_path) as opened:
        client = opened.client()
        batches = [create(client, [line("a")]) for _ in range(6)]
        assert [client.batches.cancel(batch.id).status for batch in batches[:5]] == ["cancelled"] * 5
        gate.set()
        assert ended(client, batches[5]).status == "completed"
        assert len(checked) == 2


def test_a_file_deleted_while_it_is_fetched_comes_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    send, chat = FileResponse.__call__, line("a", "word " * 100_000)

    async def delete_first(self: FileResponse, *arguments: Any) -> None:
        for path in (tmp_path / "files").glob("file-*"):
            path.unlink()
        await send(self, *arguments)

    with server(tmp_path) as opened:
        client = opened.client()
        file = client.files.create(file=("in.jsonl", json.dumps(chat).encode()), purpose="batch")
        monkeypatch.setattr(FileResponse, "__call__", delete_first)
        assert json.loads(client.files.content(file.id).content) == chat
        with pytest.raises(openai.NotFoundError, match="there is no file"):
            client.files.content(file.id)
