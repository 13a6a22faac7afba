"""`ewe validate`: what a configuration asks of the machine is looked at, and nothing is loaded."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.cli.main import app


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EWE_CACHE_DIR", str(tmp_path / "cache"))


def validate(tmp_path: Path, *options: str, **settings: Any) -> Result:
    file = tmp_path / "prod.yaml"
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return CliRunner().invoke(app, ["validate", str(file), *options])


def lines(result: Result) -> list[str]:
    return [line.strip() for line in result.output.splitlines()[1:]]


def test_what_can_be_served_here_is_ok(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("secret-key\n")
    server = {"port": 0, "host": "0.0.0.0", "api_key_file": "keys", "batch_folder": "new/batches"}
    result = validate(tmp_path, datastore="wikipedia-sample", longterm={"path": "new/memories"}, server=server)
    assert (result.exit_code, result.output) == (0, f"{tmp_path / 'prod.yaml'}: ok\n")
    assert not (tmp_path / "new").exists(), "it only looks"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": {"name": "/nowhere/model"}}, "model.name '/nowhere/model': no such directory"),
        ({"model": {"name": "smollm2"}}, "run `ewe model get smollm2`"),
        ({"model": {"adapters": {"law": "/nowhere/law"}}}, "model.adapters.law '/nowhere/law': no such directory"),
        ({"memory": {"precomputed": "/nowhere/units"}}, "memory.precomputed: /nowhere/units is no folder"),
        ({"datastore": "/nowhere/store"}, "the datastore /nowhere/store does not exist"),
        ({"datastore": "builtin", "verification": {"judge": "./nowhere"}}, "the judge './nowhere' is no folder"),
        ({"datastore": "builtin", "retrieval": {"encoder": "./nowhere"}}, "retrieval.encoder: the model ./nowhere"),
        ({"datastore": "builtin", "retrieval": {"reranker": "./nowhere"}}, "retrieval.reranker: the model ./nowhere"),
        ({"datastore": "builtin", "retrieval": {"sources": "nowhere.yaml"}}, "nowhere.yaml"),
        ({"verifier": "claims"}, "looks for evidence in a datastore"),
        ({"longterm": {"path": "file/memories"}}, "longterm.path: file is no folder"),
        ({"server": {"port": 0, "batch_folder": "file/batches"}}, "server.batch_folder: file is no folder"),
        ({"server": {"port": 0, "api_key_file": "file"}}, "server.api_key_file: file holds no key"),
        ({"server": {"port": 0, "api_key_file": "/nowhere/keys"}}, "server.api_key_file: cannot read /nowhere/keys"),
        ({"server": {"prot": 0}}, "server: unknown setting prot; did you mean port?"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, settings: dict[str, Any], told: str) -> None:
    (tmp_path / "file").write_text("# no key\n")
    result = validate(tmp_path, **settings)
    assert result.exit_code == 1
    assert result.output.startswith(f"{tmp_path / 'prod.yaml'}: not valid\n")
    assert any(told in line for line in lines(result)), result.output


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    result = validate(tmp_path, model={"name": "/nowhere/model"}, datastore="/nowhere/store", longterm={"path": "."})
    assert [line.split(" ")[0] for line in lines(result)] == ["model.name", "the"]


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = validate(tmp_path, server={"port": port})
    assert result.exit_code == 1
    assert lines(result)[0].startswith(f"cannot listen on 127.0.0.1, port {port}: ")


def test_a_store_of_memories_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"postgresql://ewe@127.0.0.1:{port}/memories"
    result = validate(tmp_path, longterm={"path": url})
    assert result.exit_code == 1
    assert lines(result)[0].startswith(f"{url}: it cannot be reached")


def test_what_cannot_be_told_from_here_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EWE_ENGINE_PROT", "1")
    result = validate(
        tmp_path, model={"name": "some/model"}, server={"port": 0, "host": "0.0.0.0", "cors_origins": ["*"]}
    )
    assert result.exit_code == 0
    told = lines(result)
    assert [line for line in told if line.startswith("note: model.name some/model is a hub id")]
    assert [line for line in told if "EWE_ENGINE_PROT is no setting" in line]
    assert [line for line in told if "whoever reaches this address can use the server" in line]
    assert [line for line in told if "cors_origins lets pages of every web site ask" in line]


def test_the_environment_counts_as_it_does_when_the_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EWE_ENGINE_DATASTORE", "/nowhere/store")
    assert "the datastore /nowhere/store does not exist" in validate(tmp_path, server={"port": 0}).output


def test_settings_alone_can_be_checked_elsewhere(tmp_path: Path) -> None:
    missing: dict[str, Any] = {"model": {"name": "/nowhere/model"}, "server": {"api_key_file": "/nowhere/keys"}}
    result = validate(tmp_path, "--settings-only", **missing)
    assert (result.exit_code, result.output) == (0, f"{tmp_path / 'prod.yaml'}: ok\n")
    assert validate(tmp_path, "--settings-only", server={"prot": 0}).exit_code == 1
