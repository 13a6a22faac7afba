"""Where the server's settings come from, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.config import Config, resolve_config
from ewe.errors import ConfigError
from ewe.server.settings import ServerSettings, read_environment, resolve_settings


def test_command_line_then_environment_then_file_then_default(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("server: {port: 1, max_n: 1, drain: 1}\nmemory: {retrieval_units: 1, verification_units: 1}\n")
    environ = {
        "EWE_ENGINE_SERVER__PORT": "2",
        "EWE_ENGINE_SERVER__MAX_N": "2",
        "EWE_ENGINE_MEMORY__RETRIEVAL_UNITS": "2",
        "EWE_PORT": "tcp://10.0.0.1:80",
    }
    config, server, unknown = resolve_settings(None, file, environ, ["server.port=3"])
    assert (server.port, server.max_n, server.drain, server.ping) == (3, 2, 1, 5.0)
    assert (config.memory.retrieval_units, config.memory.verification_units) == (2, 1)
    assert unknown == []


def test_the_built_in_model_brings_its_own_settings_beneath_all_others() -> None:
    config, _, _ = resolve_settings(None, None, {"EWE_ENGINE_FEEDBACK__MAX_ATTEMPTS": "2"}, [])
    assert (config.memory.unit_tokens, config.feedback.max_attempts, config.datastore) == (96, 2, "builtin")


def test_the_model_of_the_command_line_counts_more_than_the_environments() -> None:
    environ = {"EWE_ENGINE_MODEL__NAME": "other/model"}
    assert resolve_settings(None, None, environ, [])[0].model.name == "other/model"
    assert resolve_settings("third/model", None, environ, [])[0].model.name == "third/model"
    assert resolve_settings(None, None, environ, [])[0].datastore is None, "not the built-in model's"


def test_texts_in_the_environment_stay_texts_and_foreign_names_are_left_alone() -> None:
    environ = {
        "EWE_ENGINE_SERVER__API_KEY": "1e5",
        "EWE_ENGINE_DATASTORE": "no",
        "EWE_ENGINE_SERVICE_HOST": "10.0.0.1",
        "EWE_ENGINE_PORT": "tcp://10.0.0.1:80",
    }
    config, server, unknown = resolve_settings(None, None, environ, [])
    assert server.keys() == ("1e5",)
    assert config.datastore == "no"
    assert unknown == ["EWE_ENGINE_PORT", "EWE_ENGINE_SERVICE_HOST"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("EWE_ENGINE_SERVER__PROT", "server: unknown setting prot; did you mean port?"),
        ("EWE_ENGINE_MEMORY__RETRIEVAL_UNIT", "did you mean retrieval_units?"),
    ],
)
def test_misspelt_settings_are_refused_with_the_nearest_name(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        resolve_settings(None, None, {name: "1"}, [])


@pytest.mark.parametrize(
    "values", [{"port": 70000}, {"drain": -1}, {"max_n": 0}, {"deadline": float("inf")}, {"log_format": "xml"}]
)
def test_values_out_of_range_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=f"server: {next(iter(values))}"):
        ServerSettings.from_mapping(values)


def test_keys_come_from_a_file_and_are_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# of the team\nfirst-key\n\n second-key \n")
    settings = ServerSettings.from_mapping({"api_key": "own-key", "api_key_file": str(file)})
    assert settings.keys() == ("own-key", "first-key", "second-key")
    assert "own-key" not in repr(settings)
    assert "own-key" not in settings.model_dump_json()


@pytest.mark.parametrize("content", ["", "# nothing\n", None])
def test_a_key_file_without_keys_opens_nothing(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match="api_key_file"):
        ServerSettings(api_key_file=file).keys()
    with pytest.raises(ConfigError, match="empty"):
        ServerSettings.from_mapping({"api_key": ""}).keys()


def test_a_group_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("server: 3\n")
    with pytest.raises(ConfigError, match="server must be a group"):
        resolve_settings(None, file, {}, [])
    assert read_environment({"PATH": "x"}) == ({}, [])


def test_a_file_may_hold_the_servers_settings_for_every_command(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("server: {port: 9000}\nmemory: {retrieval_units: 3}\n")
    bad.write_text("server: {prot: 9000}\n")
    assert Config.from_yaml(good).memory.retrieval_units == 3
    assert resolve_config(None, good).memory.retrieval_units == 3
    assert ServerSettings.from_yaml(good).port == 9000
    told = CliRunner().invoke(app, ["validate", "--settings-only", str(good), str(bad)])
    assert told.exit_code == 1
    assert f"{good}: ok" in told.output
    assert "unknown setting prot; did you mean port?" in told.output
