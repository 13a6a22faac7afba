"""A thousand requests that come, are aborted, fail and finish in random order; bad passes; nothing is lost."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from engine_bench import GatedBench, Reader
from engine_parts import Judge, Library, number, sentences
from mock_engine import Bench

from ewe.config import Config
from ewe.engine.scheduling.inflight_batch import InflightBatch
from ewe.types import Verdict
from ewe.types.sampling_params import SamplingParams

WORDS = ["one two", "three", "four five six", "a b c d e", "do re mi fa"]


def config(mode: str = "blocking", ahead: bool = False, **groups: Any) -> Config:
    values: dict[str, Any] = {
        "memory": {"unit_tokens": 12, "retrieval_units": 2, "verification_units": 2, "placement": "in_prompt"},
        "feedback": {"mode": mode, "verify_every": 4, "retrieve_every": 5, "max_attempts": 2},
        "cache": {"block_size": 4},
        "scheduler": {"max_num_seqs": 6, "max_num_batched_tokens": 40, "async_scheduling": ahead},
    }
    return Config.from_mapping({**values, **groups})


def refute_some(sentence: str) -> Verdict:
    return Verdict.REFUTED if number(sentence) % 4 == 0 else Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("mode", "ahead"),
    [
        ("optimistic", True),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in (("blocking", False), ("optimistic", False))),
        ("blocking", True),
    ],
)
def test_a_thousand_requests_in_random_order(mode: str, ahead: bool) -> None:
    """250 per case, in a pool that just holds one of them; aborts and deadlines hit them in any state."""
    choose = random.Random(mode)
    bench = GatedBench(config(mode, ahead=ahead), Library(), Judge(refute_some), sentences, num_blocks=45)
    bench.runner.strength = 6.0
    waiting = list(range(250))
    expected: dict[str, int] = {}
    readers: dict[str, Reader] = {}
    states: set[str] = set()
    while waiting or bench.core.active.sequences:
        if waiting and len(bench.core.active.sequences) < 12 and choose.random() < 0.6:
            name = f"r{waiting.pop()}"
            n = choose.choice([1, 1, 1, 2])
            params = SamplingParams(
                max_tokens=choose.randint(1, 24), n=n, temperature=choose.choice([0.0, 1.0]), seed=7, deadline_s=1000.0
            )
            readers[name] = Reader()
            listener = readers[name] if n == 1 else None
            documents = choose.sample(WORDS, choose.randint(0, 2))
            prefix = choose.choice(["", "", "be short:{memory}", "a long system prompt of many words:{memory}"])
            bench.add(name, prefix + choose.choice(["Tell me", "of a", "who"]), params, documents, listener)
            expected[name] = n
        if bench.core.active.sequences and choose.random() < 0.15:
            victim = choose.choice(bench.core.active.sequences)
            states.add(
                "swapped" if victim.schedule.swapped else "waiting" if not victim.schedule.is_admitted else "running"
            )
            if choose.random() < 0.5:
                bench.core.active.abort(victim.request.id)
            else:
                victim.arrived -= 2000.0
        if choose.random() < 0.01:
            bench.runner.fail_next = RuntimeError("out of order")
        for gate, _position in bench.open_jobs():
            if gate.jobs and choose.random() < 0.5:
                gate.release(choose.randrange(len(gate.jobs)))
        bench.step()
        bench.check()

    assert {name: sum(key[0] == name for key in bench.finished) for name in expected} == expected
    reasons = {generation.finish_reason for generation in bench.finished.values()}
    assert reasons >= {"length", "abort", "timeout", "error"}
    assert states == {"swapped", "waiting", "running"}
    for name, reader in readers.items():
        if expected[name] == 1:
            assert reader.text == bench.finished[name, 0].text
            assert reader.kinds().count("finish") == 1
    assert bench.core.scheduler.swapper.swaps > 0
    cached = bench.engine.memory_manager.cache.num_cached_blocks
    assert bench.engine.block_manager.num_free + cached == bench.engine.block_manager.num_blocks - 1


def test_nan_logits_fail_one_request_alone() -> None:
    expected = _answers(lambda context: False)
    found = _answers(lambda context: context.startswith("bad") and len(context) > 12)
    assert found["bad", 0].finish_reason == "error"
    assert "not finite" in found["bad", 0].error
    assert expected["bad", 0].text.startswith(found["bad", 0].text)
    assert len(found["bad", 0].text) == 10
    for name in ("good", "fine"):
        assert found[name, 0].text == expected[name, 0].text
        assert found[name, 0].finish_reason == "length"


def _answers(nan_if: Any) -> Any:
    bench = Bench(config(), None, None, sentences)
    bench.runner.nan_if = nan_if
    for name in ("good", "bad", "fine"):
        bench.add(name, f"{name}", SamplingParams(max_tokens=30))
    return bench.run()


def test_nan_in_the_prompt_fails_all_answers_to_it() -> None:
    bench = Bench(config(), None, None, sentences)
    bench.runner.nan_if = lambda context: context.startswith("bad")
    bench.add("bad", "bad", SamplingParams(max_tokens=9, n=3))
    results = bench.run()
    assert [generation.finish_reason for generation in results.values()] == ["error"] * 3


@pytest.mark.parametrize("error", [RuntimeError("no memory"), TypeError("odd"), IndexError("far"), AssertionError("!")])
def test_a_failing_pass_fails_its_requests_and_the_engine_goes_on(error: Exception) -> None:
    bench = GatedBench(config(), Library(), Judge(refute_some), sentences)
    bench.add("in the pass", "Tell me", SamplingParams(max_tokens=30), ["one two"])
    for _ in range(3):
        for gate, _position in bench.open_jobs():
            gate.release()
        bench.step()
    bench.add("waiting", "of a", SamplingParams(max_tokens=10))  # for its retrieval: it is in no pass
    bench.runner.fail_next = error
    bench.step()
    bench.check()

    failed = bench.finished["in the pass", 0]
    assert failed.finish_reason == "error"
    assert failed.error == f"the forward pass failed: {type(error).__name__}: {error}"
    results = bench.run_prompt()
    assert results["waiting", 0].finish_reason == "length"


def test_where_there_is_no_memory_to_draw_the_requests_of_the_pass_fail_and_the_engine_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*arguments: object) -> None:
        patch.undo()
        raise torch.OutOfMemoryError("CUDA out of memory.")

    bench = Bench(config(), None, None, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=9, n=2))
    with monkeypatch.context() as patch:
        patch.setattr(InflightBatch, "draw", refuse)
        results = bench.run()
    bench.check()
    errors = [results["a", index].error for index in range(2)]
    assert errors == ["there is no memory to draw: CUDA out of memory."] * 2
    bench.add("b", "Tell me", SamplingParams(max_tokens=9))
    assert bench.run()["b", 0].finish_reason == "length"


def test_a_unit_whose_pass_failed_is_encoded_by_the_next_who_needs_it() -> None:
    bench = Bench(config(), None, None, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=3), ["one two"])
    bench.runner.fail_next = RuntimeError("once")
    assert bench.run()["a", 0].finish_reason == "error"
    bench.add("b", "Tell me", SamplingParams(max_tokens=3), ["one two"])
    assert bench.run()["b", 0].finish_reason == "length"
    units = [row for rows in bench.runner.rows_run for row in rows if row.start_position == 0]
    assert len(units) == 1  # the failed pass is not among the rows: it never ran
