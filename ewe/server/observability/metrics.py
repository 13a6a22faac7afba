"""What the server counts and measures, in the form that Prometheus reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.status import EngineStatus
from ewe.types import Generation, Verdict
from ewe.types.protocols import MEMORY_EVENTS

if TYPE_CHECKING:
    from ewe.server.engine_client.served_engine import OpenedRequest

_SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LONG = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)


_Family = type[GaugeMetricFamily] | type[CounterMetricFamily]


class Metrics:
    """The metrics of one app; status: the engine's, None while there is no engine; memories: counts of their events.

    tenants: answers under way by the name of their key; queued: works that wait, by kind and name of the key.
    """

    def __init__(
        self,
        status: Callable[[], EngineStatus | None],
        memories: Callable[[], Mapping[str, int]] = dict,
        tenants: Callable[[], Mapping[str, int]] = dict,
        queued: Callable[[], Mapping[tuple[str, str], int]] = dict,
    ) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_EngineFigures(status, memories, tenants, queued))
        self.prompt_tokens = self._counter("prompt_tokens", "Tokens of the prompts of finished requests.")
        self.generation_tokens = self._counter("generation_tokens", "Tokens of finished answers.")
        self.requests = self._counter("request_success", "Finished answers, by reason.", "finished_reason")
        self._keyed = self._counter("affinity_requests", "Requests that can be foreseen to share units.", "kind")
        self._key_hits = self._counter("affinity_hits", "Those of them whose like was answered here before.", "kind")
        self.backtracks = self._counter("backtracks", "Sentences that were taken back.")
        self.discarded = self._counter("tokens_discarded", "Tokens that were written and taken back.")
        self.sentences = self._counter("sentences", "Final sentences, by verdict.", "verdict")
        self.first_token = self._histogram("time_to_first_token_seconds", "From arrival to the first token.", _LONG)
        self.first_text = self._histogram("time_to_first_text_seconds", "From arrival to the first final text.", _LONG)
        self.between_tokens = self._histogram("inter_token_latency_seconds", "From token to token.", _SHORT)
        self.latency = self._histogram("e2e_request_latency_seconds", "From arrival to the end.", _LONG)
        self.queued = self._histogram("request_queue_time_seconds", "From arrival to the first work.", _LONG)
        self.retrieval = self._histogram("retrieval_seconds", "Time of a retrieval.", _SHORT)
        self.verification = self._histogram("verify_seconds", "Time of a check.", _SHORT)
        for verdict in Verdict:
            self.sentences.labels(verdict.value)  # shown as 0 from the start

    def text(self) -> bytes:
        """All of them in Prometheus' text format."""
        return generate_latest(self._registry)

    def see_key(self, kind: str, was_here: bool) -> None:
        """Counts a request with a key of this kind; was_here: whether its like was answered here before."""
        self._keyed.labels(kind).inc()
        self._key_hits.labels(kind).inc(was_here)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"ewe:{name}", text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"ewe:{name}", text, registry=self._registry, buckets=buckets)


class RunMeter:
    """Observes the events of one request, in the engine's thread."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._last_token: dict[OpenedRequest, dict[int, float]] = {}
        self._with_text: set[tuple[OpenedRequest, int]] = set()

    def see(self, opened: OpenedRequest, event: StreamEvent) -> None:
        """Takes one event in; opened: the request."""
        metrics = self._metrics
        if event.kind in ("draft", "reasoning"):
            self._see_token(opened, event.index)
        elif event.kind == "text" and (opened, event.index) not in self._with_text:
            self._with_text.add((opened, event.index))
            metrics.first_text.observe(time.monotonic() - opened.arrived)
        elif event.kind == "retrieval":
            metrics.retrieval.observe(event.data["latency_s"])
        elif event.kind == "verification":
            metrics.verification.observe(event.data["latency_s"])
        elif event.kind == "rewind":
            metrics.backtracks.inc()
            metrics.discarded.inc(event.data["discarded_tokens"])
        elif event.kind == "sentence":
            metrics.sentences.labels(event.data["verdict"]).inc()
        elif event.kind == "finish":
            self._see_end(event.generation, event.data["queued_s"])

    def close(self) -> None:
        """Nothing is left to count."""

    def _see_token(self, opened: OpenedRequest, index: int) -> None:
        now = time.monotonic()
        last = self._last_token.setdefault(opened, {})
        if index in last:
            self._metrics.between_tokens.observe(now - last[index])
        else:
            self._metrics.first_token.observe(now - opened.arrived)
        last[index] = now

    def _see_end(self, generation: Generation, queued_s: float) -> None:
        metrics, stats = self._metrics, generation.stats
        if generation.index == 0:
            metrics.prompt_tokens.inc(stats.prompt_tokens)
            metrics.queued.observe(queued_s)
        metrics.generation_tokens.inc(stats.tokens_kept)
        metrics.requests.labels(generation.finish_reason).inc()
        metrics.latency.observe(stats.total_s)


class _EngineFigures(Collector):
    def __init__(
        self,
        status: Callable[[], EngineStatus | None],
        memories: Callable[[], Mapping[str, int]],
        tenants: Callable[[], Mapping[str, int]],
        queued: Callable[[], Mapping[tuple[str, str], int]],
    ) -> None:
        self._status, self._memories, self._tenants, self._queued = status, memories, tenants, queued

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Figures of this moment, none of the engine while there is none; every event, also if it has not happened."""
        status = self._status()
        if status is not None:
            for name, (text, kind, value) in _figures(status).items():
                yield kind(f"ewe:{name}", text, value)
        counts = self._memories()
        text = "Long-term memories recalled, verified, promoted, reviewed; failures; answers not learnt from."
        family = CounterMetricFamily("ewe:longterm_events", text, labels=["event"])
        for event in MEMORY_EVENTS:
            family.add_metric([event], counts.get(event, 0))
        yield family
        text = "Answers under way, written or waiting, by the key that asked (a digest; empty without keys)."
        under_way = GaugeMetricFamily("ewe:tenant_requests", text, labels=["tenant"])
        for tenant, count in self._tenants().items():
            under_way.add_metric([tenant], count)
        yield under_way
        text = "Verifications, prompts and other works that wait for a thread, by kind and by the key that asked."
        queued = GaugeMetricFamily("ewe:tenant_queued", text, labels=["queue", "tenant"])
        for names, count in self._queued().items():
            queued.add_metric(list(names), count)
        yield queued


def _figures(status: EngineStatus) -> dict[str, tuple[str, _Family, float]]:
    gauge, counter = GaugeMetricFamily, CounterMetricFamily
    return {
        "num_requests_running": ("Answers that are being written.", gauge, status.running),
        "num_requests_waiting": ("Answers that wait for a place.", gauge, status.waiting),
        "kv_cache_usage_perc": ("Share of the KV blocks in use, 0 to 1.", gauge, status.cache_usage),
        "memory_units": ("Encoded memory units in the KV pool.", gauge, status.units),
        "unit_cache_hits": ("Units that were encoded before.", counter, status.unit_hits),
        "unit_cache_misses": ("Units that had to be encoded or loaded.", counter, status.unit_misses),
        "cuda_graphs": ("Decoding steps that are replayed.", gauge, status.graphs),
        "cuda_graphs_failed": ("Captures that failed.", gauge, status.failed_graphs),
        "unit_cache_loads": ("Missing units that came from files.", counter, status.unit_loads),
    }
