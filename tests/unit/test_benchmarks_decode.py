"""What the decoding benchmarks leave out: runs that met new graphs, peers that do not end, keys read for others."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch

from benchmarks import decode_peers
from benchmarks.attention_problem import Problem, Shape
from benchmarks.common import SMOKE, Size
from benchmarks.decode_limit import Load, settled


def test_a_run_that_captured_a_graph_does_not_count() -> None:
    graphs = iter([3, 4, 4, 4])
    times = iter([9.0, 1.0])
    assert settled(lambda: next(times), lambda: next(graphs)) == 1.0


def test_runs_that_always_capture_are_no_figure() -> None:
    graphs = iter(range(100))
    with pytest.raises(RuntimeError, match="captured in each of 6 timed runs"):
        settled(lambda: 1.0, lambda: next(graphs))


def test_peers_are_for_gpus() -> None:
    with pytest.raises(RuntimeError, match="on GPUs only"):
        decode_peers.measure_peer("vllm", SMOKE, [Load(1, 8, 4)], "cpu")


def test_a_peer_is_ended_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    # Any package that is there will do: it is ended before it is asked for.
    monkeypatch.setitem(decode_peers.LIMITS, "json", 0)
    with pytest.raises(RuntimeError, match="not done after 0 s"):
        decode_peers.measure_peer("json", SMOKE, [Load(1, 8, 4)], "cuda")


def test_a_job_names_all_of_size_and_load() -> None:
    assert Size(**asdict(SMOKE)) == SMOKE
    assert Load(**asdict(Load(2, 8, 4, own_documents=True))) == Load(2, 8, 4, own_documents=True)


@pytest.mark.parametrize(("shared", "keys"), [(False, 2 * (3 * 32 + 16)), (True, 3 * 32 + 2 * 16)])
def test_shared_keys_are_read_once(shared: bool, keys: int) -> None:
    shape = Shape(2, 1, 8, torch.float32, torch.device("cpu"))
    problem = Problem(shape, 2, 3, 32, 16, shared=shared)
    assert problem.distinct_bytes == keys * 2 * 8 * 4
