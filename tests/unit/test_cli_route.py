"""`ewe route` and `ewe serve --replicas`: what becomes of their options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.cli.main import app
from ewe.errors import DatastoreError
from ewe.server.router import router_process

Started = dict[str, Any]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """What the router would have been started with."""
    found: Started = {}

    def note(settings: Any, replicas: Any, processes: Any = (), find_passage: Any = None) -> None:
        found.update(settings=settings, replicas=replicas.replicas, processes=processes, find=find_passage)

    monkeypatch.setattr(router_process, "serve_router", note)
    return found


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def test_servers_elsewhere(started: Started) -> None:
    assert invoke("route", "http://a:1/", "http://b:2", "--port", "7").exit_code == 0
    assert [replica.url for replica in started["replicas"]] == ["http://a:1", "http://b:2"]
    assert started["settings"].port == 7
    assert started["find"] is None, "not the built-in model's datastore"


@pytest.mark.parametrize("url", ["b:2", "http://", "http://ann:hidden@b", "http://b/path", "http://b?x=1"])
def test_an_address_is_a_root_without_a_user(started: Started, url: str) -> None:
    done = invoke("route", url)
    assert (done.exit_code, started) == (2, {})
    assert "hidden" not in done.output


def test_the_router_finds_what_a_question_is_about(started: Started) -> None:
    assert invoke("route", "http://a", "--datastore", "builtin").exit_code == 0
    assert {started["find"](f"{asked} Nurim Nurner?") for asked in ("Who was", "When did they bury")} == {
        "Nurim Nurner"
    }
    assert invoke("route", "http://a", "--datastore", "builtin", "--set", "retrieval.retriever=dense").exit_code == 0
    assert started["find"] is None


def test_a_datastore_that_fails_leaves_the_choice_to_the_words(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke("route", "http://a", "--datastore", "builtin").exit_code == 0

    def fail(*_: Any) -> None:
        raise DatastoreError("gone")

    monkeypatch.setattr("ewe.retrieval.bm25.BM25Retriever.retrieve", fail)
    assert started["find"]("Who was Nurim Nurner?") == ""


def test_replicas_have_the_same_settings_and_only_the_first_keeps_batches(started: Started, tmp_path: Path) -> None:
    config = tmp_path / "own.yaml"
    config.write_text("server: {max_n: 3}\n")
    own = ["--config", str(config), "--set", "server.batch_folder=x", "--host", "0.0.0.0", "--verifier", "none"]
    done = invoke("serve", "builtin", "--replicas", "2", *own)
    assert done.exit_code == 0, done.output
    assert (started["settings"].host, started["settings"].max_n) == ("0.0.0.0", 3)
    first, second = (list(process._command) for process in started["processes"])
    assert first[3:7] == ["serve", "builtin", "--config", str(config)]
    assert "server.trusted_proxies=[127.0.0.1]" in first
    settings = [item for item in first[7:] if item != "--set"]
    assert settings[-1] == "server.host=127.0.0.1", "after the one that was given"
    assert {"server.batch_folder=x", "verifier=none\n...\n"} <= set(settings)
    assert second == [*first, "--set", "server.batch_folder=null"]


@pytest.mark.parametrize("setting", ["longterm.path=memories", "datastore=milvus+file:store.db/passages"])
def test_what_one_process_may_open_is_refused(started: Started, setting: str) -> None:
    done = invoke("serve", "--replicas", "2", "--set", setting)
    assert done.exit_code == 2
    assert "--replicas:" in done.output
    assert not started
