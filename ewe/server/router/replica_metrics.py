"""The metrics of all replicas in one answer, each with the label `replica`, and what the router itself counts."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence

import httpx
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from ewe.server.router.replicas import READY, Replica

_LABEL = "replica"


async def all_metrics(replicas: Sequence[Replica], client: httpx.AsyncClient, keys: Mapping[str, str]) -> bytes:
    """Prometheus' text format; replicas that cannot be asked, or have none, are left out. keys: the client's headers.

    Raises httpx.HTTPStatusError where one refuses the client's key.
    """
    texts = await asyncio.gather(*(_fetch(replica, client, keys) for replica in replicas))
    families: dict[str, Metric] = {}
    for replica, text in zip(replicas, texts, strict=True):
        for family in _families_of(text):
            merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples:
                merged.samples.append(sample._replace(labels={_LABEL: replica.name, **sample.labels}))
    return generate_latest(_Families([*_own(replicas), *families.values()]))


async def _fetch(replica: Replica, client: httpx.AsyncClient, keys: Mapping[str, str]) -> str:
    try:
        response = await client.get(f"{replica.url}/metrics", headers=dict(keys), timeout=5.0)
    except (httpx.TransportError, httpx.InvalidURL):
        return ""
    if response.status_code in (401, 403):
        response.raise_for_status()
    return response.text if response.is_success else ""


def _families_of(text: str) -> list[Metric]:
    """What a replica tells; nothing of a text that is not Prometheus'."""
    try:
        return list(text_string_to_metric_families(text))
    except ValueError:
        return []


def _own(replicas: Iterable[Replica]) -> Iterator[Metric]:
    ready = GaugeMetricFamily("ewe:router_replica_ready", "1 where requests are sent to.", labels=[_LABEL])
    load = GaugeMetricFamily("ewe:router_requests_running", "Requests under way.", labels=[_LABEL])
    requests = CounterMetricFamily("ewe:router_requests", "Requests that were sent there.", labels=[_LABEL])
    failed = CounterMetricFamily("ewe:router_failures", "Those refused or broken off there.", labels=[_LABEL])
    for replica in replicas:
        ready.add_metric([replica.name], replica.state == READY)
        load.add_metric([replica.name], replica.load)
        requests.add_metric([replica.name], replica.num_requests)
        failed.add_metric([replica.name], replica.failed)
    yield from (ready, load, requests, failed)


class _Families(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families
