"""OpenTelemetry spans of requests, and of what the engine does for them. They hold counts and verdicts, no texts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ewe.errors import ConfigError
from ewe.server import VERSION
from ewe.server.observability.log_lines import PROBES, shown_method

try:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as missing:
    raise ConfigError("server.tracing needs OpenTelemetry: pip install 'ewe-engine[otel]'") from missing

if TYPE_CHECKING:
    from ewe.engine.answer_text.stream_events import StreamEvent
    from ewe.server.engine_client.served_engine import OpenedRequest

_NAME_VARIABLE = "OTEL_SERVICE_NAME"
_PROPAGATOR = TraceContextTextMapPropagator()


class Tracing:
    """Makes spans and hands them to a processor; a caller's `traceparent` says what they are parts of."""

    def __init__(self, processor: SpanProcessor) -> None:
        named = {} if _NAME_VARIABLE in os.environ else {"service.name": "ewe"}
        provider = TracerProvider(resource=Resource.create({**named, "service.version": VERSION}))
        provider.add_span_processor(processor)
        self._tracer = provider.get_tracer("ewe", VERSION)

    @classmethod
    def to_collector(cls) -> Tracing:
        """Sends them over HTTP to where OpenTelemetry's own variables say (OTEL_EXPORTER_OTLP_ENDPOINT and others)."""
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as missing:
            raise ConfigError("server.tracing needs OpenTelemetry: pip install 'ewe-engine[otel]'") from missing
        return cls(BatchSpanProcessor(OTLPSpanExporter()))

    def around(self, app: ASGIApp) -> ASGIApp:
        """The app with a span for each request but probes, whose `traceparent` is what the app is told."""

        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["path"] in PROBES:
                await app(scope, receive, send)
                return
            parent = _PROPAGATOR.extract(Headers(scope=scope))
            method = shown_method(scope["method"])
            span = self._tracer.start_span(method, parent, SpanKind.SERVER, {"http.request.method": method})
            try:
                await _in_span(app, span, scope, receive, send)
            finally:
                span.end()

        return traced

    def of_run(self, headers: Mapping[str, str]) -> RunSpans:
        """What watches a request in the engine; headers: of the request, as `around` told the app."""
        return RunSpans(self, _PROPAGATOR.extract(headers))

    def start(self, name: str, parent: Context, begin_ns: int, attributes: Mapping[str, Any]) -> Span:
        """A span that began at a time of the clock, in nanoseconds."""
        span: Span = self._tracer.start_span(name, parent, attributes=dict(attributes), start_time=begin_ns)
        return span


async def _in_span(app: ASGIApp, span: Span, scope: Scope, receive: Receive, send: Send) -> None:
    """Serves a request whose log line and `traceparent` name the span."""
    scope = {**scope, "headers": list(scope["headers"]), "state": {**scope.get("state", {})}}
    scope["state"]["trace_id"] = f"{span.get_span_context().trace_id:032x}"
    headers = MutableHeaders(scope=scope)
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, set_span_in_context(span))
    for name, value in carrier.items():
        headers[name] = value

    async def send_seen(message: Message) -> None:
        if message["type"] == "http.response.start":
            span.set_attribute("http.response.status_code", message["status"])
            if message["status"] >= 500:
                span.set_status(StatusCode.ERROR)
        await send(message)

    await app(scope, receive, send_seen)
    span.set_attribute("ewe.request_id", scope["state"].get("request_id", ""))
    route = getattr(scope.get("route"), "path", "")
    if route:  # not the path, which may hold what a user wrote
        span.set_attribute("http.route", route)
        span.update_name(f"{shown_method(scope['method'])} {route}")


class RunSpans:
    """The spans `retrieve`, `verify` and `rewrite` of one request, made in the engine's thread.

    A rewrite lasts from the rewind to the next sentence that is final, or taken back again.
    """

    def __init__(self, tracing: Tracing, parent: Context) -> None:
        self._tracing, self._parent = tracing, parent
        self._rewrites: dict[tuple[OpenedRequest, int], Span] = {}
        self._lock = threading.Lock()

    def see(self, opened: OpenedRequest, event: StreamEvent) -> None:
        """Takes one event in."""
        data, answer = event.data, {"ewe.answer": event.index}
        if event.kind == "retrieval":
            self._add("retrieve", data, {**answer, "ewe.passages": len(data["passages"])})
        elif event.kind == "verification":
            counts = {"ewe.verdict": data["verdict"], "ewe.claims": len(data["claims"]), "ewe.attempt": data["attempt"]}
            self._add("verify", data, {**answer, **counts})
        elif event.kind in ("rewind", "sentence", "finish"):
            with self._lock:
                self._end_rewrite((opened, event.index))
                if event.kind == "rewind":
                    attributes = {"ewe.reason": data["reason"], "ewe.discarded_tokens": data["discarded_tokens"]}
                    span = self._tracing.start("rewrite", self._parent, time.time_ns(), {**answer, **attributes})
                    self._rewrites[opened, event.index] = span

    def close(self) -> None:
        """Ends what was broken off."""
        with self._lock:
            for key in list(self._rewrites):
                self._end_rewrite(key)

    def _add(self, name: str, data: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
        """A span that ends now, of something that took `latency_s`."""
        end = time.time_ns()
        span = self._tracing.start(name, self._parent, end - int(data["latency_s"] * 1e9), attributes)
        if "error" in data:
            span.set_status(StatusCode.ERROR)
        span.end(end)

    def _end_rewrite(self, key: tuple[OpenedRequest, int]) -> None:
        span = self._rewrites.pop(key, None)
        if span is not None:
            span.end()
