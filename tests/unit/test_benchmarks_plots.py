"""Benchmarks draw what they found, when they end and later; what cannot be drawn is told before the run."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import plots
from benchmarks.run_all import GPU_LIMITS

POINT = "b32_k8_m256_l1024"
# What a run on a GPU finds, some of it.
FIGURES: dict[str, dict[str, float]] = {
    "attention": {
        f"decode_of_copy_rate_{POINT}": 0.8,
        f"flashinfer_over_engine_{POINT}": 1.1,
        f"flashinfer_cascade_over_engine_{POINT}_shared": 1.2,
        f"unshared_over_shared_{POINT}": 4.0,
        "prefill_of_product_rate_1x1024_k8_m256": 0.5,
    },
    "decode_throughput": {
        **{f"batch_{batch}_engine_of_limit": 0.7 for batch in (1, 64, 256)},
        **{f"batch_{batch}_engine_tokens_per_s": 100.0 * batch for batch in (1, 64, 256)},
        "batch_32_own_documents_engine_of_limit": 0.5,
        "batch_64_vllm_tokens_per_s": 3000.0,
    },
    "refresh_cost": {"refresh_one_unit_s": 0.01, "rebuild_prompt_s": 0.2},
    "precomputed_units": {"unit_mib": 32.0, "encode_ms": 9.0, "load_from_host_memory_ms": 1.0},
    "feedback": {f"optimistic_latency_50_ms_refuted_{share}_percent_over_plain": 0.9 for share in (0, 5, 50)},
    "small_weights": {"weights_int8_mib": 8660.0, "batch_1_int8_step_ms": 5.0, "kl_nats_int8": 0.001},
    "serve": {f"rate_{rate}_{name}": 8.0 for rate in (2, 8) for name in ("requests", "goodput_per_s")},
}
SETTINGS = {
    "model": "made up",
    **{"units": 8, "unit_tokens": 256, "prompt_tokens": 64, "text_tokens": 256},
    **{"first_token_limit_s": 0.5, "next_token_limit_s": 0.05, "seconds_per_rate": 10.0},
}


def document(name: str) -> dict[str, Any]:
    found = {"benchmark": name, "smoke": False, "device": "some GPU", "commit": "abc", "settings": SETTINGS}
    return found | {"figures": FIGURES[name]}


def drawn(name: str) -> list[plots.Panel]:
    panels = importlib.import_module(f"benchmarks.{name}").panels(document(name))
    return [panel for panel in panels if any(panel.series.values())]


def test_every_benchmark_for_gpus_draws() -> None:
    assert set(FIGURES) == set(GPU_LIMITS) - {"launches", "checked_throughput"}  # a table of them says it all


# What matplotlib makes of it takes longest here; what the others hand to it is looked at below.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "attention" else pytest.mark.slow) for name in FIGURES]
)
def test_a_kept_document_becomes_a_picture(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, picture = tmp_path / "kept.json", tmp_path / "pictures" / "one.png"
    kept.write_text(json.dumps(document(name)))
    monkeypatch.setattr(sys, "argv", ["plots", str(kept), "--plot", str(picture)])
    plots.main()
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", FIGURES)
def test_panels_say_what_they_show_and_in_what(name: str) -> None:
    panels = drawn(name)
    assert panels
    for panel in panels:
        assert panel.title
        assert panel.values
        numbered = [place for points in panel.series.values() for place in points if not isinstance(place, str)]
        assert panel.places or not numbered


def test_figures_find_their_place() -> None:
    near, others, shared, _ = drawn("attention")
    assert near.series == {"engine": {"batch 32, 8 units of 256,\ncontext 1024": 0.8}}
    assert others.series["FlashInfer"] == {"batch 32, 8 units of 256,\ncontext 1024": 1.1}
    assert others.series["FlashInfer's cascade"] == {"batch 32, 8 shared units of 256,\ncontext 1024": 1.2}
    assert list(shared.series["engine"].values()) == [4.0]
    limit, rates = drawn("decode_throughput")
    assert limit.series["whole engine"] == {1.0: 0.7, 64.0: 0.7, 256.0: 0.7}
    assert rates.series["vLLM"] == {64.0: 3000.0}
    [optimistic] = drawn("feedback")
    assert optimistic.series == {"50 ms per check": {0.0: 0.9, 5.0: 0.9, 50.0: 0.9}}
    [load] = drawn("serve")
    assert load.series["have arrived"] == {2.0: 0.8, 8.0: 0.8}


def test_places_that_are_not_measured_leave_no_gap(tmp_path: Path) -> None:
    series = {"one": {"a": 1.0, "b": 2.0}, "other": {"b": 3.0}, "third": {}}
    panel = plots.Panel("title", "", "seconds", series, limit=(2.5, "limit"), log_values=True)
    plots.draw(tmp_path / "bars.svg", lambda _: [panel], document("serve"))
    assert "<svg" in (tmp_path / "bars.svg").read_text()


def test_without_figures_there_is_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plots.draw(tmp_path / "none.png", lambda _: [plots.Panel("title", "", "seconds", {"": {}})], document("serve"))
    assert not (tmp_path / "none.png").exists()
    assert "nothing to draw" in capsys.readouterr().out


def test_what_cannot_be_written_is_refused_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plots.plot_file("x/y.PNG") == Path("x/y.PNG")
    with pytest.raises(argparse.ArgumentTypeError, match=r"must end in \.png"):
        plots.plot_file("figure.jpeg")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(argparse.ArgumentTypeError, match="pip install 'ewe-engine\\[plots\\]'"):
        plots.plot_file("figure.png")
