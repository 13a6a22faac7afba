"""Spans: whose parts they are, what they say, and that no text is in them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")
pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry is not installed")

import httpx
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.server.observability.tracing import Tracing
from ewe.server.request_handling.middleware import open_tracing
from ewe.server.settings import ServerSettings

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def exported() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exported: InMemorySpanExporter) -> Tracing:
    return Tracing(SimpleSpanProcessor(exported))


async def tell(request: Request) -> JSONResponse:
    """What the app is told of the trace."""
    told = {"traceparent": request.headers.get("traceparent"), "trace_id": request.scope["state"]["trace_id"]}
    return JSONResponse(told, 200 if request.path_params["name"] == "fine" else 503)


async def probe(request: Request) -> JSONResponse:
    return JSONResponse({"traceparent": request.headers.get("traceparent")})


def get(tracing: Tracing, path: str, headers: dict[str, str]) -> httpx.Response:
    app = tracing.around(Starlette(routes=[Route("/things/{name}", tell), Route("/ping", probe)]))

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(ask())


def test_a_request_is_a_part_of_its_callers_trace_and_says_so_to_the_app(
    tracing: Tracing, exported: InMemorySpanExporter
) -> None:
    told = get(tracing, "/things/fine", {"traceparent": PARENT}).json()
    [span] = exported.get_finished_spans()
    assert span.name == "GET /things/{name}"
    assert span.parent is not None
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, "00f067aa0ba902b7")
    assert told == {"traceparent": f"00-{TRACE}-{span.context.span_id:016x}-01", "trace_id": TRACE}
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 200
    assert "fine" not in span.to_json(), "a path may hold what a user wrote"


@pytest.mark.parametrize("header", [{}, {"traceparent": "00-zz-00-01"}])
def test_without_a_caller_that_traces_it_begins_a_trace(
    tracing: Tracing, exported: InMemorySpanExporter, header: dict[str, str]
) -> None:
    get(tracing, "/things/fails", header)
    [span] = exported.get_finished_spans()
    assert span.parent is None
    assert span.status.status_code == StatusCode.ERROR


def test_probes_are_left_alone(tracing: Tracing, exported: InMemorySpanExporter) -> None:
    assert get(tracing, "/ping", {"traceparent": PARENT}).json() == {"traceparent": PARENT}
    assert exported.get_finished_spans() == ()


SECRET = "Nobody but us may read this."
CHECK = {"text": SECRET, "verdict": "refuted", "claims": [{"text": SECRET}], "attempt": 1, "latency_s": 0.5}
REWIND = {"start": 0, "text": SECRET, "discarded_tokens": 7, "reason": "refuted"}


def seen(tracing: Tracing, exported: InMemorySpanExporter, *events: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """The finished spans by name after a request of these events."""
    spans = tracing.of_run({"traceparent": PARENT})
    sequence: Any = object()
    for kind, data in events:
        spans.see(sequence, StreamEvent(kind, data))
    spans.close()
    found = exported.get_finished_spans()
    assert all(f"{span.context.trace_id:032x}" == TRACE for span in found)
    assert not [span for span in found if "Nobody" in span.to_json()]
    return {span.name: span for span in found}


def test_a_look_a_check_and_a_rewrite_have_spans(tracing: Tracing, exported: InMemorySpanExporter) -> None:
    look = {"query": SECRET, "passages": [{"id": "a", "title": SECRET}], "latency_s": 0.25}
    spans = seen(
        tracing,
        exported,
        *(("retrieval", look), ("verification", CHECK), ("rewind", REWIND)),
        *(("draft", {"text": SECRET}), ("sentence", {"text": SECRET})),
    )
    assert spans.keys() == {"retrieve", "verify", "rewrite"}
    assert spans["retrieve"].end_time - spans["retrieve"].start_time == 250_000_000
    assert spans["retrieve"].attributes == {"ewe.answer": 0, "ewe.passages": 1}
    assert spans["verify"].attributes == {"ewe.answer": 0, "ewe.verdict": "refuted", "ewe.claims": 1, "ewe.attempt": 1}
    told = {"ewe.answer": 0, "ewe.reason": "refuted", "ewe.discarded_tokens": 7}
    assert spans["rewrite"].attributes == told


def test_what_fails_is_marked_without_its_message(tracing: Tracing, exported: InMemorySpanExporter) -> None:
    spans = seen(tracing, exported, ("verification", {**CHECK, "error": SECRET}))
    assert spans["verify"].status.status_code == StatusCode.ERROR


def test_a_rewrite_that_is_broken_off_ends_with_its_request(tracing: Tracing, exported: InMemorySpanExporter) -> None:
    assert seen(tracing, exported, ("rewind", REWIND)).keys() == {"rewrite"}
    exported.clear()
    seen(tracing, exported, ("rewind", REWIND), ("rewind", REWIND))
    assert [span.name for span in exported.get_finished_spans()] == ["rewrite", "rewrite"]


def test_it_is_off_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_tracing(ServerSettings()) is None
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the exporter is not installed")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")  # nothing is sent from here
    assert open_tracing(ServerSettings(tracing=True)) is not None


def test_span_attributes_are_json(tracing: Tracing, exported: InMemorySpanExporter) -> None:
    get(tracing, "/things/fine", {})
    [span] = exported.get_finished_spans()
    assert json.loads(span.to_json())["attributes"]["http.route"] == "/things/{name}"
