"""Which way few rows are multiplied: by the times of this machine, none of which the tests depend on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import ewe.engine.models.cpu_timing as cpu_timing
from ewe.engine.models.cpu_timing import Multiply, fastest_ways, time_ways

WEIGHTS = [torch.zeros(64, 32), torch.zeros(64, 32), torch.zeros(16, 48)]
COUNTS = (1, 2, 4)


class Clock:
    """Time that passes only while something is multiplied."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls = 0

    def __call__(self) -> float:
        return self.now

    def way(self, seconds: Callable[[int, int], float]) -> Multiply:
        """A way that takes seconds(rows, inputs)."""

        def multiply(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
            self.calls += 1
            self.now += seconds(*x.shape)
            return x

        return multiply


def timed(clock: Clock, **seconds: Callable[[int, int], float]) -> tuple[str, ...] | None:
    return time_ways(WEIGHTS, {name: clock.way(one) for name, one in seconds.items()}, COUNTS, clock)


def test_each_number_of_rows_takes_its_fastest_way() -> None:
    found = timed(Clock(), torch=lambda rows, _: 1e-4 * rows, other=lambda rows, _: 2e-4)
    assert found == ("torch", "torch", "other")


def test_a_way_that_is_hardly_faster_is_not_taken() -> None:
    assert timed(Clock(), torch=lambda *_: 1.00e-4, other=lambda *_: 0.95e-4) == ("torch",) * 3
    assert timed(Clock(), torch=lambda *_: 1.00e-4, other=lambda *_: 0.85e-4) == ("other",) * 3


def test_what_counts_is_the_time_of_all_weights_together() -> None:
    def slow_at_the_small_one(_: int, num_in: int) -> float:
        return 3e-4 if num_in == 48 else 0.5e-4

    # Two weights that gain .5 against one that loses 2.
    assert timed(Clock(), torch=lambda *_: 1e-4, other=slow_at_the_small_one) == ("torch",) * 3
    two_to_one = timed(Clock(), torch=lambda *_: 1e-4, other=lambda _, n: 1.2e-4 if n == 48 else 0.5e-4)
    assert two_to_one == ("other",) * 3


def test_the_first_round_only_warms_up() -> None:
    clock = Clock()
    assert timed(clock, torch=lambda *_: 1e-4, other=lambda *_: 1e-6 if clock.calls <= 12 else 2e-4) == ("torch",) * 3


def test_nothing_is_concluded_from_times_that_do_not_agree() -> None:
    clock = Clock()

    def slower_every_round(factor: float) -> Callable[[int, int], float]:
        return lambda *_: 1e-4 * factor ** (clock.calls // (2 * len(COUNTS) * 2))

    assert timed(clock, torch=slower_every_round(1.3), other=slower_every_round(1.3)) is None
    clock.now, clock.calls = 0.0, 0
    assert timed(clock, torch=slower_every_round(1.1), other=slower_every_round(1.1)) == ("torch",) * 3


def test_a_machine_that_takes_too_long_is_left_at_once() -> None:
    clock = Clock()
    assert timed(clock, torch=lambda *_: 0.4, other=lambda *_: 0.4) is None
    assert clock.calls == 3


def test_large_weights_are_timed_in_parts_of_one_size() -> None:
    seen: set[torch.Size] = set()

    def note(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        seen.add(weight.shape)
        return x

    time_ways([torch.zeros(20000, 512)], {"torch": note}, (1,))
    assert seen == {torch.Size([4096, 512])}


@pytest.fixture
def found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Timings are counted and give "other", and what is kept lies under tmp_path."""
    timings: list[str] = []

    def time_once(*_: object) -> tuple[str, ...] | None:
        timings.append("timed")
        return ("other",) * 3

    monkeypatch.setenv("EWE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cpu_timing, "time_ways", time_once)
    return timings


WAYS: dict[str, Multiply] = {"torch": torch.nn.functional.linear, "other": torch.nn.functional.linear}


def test_what_was_found_is_kept_for_weights_of_these_shapes_and_this_number_of_threads(
    found_once: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        assert fastest_ways(WEIGHTS, WAYS, COUNTS) == ("other",) * 3
    assert len(found_once) == 1
    fastest_ways(WEIGHTS[:2], WAYS, COUNTS)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1000)
    fastest_ways(WEIGHTS, WAYS, COUNTS)
    assert len(found_once) == 3
    fastest_ways(WEIGHTS, WAYS, COUNTS)
    assert len(found_once) == 3


@pytest.mark.parametrize("content", ["", "[]", "{", '{"KEY": ["other"]}', '{"KEY": ["other", "torch", "gone"]}'])
def test_a_file_that_says_nothing_usable_is_written_anew(found_once: list[str], tmp_path: Path, content: str) -> None:
    fastest_ways(WEIGHTS, WAYS, COUNTS)
    file = tmp_path / "cache" / "cpu_linear.json"
    [key] = json.loads(file.read_text())
    file.write_text(content.replace("KEY", key))
    assert fastest_ways(WEIGHTS, WAYS, COUNTS) == ("other",) * 3
    assert len(found_once) == 2
    assert json.loads(file.read_text())[key] == ["other"] * 3


def test_a_folder_that_cannot_be_written_costs_only_the_time(
    found_once: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EWE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    for _ in range(2):
        assert fastest_ways(WEIGHTS, WAYS, COUNTS) == ("other",) * 3
    assert len(found_once) == 2


def test_on_a_busy_machine_torchs_way_is_taken_and_nothing_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EWE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cpu_timing, "time_ways", lambda *_: None)
    assert fastest_ways(WEIGHTS, WAYS, COUNTS) == ("torch",) * 3
    assert list(tmp_path.iterdir()) == []
