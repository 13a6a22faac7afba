"""A request through the router to a server with the built-in model: one trace, and a log without its words."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from builtin_rig import CHAT, CONFIG, loaded_model
from server_rig import PROMPT, http, serving, wait_for

pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry is not installed")

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ewe import LLM
from ewe.server.app import create_app
from ewe.server.observability.tracing import Tracing
from ewe.server.request_handling.middleware import set_up_logs
from ewe.server.router.replicas import Replica, ReplicaSet
from ewe.server.router.router_app import create_router

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def spans_of(exported: InMemorySpanExporter) -> list[Any]:
    return [span for span in exported.get_finished_spans() if f"{span.context.trace_id:032x}" == TRACE]


@pytest.mark.parametrize("router_traces", [True, False])
def test_one_trace_from_the_caller_to_the_engine(
    router_traces: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_server, of_router = InMemorySpanExporter(), InMemorySpanExporter()
    tracing = Tracing(SimpleSpanProcessor(of_router)) if router_traces else None
    for name in ("ewe.server", "ewe.longterm", "uvicorn", "asyncio"):  # as it was, when the test is over
        monkeypatch.setattr(logging.getLogger(name), "handlers", list(logging.getLogger(name).handlers))
        monkeypatch.setattr(logging.getLogger(name), "propagate", logging.getLogger(name).propagate)
    set_up_logs("json")
    with LLM(config=CONFIG, loaded=loaded_model()) as llm:
        app = create_app(llm, tracing=Tracing(SimpleSpanProcessor(of_server)))
        with serving(app) as url:
            replicas = ReplicaSet([Replica("0", url)])
            with serving(create_router(replicas, 1 << 20, tracing=tracing)) as address:
                wait_for(lambda: replicas.is_ready, "the server is ready")
                body = {**CHAT, "max_tokens": 40}
                http.post(f"{address}/v1/chat/completions", json=body, headers={"traceparent": PARENT})
    [request] = [span for span in spans_of(of_server) if span.name == "POST /v1/chat/completions"]
    parents = {f"{span.context.span_id:016x}" for span in spans_of(of_router)} or {"00f067aa0ba902b7"}
    assert f"{request.parent.span_id:016x}" in parents
    inner = [span for span in spans_of(of_server) if span is not request]
    assert {"retrieve", "verify"} <= {span.name for span in inner}
    assert {span.parent.span_id for span in inner} == {request.context.span_id}
    log = capsys.readouterr().err
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    told = [line for line in lines if line["event"] == "request" and line["path"] == "/v1/chat/completions"]
    assert {line.get("trace_id") for line in told} == ({TRACE} if router_traces else {TRACE, None})
    for word in (PROMPT, *PROMPT.rstrip("?").split()[-2:]):
        assert word not in log
        assert not [span for span in spans_of(of_server) if word in span.to_json()]
