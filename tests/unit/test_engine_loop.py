"""The engine's thread: requests are handed over, its end is told to whoever waits, nothing is lost on the way."""

from __future__ import annotations

import queue
import sys
import threading
from typing import Any

import pytest
import torch
from engine_bench import GatedBench
from engine_parts import Judge, sentences
from mock_engine import Bench

from ewe.config import Config
from ewe.engine import engine_loop
from ewe.engine.engine_loop import EngineLoop, RareCollections
from ewe.engine.request import Request
from ewe.errors import EngineDeadError
from ewe.types import Verdict
from ewe.types.sampling_params import SamplingParams

LONG = 60.0


class LoopBench(Bench):
    """A bench that is stepped by a loop; finished requests and the loop's end come out of `news`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.news: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.loop = EngineLoop(self.core, self.engine.changed, self.news.put)

    def _on_finish(self, sequence: Any, generation: Any) -> None:
        self.news.put((sequence.request.id, generation))

    def submit(self, name: str, params: SamplingParams) -> None:
        sequence = self.engine.input_processor.build(name, Request("Tell me", params))
        self.loop.do(lambda core: core.active.add(sequence))

    def next(self) -> Any:
        return self.news.get(timeout=LONG)


CONFIG = Config.from_mapping({"memory": {"unit_tokens": 24}, "feedback": {"verify_every": 2}})


def test_requests_are_served_and_the_thread_ends_at_close() -> None:
    bench = LoopBench(CONFIG, None, None, sentences)
    assert bench.loop.is_alive
    for name in "abc":
        bench.submit(name, SamplingParams(max_tokens=5, ignore_eos=True))
    assert {bench.next()[0] for _ in range(3)} == set("abc")
    bench.submit("d", SamplingParams(max_tokens=5, ignore_eos=True))
    assert bench.next()[1].finish_reason == "length"
    bench.loop.close()
    bench.loop.close()  # once more does nothing
    assert not bench.loop.is_alive
    assert not bench.loop._thread.is_alive()
    assert str(bench.next()) == "the engine was closed"
    with pytest.raises(EngineDeadError, match="was closed"):
        bench.submit("e", SamplingParams())


def test_whoever_waits_is_told_of_any_end_of_the_loop() -> None:
    bench = LoopBench(CONFIG, None, None, sentences)
    bench.loop.do(lambda core: sys.exit(3))
    assert str(bench.next()) == "the engine loop stopped: SystemExit: 3"
    assert not bench.loop.is_alive


def test_close_aborts_what_is_under_way() -> None:
    gate, entered = threading.Event(), threading.Event()

    class Slow(Judge):
        def verify(self, requests: Any) -> Any:
            entered.set()
            assert gate.wait(LONG)
            return super().verify(requests)

    bench = LoopBench(CONFIG, None, Slow(lambda _: Verdict.SUPPORTED), sentences)
    bench.submit("a", SamplingParams(max_tokens=500, ignore_eos=True))
    assert entered.wait(LONG)
    bench.loop.close()
    assert bench.next()[1].finish_reason == "abort"
    assert isinstance(bench.next(), EngineDeadError)
    bench.check()
    gate.set()
    bench.core.close()


@pytest.mark.parametrize("closes", [False, True])
def test_what_was_under_way_at_a_death_is_told_of_it_and_not_aborted(closes: bool) -> None:
    gate, entered = threading.Event(), threading.Event()

    class Slow(Judge):
        def verify(self, requests: Any) -> Any:
            entered.set()
            assert gate.wait(LONG)
            return super().verify(requests)

    bench = LoopBench(CONFIG, None, Slow(lambda _: Verdict.SUPPORTED), sentences)
    bench.submit("a", SamplingParams(max_tokens=500, ignore_eos=True))
    assert entered.wait(LONG)
    bench.loop.fail(EngineDeadError("the process of rank 1 was killed"))
    if closes:
        bench.loop.close()
    assert str(bench.next()) == "the process of rank 1 was killed"
    bench.loop.close()
    assert bench.news.empty()
    gate.set()
    bench.core.close()


def test_an_error_in_the_loop_ends_it_and_is_told_with_its_cause() -> None:
    bench = LoopBench(CONFIG, None, None, sentences)

    def break_it(core: Any) -> None:
        raise KeyError("lost")

    bench.loop.do(break_it)
    error = bench.next()
    assert isinstance(error, EngineDeadError)
    assert isinstance(error.__cause__, KeyError)
    assert "KeyError: 'lost'" in str(error)
    assert not bench.loop.is_alive
    with pytest.raises(EngineDeadError, match="KeyError"):
        bench.submit("a", SamplingParams())
    bench.loop.close()


def test_a_pass_that_fails_on_a_gpu_that_takes_no_more_work_ends_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(device: torch.device) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "synchronize", fault)
    bench = LoopBench(CONFIG, None, None, sentences)
    bench.core.scheduler.pool.device = torch.device("cuda", 0)
    bench.runner.fail_next = RuntimeError("CUDA error: an illegal memory access was encountered")
    bench.submit("a", SamplingParams(max_tokens=5, ignore_eos=True))
    error = bench.next()
    assert isinstance(error, EngineDeadError)
    assert "illegal memory access" in str(error)
    assert not bench.loop.is_alive
    bench.loop.close()


def test_an_abort_reaches_a_loop_that_waits_for_an_answer() -> None:
    gate, called = threading.Event(), threading.Event()

    class Slow(Judge):
        def verify(self, requests: Any) -> Any:
            called.set()
            assert gate.wait(LONG)
            return super().verify(requests)

    bench = LoopBench(CONFIG, None, Slow(lambda _: Verdict.SUPPORTED), sentences)
    bench.submit("held", SamplingParams(max_tokens=500, ignore_eos=True))
    assert called.wait(LONG)
    bench.loop.do(lambda core: core.active.abort("held"))
    assert bench.next()[1].finish_reason == "abort"
    bench.submit("next", SamplingParams(max_tokens=5, ignore_eos=True))
    gate.set()
    assert bench.next()[0] == "next"
    bench.loop.close()
    bench.core.close()


def test_what_comes_in_between_two_steps_ends_the_next_wait() -> None:
    bench = GatedBench(CONFIG, None, Judge(lambda _: Verdict.SUPPORTED), sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=500, ignore_eos=True))
    while not bench.open_jobs():
        bench.step()
    waits: list[bool] = []

    class Spy(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(self.is_set())
            return True

    bench.core.changed = Spy()
    bench.core.changed.set()
    bench.core.step()
    assert waits == [True]
    assert not bench.core.changed.is_set()
    bench.core.step()
    assert waits == [True, False]


def test_the_collector_is_as_it_was_when_the_last_loop_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    thresholds = [(700, 10, 10)]
    monkeypatch.setattr(engine_loop.gc, "get_threshold", lambda: thresholds[-1])
    monkeypatch.setattr(engine_loop.gc, "set_threshold", lambda *values: thresholds.append(values))
    calls: list[str] = []
    monkeypatch.setattr(engine_loop.gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(engine_loop.gc, "unfreeze", lambda: calls.append("unfreeze"))
    collections = RareCollections()
    one, other = collections.while_running(), collections.while_running()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)  # the first to begin is the first to end
    assert thresholds == [(700, 10, 10), (10_000, 10, 10)]
    other.__exit__(None, None, None)
    assert thresholds[-1] == (700, 10, 10)
    assert calls == ["freeze", "unfreeze"]
