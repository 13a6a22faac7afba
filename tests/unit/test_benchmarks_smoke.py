"""Every benchmark runs at a tiny size and ends in one JSON document; none is left out of `make bench`."""

import importlib
import json
import sys
from pathlib import Path

import pytest

from benchmarks.common import build_tokenizer, text_of
from benchmarks.run_all import BENCHMARKS, CPU_LIMITS, GPU_LIMITS

FOLDER = Path(__file__).parents[2] / "benchmarks"
# What scripts share; no benchmarks by themselves.
SHARED = {"__init__", "common", "plots", "rig", "run_all", "sessions", "shapes", "session_figures"}
SHARED |= {f"verdicts_{name}" for name in ("changes", "claims", "edits", "sets", "texts", "words")} | {"longterm_pairs"}
SHARED |= {
    "attention_peers",
    "attention_problem",
    "decode_limit",
    "decode_peers",
    "serve_client",
    "serve_guidellm",
    "overhead_client",
    "served_step_server",
    "capacity_engines",
    "replicas_stand_in",
    "ewe_serve",
    "tenants_flood",
}
# Triton's interpreter draws tokens in one, one has a judge, and the others start servers: over 15 s each.
SLOW = {"launches", "replicas", "overload", "tenants", "served_step", "checked_throughput"}
# 1.5 to 4.5 s each, while the 20 others take 11 s together.
SLOW |= {"longterm_scoring", "longterm_conflicts", "longterm_changes", "longterm_locomo", "feedback", "verdicts"}
SLOW |= {"verification_overhead", "long_answers", "retrieval_speed", "retrieval_recall", "small_weights", "attention"}
SLOW |= {"policy_throughput", "judge_speed", "capacity"}
PNG = b"\x89PNG"


@pytest.mark.parametrize(
    ("name", "device"),
    [pytest.param(name, "cpu", marks=[pytest.mark.slow] * (name in SLOW)) for name in BENCHMARKS]
    + [pytest.param(name, "cuda", marks=pytest.mark.gpu) for name in GPU_LIMITS],
)
def test_benchmark_ends_in_one_json_document(
    name: str, device: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if name == "stores":
        pytest.importorskip("pymilvus", reason="Milvus Lite needs the extra 'milvus'")
    benchmark, picture = importlib.import_module(f"benchmarks.{name}"), tmp_path / "new folder" / "picture.png"
    draws = hasattr(benchmark, "panels")
    plot = ["--plot", str(picture)] if draws else []
    if draws and name not in SLOW:  # what matplotlib makes of it takes longer than most benchmarks
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **options: path.write_bytes(PNG))
    monkeypatch.setattr(sys, "argv", [name, "--smoke", "--device", device, *plot])
    benchmark.main()
    document = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert document["benchmark"] == name
    assert document["smoke"] is True
    assert {"device", "versions", "commit", "settings"} <= document.keys()
    assert all(isinstance(value, (int, float)) for value in document["figures"].values())
    assert document["figures"]
    if draws:
        assert picture.read_bytes().startswith(PNG)


def test_bench_runs_every_script() -> None:
    assert set(BENCHMARKS) == {path.stem for path in FOLDER.glob("*.py")} - SHARED
    for limits in (CPU_LIMITS, GPU_LIMITS):
        assert set(limits) <= set(BENCHMARKS)
        assert sum(limits.values()) <= 600


def test_documents_have_the_length_that_is_asked_for() -> None:
    tokenizer = build_tokenizer(1024)
    for length in (1, 2, 3, 64):
        assert len(tokenizer.encode(text_of(length, seed=length))) == length


def test_sampled_words_fall_into_sentences() -> None:
    tokenizer = build_tokenizer(1024)
    text = tokenizer.decode(range(260, 320))
    assert 2 <= text.count(". Word") <= 6


def test_the_same_unit_leaves_nothing_stale(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "--smoke", "--device", "cpu"])
    importlib.import_module("benchmarks.kept_context_staleness").main()
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])["figures"]
    assert figures["kl_nats_replaced_0"] == pytest.approx(0.0, abs=1e-5)
    assert figures["kl_nats_replaced_2"] > figures["kl_nats_replaced_0"]
