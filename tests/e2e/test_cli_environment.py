"""Tests of the command line find the same text under any terminal and below any temporary path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from environment import OVERRIDES, TERMINAL, fixed_terminal
from typer.testing import CliRunner

from ewe.cli.main import app

HERE = Path(__file__).parent
# What made, or could make, outputs differ from one machine to the next.
HOSTILE = {"COLUMNS": "40", "TERM": "xterm-256color", **dict.fromkeys(OVERRIDES, "1"), "TERMINAL_WIDTH": "30"}


def deep_folder(parent: Path, levels: int) -> Path:
    folder = parent.joinpath(*["folder-" + "x" * 100] * levels)
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A folder with a path of more than 1000 characters."""
    return deep_folder(tmp_path, 10)


@pytest.fixture
def _hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)


def test_the_terminal_is_wider_than_any_path() -> None:
    assert int(os.environ["COLUMNS"]) > os.pathconf("/", "PC_PATH_MAX")
    assert {name: os.environ.get(name) for name in TERMINAL} == TERMINAL
    assert not set(OVERRIDES) & set(os.environ)


@pytest.mark.usefixtures("_hostile")
@pytest.mark.parametrize("as_process", [False, True], ids=["in this process", "as a process"])
def test_no_phrase_of_an_error_is_broken(deep: Path, as_process: bool) -> None:
    schema = deep / "schema.json"
    schema.write_text("[1")
    arguments = ["generate", "x", "--json-schema", str(schema)]
    with fixed_terminal():
        if as_process:
            command = [sys.executable, "-m", "ewe.cli.main", *arguments]
            text = subprocess.run(command, capture_output=True, text=True, check=False).stderr
        else:
            text = CliRunner().invoke(app, arguments).stderr
    assert f"{schema} is no JSON: " in text
    assert "\x1b" not in text


@pytest.mark.slow
def test_the_command_lines_tests_pass_in_a_hostile_environment(tmp_path: Path) -> None:
    base = deep_folder(tmp_path, 2) / "base"  # SQLite opens no path of more than 500 bytes
    files = sorted(map(str, HERE.glob("test_cli*.py")))
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "--basetemp", str(base)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    hostile = {**HOSTILE, "EWE_DEBUG": "1", "EWE_ENGINE_MEMORY__UNIT_TOKENS": "odd", "http_proxy": "http://127.0.0.1:9"}
    command = [sys.executable, "-m", "pytest", *options, *files]
    done = subprocess.run(
        command, cwd=HERE.parents[1], env={**environment, **hostile}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ewe", "eval", "factuality"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Usage: python -m ewe eval factuality" in done.stderr
