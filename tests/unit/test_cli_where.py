"""`ewe index search --where`: only passages whose further fields have the values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ewe.cli.main import app


@pytest.fixture
def passages(tmp_path: Path) -> Path:
    path = tmp_path / "passages.jsonl"
    sections = {"a": "Results", "b": "Methods", "c": "Results"}
    rows = [{"id": key, "text": f"Bridge {key}.", "section": section} for key, section in sections.items()]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def search(passages: Path, *more: str) -> set[str]:
    command = ["index", "search", str(passages), "bridge", "--json", "--set", "retrieval.retriever=bm25"]
    result = CliRunner().invoke(app, [*command, *more])
    assert result.exit_code == 0, result.output
    return {found["id"] for found in json.loads(result.stdout)}


def test_values_of_one_field_are_alternatives(passages: Path) -> None:
    assert search(passages) == {"a", "b", "c"}
    assert search(passages, "--where", "section=Results") == {"a", "c"}
    assert search(passages, "--where", "section=Results", "--where", "section=Methods") == {"a", "b", "c"}
    assert search(passages, "--where", "section=Results", "--where", "page=3") == set()


def test_further_fields_are_shown_and_a_condition_without_a_value_is_refused(passages: Path) -> None:
    shown = CliRunner().invoke(app, ["index", "search", str(passages), "b", "--set", "retrieval.retriever=bm25"])
    assert "section=Methods" in shown.stdout
    refused = CliRunner().invoke(app, ["index", "search", str(passages), "bridge", "--where", "section"])
    assert refused.exit_code == 2
    assert "FIELD=VALUE" in refused.stderr
