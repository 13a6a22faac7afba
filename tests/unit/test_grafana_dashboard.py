"""The dashboard file asks for metrics that the server has, with labels that they have, and no two panels overlap."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client", reason="the server's packages are not installed")
pytest.importorskip("fastapi", reason="the server's packages are not installed")

from prometheus_client.parser import text_string_to_metric_families

from ewe.engine.status import EngineStatus
from ewe.server.metrics import Metrics

FILE = Path(__file__).parents[2] / "docs" / "grafana" / "ewe.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
_BY_PROMETHEUS = {"instance", "le"}


def exposed() -> dict[str, set[str]]:
    """Every series that the server shows, with the names of its labels."""
    metrics = Metrics(lambda: STATUS)
    metrics.requests.labels("stop").inc()
    series: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            series.setdefault(sample.name, set()).update(sample.labels)
    return series


STATUS = EngineStatus(**dict.fromkeys(EngineStatus.__dataclass_fields__, 1))


def test_every_metric_that_is_asked_for_is_there() -> None:
    known = exposed()
    for query in QUERIES:
        names = re.findall(r"ewe:[a-z0-9_]+", query)
        assert names, query
        assert set(names) <= set(known), query


def test_every_label_that_is_asked_for_is_there() -> None:
    known = exposed()
    for query in QUERIES:
        labels = {label for name in re.findall(r"ewe:[a-z0-9_]+", query) for label in known[name]} | _BY_PROMETHEUS
        asked = set(re.findall(r"(\w+)(?:=~|!=|=)", query))
        asked |= {name for names in re.findall(r"by \(([^)]*)\)", query) for name in names.split(", ")}
        assert asked <= labels, query


def test_every_metric_of_the_server_is_on_it() -> None:
    shown = set(re.findall(r"ewe:[a-z0-9_]+", " ".join(QUERIES)))
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exposed() if not name.endswith("_created")}
    assert families == {name.removesuffix("_bucket") for name in shown}


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
