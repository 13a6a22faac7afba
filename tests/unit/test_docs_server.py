"""docs/guides/server.md names what the server has: routes, statuses, codes, headers, fields, metrics."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.engine.status import EngineStatus
from ewe.server.app import create_app
from ewe.server.observability.metrics import Metrics
from ewe.server.schemas.chat_schemas import ChatRequest
from ewe.server.schemas.common import EweOptions
from ewe.server.schemas.completion_schemas import CompletionRequest
from ewe.server.schemas.embed_rerank_schemas import EmbeddingRequest, RerankRequest
from ewe.server.schemas.ewe_result import EweClaim, EweResult, EweRevision, EweSentence, EweSource
from ewe.server.schemas.operation_schemas import DetokenizeRequest, TokenizeRequest
from ewe.server.schemas.response_schemas import ResponsesRequest
from ewe.server.schemas.sampling_schemas import SamplingRequest
from ewe.server.settings import ServerSettings

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "server.md").read_text(encoding="utf-8")
BATCHES = (ROOT / "docs" / "guides" / "batch.md").read_text(encoding="utf-8")
MEMORIES = (ROOT / "docs" / "guides" / "longterm_memory.md").read_text(encoding="utf-8")
CODE = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("server", "longterm/routes")
    for path in sorted((ROOT / "ewe" / folder).rglob("*.py"))
    if path.parent.name != "router" and path.name != "requests.py"  # a proxy, and lines of a batch
)


def section(heading: str) -> str:
    return GUIDE.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def test_routes() -> None:
    told = set(re.findall(r"`(GET|POST) (/[\w/.]*)`", section("Routes")))
    described = create_app().openapi()["paths"]
    for path, methods in described.items():
        if path.startswith("/v1/memories"):
            assert path.replace("{memory_id}", "ID") in MEMORIES, path
        elif path.startswith(("/v1/files", "/v1/batches")):
            assert f"`{path}`" in BATCHES, path
        elif "{" not in path:
            assert {(method.upper(), path) for method in methods} <= told, path
    hidden = {"/", "/docs", "/openapi.json"}
    assert {path for _, path in told} <= {*described, *hidden}
    assert hidden <= {path for _, path in told}


def test_statuses_codes_and_headers_of_errors() -> None:
    errors = section("Errors")
    table = {status for row in re.findall(r"^\| ([\d, ]+) \|", errors, re.M) for status in row.split(", ")}
    raised = set(re.findall(r"RefusedError\(\s*(\d{3})", CODE)) - {"499"}  # nobody is there to read that one
    assert raised | {"405"} == table
    codes = set(re.findall(r'code="(\w+)"', CODE)) | set(re.findall(r'\d{3}: "(\w+_\w+)"', CODE))
    codes -= {"authentication_error", "not_found_error", "rate_limit_error"}  # types
    codes -= {"overloaded_error", "permission_error", "request_too_large"}  # types of Anthropic's
    listed = set(re.findall(r"`(\w+)`", errors.partition("in `code`:")[2].partition("It is null")[0]))
    assert codes == listed
    for header in ("x-request-id", "retry-after", "x-should-retry", "www-authenticate"):
        assert header in CODE
        assert f"`{header}" in errors


def test_fields_of_requests_and_answers() -> None:
    requests, answers = section("Requests"), section("Answers")
    for name in ChatRequest.model_fields.keys() | EweOptions.model_fields.keys():
        assert f"`{name}`" in requests, name
    for shape in (EweResult, EweSentence, EweSource, EweRevision, EweClaim):
        for name in shape.model_fields:
            assert f"`{name}`" in answers, (shape.__name__, name)


KINDS = {
    "all that write text": SamplingRequest,
    "/v1/chat/completions": ChatRequest,
    "/v1/completions": CompletionRequest,
    "/v1/responses": ResponsesRequest,
    "/v1/embeddings": EmbeddingRequest,
    "/v1/rerank": RerankRequest,
    "/tokenize": TokenizeRequest,
    "/detokenize": DetokenizeRequest,
}
TOOLS = {"tools", "tool_choice", "parallel_tool_calls", "functions"}
# Lists of which a request may ask for what there is: no single neutral value.
REFUSED_IN_PART = {("/v1/chat/completions", "modalities")}
# -1 is what there is.
SUPPORTED_IN_PART = {("/v1/embeddings", "truncate_prompt_tokens"), ("/v1/rerank", "truncate_prompt_tokens")}


def asks_for_nothing(annotation: Any) -> bool:
    """Whether a field takes null and a single neutral value at most."""
    kinds = [kind for kind in get_args(annotation) or (annotation,) if kind is not NoneType]
    return all(get_origin(kind) is Literal and len(get_args(kind)) == 1 for kind in kinds)


def test_the_table_of_the_api_says_what_becomes_of_every_field() -> None:
    table = section("Requests").partition("### What there is")[2]
    rows = dict(re.findall(r"^\| `?([^|`]+?)`? \| (.*) \|$", table, re.M))
    for name, kind in KINDS.items():
        shared = SamplingRequest.model_fields if kind.__base__ is SamplingRequest else {}
        cells = (re.findall(r"`(\w+)`", cell) for cell in rows[name].split("|"))
        supported, ignored, refused = (set(cell) for cell in cells)
        fields = {
            field: info.annotation
            for field, info in kind.model_fields.items()
            if field not in shared or info.annotation != shared[field].annotation
        }
        expected = {field for field, annotation in fields.items() if asks_for_nothing(annotation)}
        expected |= {field for row, field in REFUSED_IN_PART if row == name}
        expected -= {field for row, field in SUPPORTED_IN_PART if row == name}
        labels = kind.labels & fields.keys()
        assert refused == expected - TOOLS, name
        assert labels <= ignored, name
        assert not (ignored - labels) & kind.model_fields.keys(), name
        assert supported == fields.keys() - expected - labels - TOOLS, name
    assert all(f"`{name}`" in table for name in TOOLS)


def test_settings_and_their_defaults() -> None:
    listed = dict(re.findall(r"^- `(\w+)` \(`([^`]*)`\): ", section("Settings"), re.M))
    defaults = {name: field.default for name, field in ServerSettings.model_fields.items()}
    assert {name: yaml.safe_load(text) for name, text in listed.items()} == json.loads(json.dumps(defaults))


def test_metrics_of_our_own() -> None:
    state: Any = EngineStatus(*[1] * len(dataclasses.fields(EngineStatus)))
    there = Metrics(lambda: state).text().decode()
    told = re.findall(r"`ewe:(\w+)`", section("Operation"))
    assert told
    for name in told:
        assert f"# TYPE ewe:{name}" in there, name
