"""The arithmetic of benchmarks.capacity: small loads whose outcome is known."""

from __future__ import annotations

from argparse import Namespace
from itertools import cycle

import numpy as np
import pytest

from benchmarks.capacity import Part, disk_tib, h100, parts_of, price_per_million_tokens, table
from benchmarks.capacity_engines import Asked, Gpu, Trace, by_ring, most_requests, simulate, zipf_ranks

PLAIN = Gpu([0.0, 1.0, 1.0], prompt_s=0.0, unit_s=0.0, room=10)
LOAD = Namespace(rate=100.0, passages=3_000_000, users=1000, memories=1000, answer_tokens=200, searches=2)
LOAD.__dict__ |= {"sentences": 5, "pairs": 2, "full": 0.5, "gpu_hour": 2.0, "core_hour": 0.1}


def test_an_engine_admits_between_steps_and_no_more_than_fit() -> None:
    requests = [Asked(0.0, (1,), 2), Asked(0.5, (1,), 2), Asked(0.6, (1,), 1), Asked(9.0, (1,), 1), Asked(9.5, (1,), 1)]
    outcome = simulate(PLAIN, 1, requests, by_ring(1))
    # The first begins at once; the second at the end of its first step; the third when the first is complete.
    assert outcome.waits == pytest.approx([0.0, 0.5, 1.4, 0.0, 0.0])


def test_who_is_never_admitted_has_waited_until_the_end() -> None:
    outcome = simulate(Gpu([0.0, 1.0], 0.0, 0.0, 10), 1, [Asked(at, (1,), 50) for at in (0.0, 1.0, 4.0)], by_ring(1))
    assert outcome.waits == pytest.approx([0.0, 3.0, 0.0])


def test_units_that_are_not_kept_take_time_and_the_least_recently_used_make_room() -> None:
    gpu = Gpu([0.0, 1.0], prompt_s=0.25, unit_s=2.0, room=2)
    requests = [Asked(10.0 * number, (unit,), 1) for number, unit in enumerate((1, 2, 1, 3, 1, 2))]
    outcome = simulate(gpu, 1, requests, by_ring(1))
    assert (outcome.found, outcome.missed) == (2, 3)  # the last has only just come
    late = simulate(gpu, 1, [Asked(at, (1,), 1) for at in (0.0, 0.1, 20.0)], by_ring(1))
    assert late.waits[:2] == pytest.approx([0.0, 3.15])


class Alike(Trace):
    """Topics in turn, each with one unit of its own; answers of ten tokens at even times."""

    def __init__(self, topics: int) -> None:
        self.mean_tokens, self._number = 10, topics

    def requests(self, per_s: float, seconds: float) -> list[Asked]:
        topics = cycle(range(self._number))
        return [Asked(number / per_s, (next(topics),), 10) for number in range(int(per_s * seconds))]


def test_the_most_that_a_gpu_takes_is_what_its_steps_allow() -> None:
    gpu = Gpu([0.0, *[0.1] * 4], prompt_s=0.0, unit_s=0.0, room=1)
    per_s, outcome = most_requests(gpu, 2, Alike(1), 200.0)
    assert 0.9 * 8 <= per_s <= 8  # eight rows, of which each takes one second per answer
    assert not outcome.is_full


def test_the_ring_finds_units_that_requests_in_turn_do_not() -> None:
    gpu, requests = Gpu([0.0, 0.01, 0.01], 0.0, 0.0, room=12), Alike(16).requests(10.0, 100.0)
    numbers = cycle((0, 0, 1, 1, 0, 1))
    in_turn = simulate(gpu, 2, requests, lambda key, loads: f"gpu{next(numbers)}")
    assert simulate(gpu, 2, requests, by_ring(2)).units_found > 0.9 > in_turn.units_found


@pytest.mark.parametrize("exponent", [0.8, 1.0, 1.2])
def test_popularity_falls_with_the_rank(exponent: float) -> None:
    ranks = zipf_ranks(np.linspace(0, 1, 100_001), 10_000, exponent)
    assert (ranks.min(), ranks.max()) == (0, 9999)
    numbers = np.bincount(ranks, minlength=10_000)
    density = (np.arange(10_000) + 1.5) ** -exponent
    for first, later in ((10, 40), (100, 400)):
        shares = [values[first:later].sum() / values[later : 3 * later].sum() for values in (numbers, density)]
        assert shares[0] == pytest.approx(shares[1], rel=0.05)


def test_a_trace_has_the_rate_the_lengths_and_the_passages_that_are_asked_for() -> None:
    requests = Trace(1_000_000, 3, 1.0, 200).requests(500.0, 20.0)
    assert len(requests) / requests[-1].at == pytest.approx(500, rel=0.05)
    assert sum(asked.tokens for asked in requests) / len(requests) == pytest.approx(200, rel=0.02)
    assert {len(asked.units) for asked in requests} == {3}
    assert max(max(asked.units) for asked in requests) > 900_000


def test_an_h100_has_the_steps_that_were_measured() -> None:
    gpu, loading = h100(loads_units=False), h100(loads_units=True)
    assert gpu.steps[32] == pytest.approx(0.011633)
    assert len(gpu.steps) == 129
    assert gpu.steps == sorted(gpu.steps)
    assert gpu.unit_s == pytest.approx(4 * gpu.prompt_s)  # 256 tokens and 64
    assert loading.unit_s == pytest.approx(256 * (128 << 10) / 25e9)


def test_parts_grow_with_what_is_asked_for() -> None:
    parts = {part.name: part for part in parts_of(LOAD, per_gpu=10.0)}
    assert parts["writing answers"].number(0.5) == 20
    assert parts["searching vectors"].need == 100 * 2 * 3
    assert parts["judging"].need == 100 * 5 * 2
    assert parts["streaming tokens"].need == 20_000
    assert disk_tib(LOAD) == {"vectors_tib": 0.0, "memories_tib": 0.0}
    LOAD.passages = 1_000_000_000
    assert disk_tib(LOAD)["vectors_tib"] == pytest.approx(1.41)


def test_the_price_is_that_of_the_hardware_over_the_tokens() -> None:
    parts = [Part("a", "GPU", 100, 10.0, "simulated"), Part("b", "core", 30, 1.0)]
    # 20 GPUs at 2 and 60 cores at 0.1 an hour, over 72 million tokens.
    assert price_per_million_tokens(parts, LOAD) == pytest.approx(46 / 72)
    assert table(parts, 0.5).splitlines()[2:] == [
        "| a | 100 | 10.0 per GPU | 10 | 20 | simulated |",
        "| b | 30 | 1.0 per core | 30 | 60 | measured |",
    ]
