"""Files come in forms of one kind, so many for a key; whatever they are called, their records can be read again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")
pytest.importorskip("multipart", reason="python-multipart is not installed")

from fastapi.testclient import TestClient

from ewe.server.app import create_app
from ewe.server.settings import ServerSettings


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(None, ServerSettings(batch_folder=tmp_path))) as opened:
        yield opened


def form(name: str = "a.jsonl") -> bytes:
    head = b'--BB\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--BB\r\n'
    return head + f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n\r\nx\r\n--BB--\r\n'.encode()


@pytest.mark.parametrize(
    "charset",
    ["unicode_escape", "raw_unicode_escape", "utf-7", "undefined", "punycode", "idna", "latin-1", "none", '"utf-8 "'],
)
def test_forms_of_other_character_sets_are_refused_before_anything_is_kept(client: TestClient, charset: str) -> None:
    kind = f"multipart/form-data; boundary=BB; charset={charset}"
    for name in (r"\ud800.jsonl", "+2AA-.jsonl", "xn--\xff"):
        refused = client.post("/v1/files", content=form(name), headers={"content-type": kind})
        assert refused.status_code == 400, refused.text
        assert "UTF-8 only: leave `charset` out" in refused.json()["error"]["message"]
    assert client.get("/v1/files").json()["data"] == []


@pytest.mark.parametrize(
    "kind", ["multipart/form-data; boundary=BB", 'Multipart/Form-Data; boundary="BB"; charset=UTF-8']
)
def test_files_are_called_what_utf_8_says(client: TestClient, kind: str) -> None:
    names = {"ä\u2028😀.jsonl", r"\ud800.jsonl"}
    for name in names:
        kept = client.post("/v1/files", content=form(name), headers={"content-type": kind})
        assert kept.status_code == 200, kept.text
    assert {file["filename"] for file in client.get("/v1/files").json()["data"]} == names


@pytest.mark.parametrize(
    "kind",
    ["application/x-www-form-urlencoded", "application/json", "text/plain", "multipart/mixed; boundary=BB", None],
)
def test_other_bodies_are_refused_unread(client: TestClient, kind: str | None) -> None:
    """Forms in the other format take a second of the event loop for three megabytes."""
    sent: list[Any] = []

    async def receive() -> Any:
        pytest.fail("the body is read")

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", kind.encode())] if kind is not None else []
    scope = {
        **{"type": "http", "method": "POST", "path": "/v1/files", "raw_path": b"/v1/files", "query_string": b""},
        **{"headers": headers, "scheme": "http", "server": ("a", 1), "client": ("b", 1), "http_version": "1.1"},
    }
    asyncio.run(client.app(scope, receive, send))
    assert sent[0]["status"] == 400
    message = json.loads(sent[1]["body"])["error"]["message"]
    assert "`content-type: multipart/form-data`" in message


def test_a_key_has_so_many_files_and_pages_of_them_are_bounded(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ewe.server.batch.batches._MOST_FILES", 3)
    monkeypatch.setattr("ewe.server.batch.batches._MOST_LISTED", 2)
    kind = {"content-type": "multipart/form-data; boundary=BB"}
    ids = [client.post("/v1/files", content=form(), headers=kind).json()["id"] for _ in range(3)]
    refused = client.post("/v1/files", content=form(), headers=kind)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "too_many")
    assert "3 files, the most that it may: delete some" in refused.json()["error"]["message"]
    shown = client.get("/v1/files?limit=10000&order=asc").json()
    assert ([file["id"] for file in shown["data"]], shown["has_more"]) == (ids[:2], True)
    shown = client.get(f"/v1/files?order=asc&after={ids[1]}").json()
    assert ([file["id"] for file in shown["data"]], shown["has_more"]) == (ids[2:], False)
    client.delete(f"/v1/files/{ids[0]}")
    assert client.post("/v1/files", content=form(), headers=kind).status_code == 200


def test_of_a_file_that_a_full_disk_has_no_room_for_nothing_is_left(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    for ends in ([fail], [lambda _: None, fail]):  # of the content, of the record
        left = iter(ends)
        monkeypatch.setattr("ewe.server.batch.batch_store.os.fsync", lambda handle, left=left: next(left)(handle))
        refused = client.post("/v1/files", content=form(), headers={"content-type": "multipart/form-data; boundary=BB"})
        assert refused.status_code == 500
        assert client.get("/v1/files").json()["data"] == []
        assert list((tmp_path / "files").iterdir()) == []
