"""One part of a benchmark, or one benchmark, that fails or hangs costs nothing but its own figures."""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.common import Sections, require
from benchmarks.run_all import run
from benchmarks.serve import Limits, summary
from benchmarks.serve_client import Load, arrivals
from benchmarks.serve_guidellm import guidellm_figures, run_guidellm


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


# Stands in for guidellm: notes how it is called, and writes the report that one run of the real one would.
GUIDELLM = """#!{python}
import json, sys
options = sys.argv[1:]
report = dict(item.split("=", 1) for item in options[options.index("--output") + 1].split(","))["path"]
json.dump(options, open(report.replace("report.json", "../options.json"), "w"))
requests = [dict(time_to_first_token_ms=first, inter_token_latency_ms=gap) for first, gap in {found}]
json.dump(dict(benchmarks=[dict(requests=dict(successful=requests, errored=[1]))]), open(report, "w"))
sys.exit({status})
"""


class NoTokenizer:
    """Is saved as an empty folder."""

    def save_pretrained(self, folder: Path) -> None:
        folder.mkdir()


def as_guidellm(folder: Path, monkeypatch: pytest.MonkeyPatch, found: list[tuple[float, float]], status: int) -> None:
    program = folder / "guidellm"
    program.write_text(GUIDELLM.format(python=sys.executable, found=found, status=status))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


def test_guidellm_is_asked_for_the_load_and_its_report_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Load(rate=4, seconds=2, prompt=16, answer=8, vocab=9)
    as_guidellm(tmp_path, monkeypatch, [(100.0, 10.0), (700.0, 10.0), (100.0, 90.0)], 0)
    requests = run_guidellm(1234, load, NoTokenizer())
    assert requests == [(0.1, 0.01), (0.7, 0.01), (0.1, 0.09)]
    options = " ".join(json.loads((tmp_path / "options.json").read_text()))
    for part in ("127.0.0.1:1234", "kind=poisson,rate=4", "prompt_tokens=16,output_tokens=8", "seconds=2"):
        assert part in options
    figures = guidellm_figures(load, requests, first=0.5, following=0.05)
    assert figures["rate_4_guidellm_goodput_per_s"] == 0.5
    assert figures["rate_4_guidellm_first_token_ms_p50"] == pytest.approx(100)


def test_a_client_that_is_missing_or_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Load(rate=4, seconds=2, prompt=16, answer=8, vocab=9)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="not installed"):
        run_guidellm(1, load, NoTokenizer())
    as_guidellm(tmp_path, monkeypatch, [], 0)
    with pytest.raises(RuntimeError, match="none of guidellm's 1 requests"):
        run_guidellm(1, load, NoTokenizer())
    as_guidellm(tmp_path, monkeypatch, [], 3)
    with pytest.raises(RuntimeError, match="guidellm failed: no reason"):
        run_guidellm(1, load, NoTokenizer())
