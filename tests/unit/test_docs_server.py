"""docs/guides/server.md names what the server has: routes, statuses, codes, headers, fields, metrics."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.engine.status import EngineStatus
from ewe.server.app import create_app
from ewe.server.metrics import Metrics
from ewe.server.wire import EweClaim, EweOptions, EweResult, EweRevision, EweSentence, EweSource
from ewe.server.wire_chat import ChatRequest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "server.md").read_text(encoding="utf-8")
MEMORIES = (ROOT / "docs" / "guides" / "longterm_memory.md").read_text(encoding="utf-8")
CODE = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "ewe" / "server").glob("*.py")))


def section(heading: str) -> str:
    return GUIDE.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def test_routes() -> None:
    told = set(re.findall(r"`(GET|POST) (/[\w/.]*)`", section("Routes")))
    described = create_app().openapi()["paths"]
    for path, methods in described.items():
        if path.startswith("/v1/memories"):
            assert path.replace("{memory_id}", "ID") in MEMORIES, path
        elif "{" not in path:
            assert {(method.upper(), path) for method in methods} <= told, path
    hidden = {"/", "/openapi.json"}
    assert {path for _, path in told} <= {*described, *hidden}
    assert hidden <= {path for _, path in told}


def test_statuses_codes_and_headers_of_errors() -> None:
    errors = section("Errors")
    table = {status for row in re.findall(r"^\| ([\d, ]+) \|", errors, re.M) for status in row.split(", ")}
    raised = set(re.findall(r"RefusedError\(\s*(\d{3})", CODE)) - {"499"}  # nobody is there to read that one
    assert raised | {"405"} == table
    codes = set(re.findall(r'code="(\w+)"', CODE)) | set(re.findall(r'\d{3}: "(\w+_\w+)"', CODE))
    codes -= {"authentication_error", "not_found_error", "rate_limit_error"}  # types
    listed = set(re.findall(r"`(\w+)`", errors.partition("in `code`:")[2].partition("It is null")[0]))
    assert codes == listed
    for header in ("x-request-id", "retry-after", "x-should-retry", "www-authenticate"):
        assert header in CODE
        assert f"`{header}" in errors


def test_fields_of_requests_and_answers() -> None:
    requests, answers = section("Requests"), section("Answers")
    neutral = {
        *("messages", "model", "tools", "functions", "tool_choice", "parallel_tool_calls", "modalities", "store"),
        *("stream", "stream_options", "service_tier"),
    }  # fmt: skip
    for name in (ChatRequest.model_fields.keys() - neutral) | EweOptions.model_fields.keys():
        assert f"`{name}`" in requests, name
    for shape in (EweResult, EweSentence, EweSource, EweRevision, EweClaim):
        for name in shape.model_fields:
            assert f"`{name}`" in answers, (shape.__name__, name)


def test_metrics_of_our_own() -> None:
    state: Any = EngineStatus(*[1] * len(dataclasses.fields(EngineStatus)))
    there = Metrics(lambda: state).text().decode()
    told = re.findall(r"`ewe:(\w+)`", section("Operation"))
    assert told
    for name in told:
        assert f"# TYPE ewe:{name}" in there, name
