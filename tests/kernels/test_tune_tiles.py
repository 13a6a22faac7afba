"""The sweep over tiles: what it measures under which tile, and what it says."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import pytest
import torch
from ewe_kernels import prefill, tiles
from ewe_kernels.tiles import Tile
from stand_in_gpu import in_place
from triton_interpreter import INTERPRETED

from benchmarks.attention import Clock
from benchmarks.attention_problem import Shape
from ewe.engine.attention import triton_backend

SCRIPT = Path(__file__).parents[2] / "scripts" / "tune_tiles.py"


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("tune_tiles", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "tune_tiles", module)
        spec.loader.exec_module(module)
        yield module


def test_the_best_is_shown_beside_todays_and_what_does_not_fit_is_passed_over(script, capsys):
    shares = {16: 0.5, 32: 0.75, 64: None}
    seen = []

    def problem():
        keys = tiles.narrow_tile(4, 128, torch.bfloat16).keys
        seen.append(keys)
        if shares[keys] is None:
            raise RuntimeError("out of resource: shared memory\nand more")
        return shares[keys]

    today = Tile(16, 16, 4, 3)
    others = [Tile(16, keys, 4, 3) for keys in (16, 32, 64)]
    kernel = script.Kernel(tiles, "narrow_tile", today, others, [problem, problem])
    assert script.tune("decode", kernel) == others[1]
    assert seen == [16, 16, 32, 32, 64], "today's tile counts once"
    said = capsys.readouterr().out
    assert "RuntimeError: out of resource: shared memory\n" in said
    assert "rows  16 keys  32 warps 4 stages 3  0.750, 1.50 of today's" in said


@pytest.mark.skipif(not INTERPRETED, reason="there is a real GPU")
def test_kernels_are_timed_under_the_tile_that_is_tried(script, monkeypatch):
    # One call is enough to see its tile, and the interpreter takes its time.
    monkeypatch.setattr("benchmarks.attention._CALLS", 1)
    monkeypatch.setattr("benchmarks.attention_problem._MOST_LAYERS", 1)
    tried = []
    attend = triton_backend.attend_pieces
    monkeypatch.setattr(triton_backend, "attend_pieces", lambda *items: (tried.append(items[11]), attend(*items))[1])
    with in_place():
        clock = Clock(
            Shape(2, 1, 16, torch.float32, torch.device("cuda")),
            argparse.Namespace(device="cuda", repeats=1, smoke=True),
        )
        clock.copy_rate = clock.product_rate = 1e9
        tile = Tile(16, 16, 4, 2)
        point = (2, 2, 16, 16)
        for shared, name in ((False, "narrow_tile"), (True, "wide_tile")):
            tried.clear()
            problem = script.decoding(clock, point, shared)
            assert script.Kernel(triton_backend, name, tile, [], [problem]).share(tile) > 0
            assert tile in tried
        prefilling = script.prefilling(clock, 2, 16, 1, 16)
        assert script.Kernel(prefill, "prefill_tile", tile, [], [prefilling]).share(tile) > 0
        assert set(script.kernels_of(clock)) == {"decode", "shared", "prefill"}
