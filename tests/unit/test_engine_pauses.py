"""Pauses: who waits and who does not, deadlines, and aborts in every state."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from engine_bench import GatedBench, Reader
from engine_parts import Judge, Library, sentences

from ewe.config import Config
from ewe.engine.sequence import Sequence
from ewe.types import Verdict
from ewe.types.sampling_params import SamplingParams


def config(mode: str = "blocking", **feedback: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2}
    values = {"mode": mode, "verify_every": 2, **feedback}
    return Config.from_mapping({"memory": memory, "feedback": values, "cache": {"block_size": 4}})


def steps(bench: GatedBench, count: int) -> None:
    for _ in range(count):
        bench.step()
        bench.check()


def judge() -> Judge:
    return Judge(lambda _: Verdict.SUPPORTED)


def test_a_sequence_that_waits_for_its_verdict_holds_up_nobody() -> None:
    bench = GatedBench(config(), None, judge(), sentences)
    held = bench.add("held", "Tell me", SamplingParams(max_tokens=60))
    steps(bench, 40)
    [held_job] = bench.verification.jobs
    length = len(held.output_text)

    bench.add("free", "of a", SamplingParams(max_tokens=60))
    while ("free", 0) not in bench.finished:
        if len(bench.verification.jobs) > 1:
            bench.verification.release(1)
        steps(bench, 1)

    assert bench.verification.jobs == [held_job]
    assert len(held.output_text) == length  # blocking: it has not moved
    assert bench.finished["free", 0].finish_reason == "length"
    assert len(bench.run_prompt()) == 2


def test_a_sequence_that_waits_for_passages_holds_up_nobody() -> None:
    bench = GatedBench(config(), Library(), None, sentences)
    held = bench.add("held", "Tell me", SamplingParams(max_tokens=30))
    bench.add("free", "of a", SamplingParams(max_tokens=30))
    while ("free", 0) not in bench.finished:
        if len(bench.retrieval.jobs) > 1:
            bench.retrieval.release(1)
        steps(bench, 1)
    assert len(held.output_text) == 0
    assert held.table.length == 0  # not even its prompt has been computed: it waits for its memory
    assert len(bench.run_prompt()["held", 0].token_ids) == 30


def test_many_requests_do_not_ask_the_retriever_all_at_once() -> None:
    bench = GatedBench(config(), Library(), None, sentences)
    for index in range(50):
        bench.add(f"r{index}", "Tell me", SamplingParams(max_tokens=2))
    bench.step()
    assert len(bench.retrieval.jobs) == 16  # scheduler.max_num_seqs
    for _ in range(10):
        bench.retrieval.release()
    bench.step()
    bench.step()  # those ten have been admitted now
    assert 6 < len(bench.retrieval.jobs) <= 16
    assert len(bench.run_prompt()) == 50


def test_the_next_request_starts_as_soon_as_there_is_room() -> None:
    """Not after a wait: nothing would end it."""
    settings = Config.from_mapping({"scheduler": {"max_num_seqs": 1}})
    bench = GatedBench(settings, None, None, sentences)
    for name in "abc":
        bench.add(name, "Tell me", SamplingParams(max_tokens=3, ignore_eos=True))
    bench.core.changed = NoWait()
    while bench.core.step():
        pass
    assert list(bench.finished) == [("a", 0), ("b", 0), ("c", 0)]


class NoWait(threading.Event):
    def wait(self, timeout: float | None = None) -> bool:
        raise AssertionError("the loop waits although there is work")


def test_waits_are_counted_and_traced() -> None:
    bench = GatedBench(config(retrieve_every=2), Library(), judge(), sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=40))
    generation = bench.run_late([0, 0, 1] * 100)["a", 0]
    kinds = [event.kind for event in generation.trace]
    assert kinds.count("resume") in (kinds.count("pause"), kinds.count("pause") - 1)  # the last may end the text
    assert generation.stats.retrievals == kinds.count("retrieval")
    assert generation.stats.verifications <= kinds.count("verification")
    assert generation.stats.retrieval_wait_s > 0
    assert generation.stats.verification_wait_s > 0
    times = [event.time_s for event in generation.trace]
    assert times == sorted(times)


STATES = {
    "waiting for passages": lambda s: s.policy.retrieval is not None,
    "encoding": lambda s: any(p.encoded is not None and not p.encoded.ready for p in s.schedule.pending_units),
    "units queued": lambda s: bool(s.schedule.pending_units),
    "decoding": lambda s: len(s.output_text) > 2 and not s.policy.checks and s.policy.retrieval is None,
    "waiting for a verdict": lambda s: bool(s.policy.checks),
    "finishing": lambda s: s.finish is not None and bool(s.policy.checks),
}


@pytest.mark.parametrize("ending", ["abort", "deadline"])
@pytest.mark.parametrize("mode", ["blocking", "optimistic"])
@pytest.mark.parametrize("state", STATES)
def test_a_request_can_end_in_any_state(state: str, mode: str, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = GatedBench(config(mode), Library(), judge(), sentences)
    bench.core.workers = ()
    reader = Reader()
    params = SamplingParams(max_tokens=25, deadline_s=1000.0)
    sequence = bench.add("a", "Tell me", params, ["one document"], listener=reader)
    bench.add("b", "of a", SamplingParams(max_tokens=12))
    _drive(bench, sequence, state)

    if ending == "abort":
        bench.core.active.abort("a")
    else:
        sequence.arrived -= 2000.0
        bench.step()
    bench.check()

    generation = bench.finished["a", 0]
    assert generation.finish_reason == {"abort": "abort", "deadline": "timeout"}[ending]
    assert reader.text == generation.text
    assert reader.kinds().count("finish") == 1
    unjudged = [s for s in generation.sentences if s.verdict is Verdict.NOT_CHECKED]
    assert all(s.reason in ("the request was aborted", "the deadline passed") for s in unjudged)
    results = bench.run_prompt()  # answers that come later do no harm
    assert results["b", 0].finish_reason == "length"
    assert results["a", 0] is generation


def _drive(bench: GatedBench, sequence: Sequence, state: str) -> None:
    """Steps on until the sequence is in that state; answers are held back where the state is a wait."""
    for _ in range(500):
        if STATES[state](sequence):
            return
        for gate, _position in bench.open_jobs():
            gate.release()
            if STATES[state](sequence):
                return
        if state == "encoding":
            bench.engine.memory_manager.acquire(sequence)
            continue
        bench.step()
    raise AssertionError(f"the sequence never was {state}")


def test_siblings_end_with_a_request_that_has_not_started() -> None:
    bench = GatedBench(config(), Library(), None, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=5, n=3))
    bench.step()
    bench.core.active.abort("a")
    assert {key: g.finish_reason for key, g in bench.finished.items()} == dict.fromkeys(
        [("a", 0), ("a", 1), ("a", 2)], "abort"
    )
    bench.core.active.abort("a")  # once more, and of something unknown, does nothing
    bench.core.active.abort("nobody")
    assert len(bench.finished) == 3


def test_a_deadline_keeps_what_is_there() -> None:
    bench = GatedBench(config(), None, judge(), sentences)
    sequence = bench.add("a", "Tell me", SamplingParams(max_tokens=300, deadline_s=500.0))
    for _ in range(60):
        steps(bench, 1)
        for gate, _position in bench.open_jobs():
            gate.release()
    sequence.arrived -= 501.0
    steps(bench, 1)
    generation = bench.finished["a", 0]
    assert generation.finish_reason == "timeout"
    assert len(generation.token_ids) > 20
    assert generation.sentences[0].verdict is Verdict.SUPPORTED
    assert generation.sentences[-1].reason == "the deadline passed"


def test_the_loop_sleeps_until_something_can_happen() -> None:
    """With nothing to run it waits for an answer, for the next deadline at the longest."""
    bench = GatedBench(config(), None, judge(), sentences)
    sequence = bench.add("a", "Tell me", SamplingParams(max_tokens=60, deadline_s=50.0))
    steps(bench, 40)
    assert bench.open_jobs()
    now = sequence.arrived
    assert bench.core._time_to_wait(now) == pytest.approx(0.5)
    assert bench.core._time_to_wait(now + 49.9) == pytest.approx(0.1)
    assert bench.core._time_to_wait(now + 51) == 0
