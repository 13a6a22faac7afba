"""Dashboard and alert rules ask for metrics that server and router have, with their labels; no two panels overlap."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client", reason="the server's packages are not installed")
pytest.importorskip("fastapi", reason="the server's packages are not installed")

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ewe.engine.status import EngineStatus
from ewe.server.observability.metrics import Metrics
from ewe.server.router.replica_metrics import all_metrics
from ewe.server.router.replicas import Replica

FILE = Path(__file__).parents[2] / "docs" / "grafana" / "ewe.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
ALERTS = FILE.parents[2] / "deploy" / "prometheus" / "alerts.yaml"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]
]
_BY_PROMETHEUS = {"instance", "job", "le"}


def exposed() -> dict[str, set[str]]:
    """Every series that a server and a router show, with the names of its labels."""
    metrics = Metrics(lambda: STATUS, tenants=lambda: {"a": 1}, queued=lambda: {("tokens", "a"): 1})
    metrics.requests.labels("stop").inc()
    series: dict[str, set[str]] = {"up": set()}  # Prometheus' own
    for text in (metrics.text(), asyncio.run(of_router())):
        for family in text_string_to_metric_families(text.decode()):
            for sample in family.samples:
                series.setdefault(sample.name, set()).update(sample.labels)
    return series


async def of_router() -> bytes:
    """What a router shows beside the metrics of its servers."""
    async with httpx.AsyncClient() as client:
        return await all_metrics([Replica("0")], client, {})


def names_in(query: str) -> list[str]:
    return re.findall(r"ewe:[a-z0-9_]+|\bup\b", query)


STATUS = EngineStatus(**dict.fromkeys(EngineStatus.__dataclass_fields__, 1))


def test_every_metric_that_is_asked_for_is_there() -> None:
    known = exposed()
    for query in (*QUERIES, *(rule["expr"] for rule in RULES)):
        assert names_in(query), query
        assert set(names_in(query)) <= set(known), query


def test_every_label_that_is_asked_for_is_there() -> None:
    known = exposed()
    texts = [(query, "") for query in QUERIES]
    texts += [(rule["expr"], rule["annotations"]["summary"]) for rule in RULES]
    for query, summary in texts:
        labels = {label for name in names_in(query) for label in known[name]} | _BY_PROMETHEUS
        asked = set(re.findall(r"(\w+)(?:=~|!=|=)\"", query)) | set(re.findall(r"\$labels\.(\w+)", summary))
        asked |= {name for names in re.findall(r"by \(([^)]*)\)", query) for name in names.split(", ")}
        assert asked <= labels, query


def test_labels_in_a_message_are_those_that_the_query_keeps() -> None:
    known = exposed()
    for rule in RULES:
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        kept = {name for names in re.findall(r"by \(([^)]*)\)", rule["expr"]) for name in names.split(", ")}
        if not kept:  # nothing is summed up
            kept = _BY_PROMETHEUS | {label for name in names_in(rule["expr"]) for label in known[name]}
        assert used <= kept, rule["alert"]


def test_every_alert_says_what_is_wrong_and_how_urgent_it_is() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_every_metric_of_the_server_is_on_it() -> None:
    shown = set(re.findall(r"ewe:[a-z0-9_]+", " ".join(QUERIES)))
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exposed() if not name.endswith("_created")}
    assert families - {"up"} == {re.sub(r"_(bucket|count)$", "", name) for name in shown}


def test_queries_are_balanced_and_counters_are_rates() -> None:
    for query in QUERIES:
        assert query.count("(") == query.count(")")
        assert query.count("{") == query.count("}")
        assert len(re.findall(r"rate\(ewe:\w+_(?:total|bucket)\{", query)) == len(
            re.findall(r"_(?:total|bucket)\{", query)
        )


def test_panels_lie_beside_each_other_within_the_grid() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & own, panel["title"]
        cells |= own
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_it_can_be_loaded_into_any_grafana() -> None:
    assert "id" not in DASHBOARD
    assert DASHBOARD["uid"]
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)\}?", json.dumps(PANELS)))
    assert used <= variables
    for panel in PANELS:
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["title"]
        assert panel["description"]
