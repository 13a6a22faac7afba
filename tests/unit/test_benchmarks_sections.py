"""One part of a benchmark, or one benchmark, that fails or hangs costs nothing but its own figures."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.common import Sections, require
from benchmarks.run_all import run
from benchmarks.serve import Limits, summary
from benchmarks.serve_client import Load, arrivals


def read(path: Path) -> dict:
    return json.loads(path.read_text())


def test_a_part_that_fails_leaves_its_reason_and_the_others_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results" / "x.json"
    sections = Sections("x", Namespace(device="cpu", smoke=True, repeats=1, out=out), {"size": 3})
    sections.take("first", lambda: {"a": 1.0})
    assert read(out)["figures"] == {"a": 1.0}
    assert read(out)["unfinished"] is True
    sections.take("missing", lambda: require("no_such_package_anywhere"))
    sections.take("broken", lambda: {"b": 1 / 0})
    sections.take("last", lambda: {"c": 2.0})
    sections.close()
    document = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert document == read(out)
    assert document["figures"] == {"a": 1.0, "c": 2.0}
    assert "unfinished" not in document
    assert document["left_out"] == {
        "missing": "ImportError: no_such_package_anywhere is not installed",
        "broken": "ZeroDivisionError: division by zero",
    }


def test_a_benchmark_that_fails_or_takes_too_long_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    assert not run("no_such_benchmark", [], "cpu", keep=False, limit=None)
    assert not run("attention", ["--smoke"], "cpu", keep=False, limit=0)
    assert "ended after 0 s" in capfd.readouterr().out


def test_arrivals_come_at_the_rate_that_is_asked_for() -> None:
    times = arrivals(Load(rate=50, seconds=40, prompt=1, answer=1, vocab=9, seed=1))
    assert times == sorted(times)
    assert times[0] > 0
    assert times[-1] < 40
    assert len(times) == pytest.approx(2000, rel=0.1)


def test_goodput_counts_what_keeps_to_both_limits() -> None:
    load = Load(rate=2, seconds=2, prompt=1, answer=3, vocab=9)
    answers = [[0.1, 0.2, 0.3], [0.9, 1.0, 1.1], [0.1, 1.0, 2.0], []]
    figures = summary(load, answers, Limits(first=0.5, next=0.2))
    assert figures["rate_2_goodput_per_s"] == 0.5
    assert figures["rate_2_failed"] == 1
    assert figures["rate_2_first_token_ms_p50"] == pytest.approx(100)
    assert figures["rate_2_next_token_ms_p50"] == pytest.approx(100)
