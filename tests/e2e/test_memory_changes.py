"""What has changed, over the command line and over HTTP: listed, explained, restored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from server_rig import LONG, httpx, serving
from typer.testing import CliRunner

from ewe import LLM
from ewe.cli.main import app
from ewe.longterm.records import MemorySource, Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings

OLD, NEW = "I live in Porto.", "I moved to Bergen."


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with MemoryStore.create(tmp_path / "memories") as opened:
        memories = MemoryService(opened, clock=lambda: 86400.0)
        for text in (OLD, NEW):
            memories.add(text, Scope("ann"), MemorySource("user", "ann", 0.7))
    return tmp_path / "memories"


def done(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["memory", *map(str, arguments), "--user", "ann"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_lists_explains_and_restores(store: Path) -> None:
    [gone] = json.loads(done("superseded", store, "--json"))
    assert (gone["memory"]["content"], gone["by"]["content"]) == (OLD, NEW)
    memory_id = gone["memory"]["id"]
    assert f"held until 1970-01-02: {NEW}" in done("why", store, memory_id)
    assert "nothing took its place" in done("why", store, gone["by"]["id"])
    assert f"{memory_id} holds again: {OLD}" in done("restore", store, memory_id)
    assert done("superseded", store) == "nothing was superseded\n"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with LLM("builtin", longterm=tmp_path / "served") as llm, serving(create_app(llm, ServerSettings())) as address:
        yield address


def test_the_server_lists_explains_and_restores(url: str) -> None:
    with httpx.Client(base_url=url, timeout=LONG) as http:
        old, new = (http.post("/v1/memories", json={"content": text, "user": "ann"}).json() for text in (OLD, NEW))
        [gone] = http.get("/v1/memories/superseded", params={"user": "ann"}).json()["data"]
        assert (gone["memory"]["id"], gone["by"]["id"]) == (old["id"], new["id"])
        why = http.get(f"/v1/memories/{old['id']}/why", params={"user": "ann"}).json()
        assert (why["ended"], why["memory"]["id"], [one["reason"] for one in why["history"]][-1]) == (
            *(gone, old["id"], "superseded"),
        )
        assert http.get("/v1/memories/superseded", params={"user": "bob"}).json()["data"] == []
        assert http.get(f"/v1/memories/{old['id']}/why", params={"user": "bob"}).status_code == 404
        again = http.post(f"/v1/memories/{old['id']}/restore", json={"user": "ann"})
        assert again.json()["valid_until"] is None
        assert http.post(f"/v1/memories/{old['id']}/restore", json={"user": "ann"}).status_code == 400
