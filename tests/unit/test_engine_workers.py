"""Workers: batching, bad components, hanging ones, and what the loop does with each; no test looks at a clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from conftest import Bench
from engine_bench import Judge, Library, Reader, sentences

from ewe.config import Config
from ewe.engine.workers import Job, Worker
from ewe.sampling import SamplingParams
from ewe.types import Claim, Evidence, Passage, ScoredPassage, Verdict, VerificationResult

LONG = 60.0  # seconds after which a test would fail that waits for something that never comes


class Component:
    """Doubles numbers, once it is let; notes its batches and the threads that it ran in."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.called = threading.Semaphore(0)
        self.batches: list[list[Any]] = []
        self.threads: list[threading.Thread] = []

    def __call__(self, payloads: list[Any]) -> list[Any]:
        self.batches.append(payloads)
        self.threads.append(threading.current_thread())
        self.called.release()
        assert self.gate.wait(LONG)
        return [2 * payload for payload in payloads]


def wait_for(worker: Worker, job: Job, woken: threading.Semaphore) -> None:
    while not job.done:
        assert woken.acquire(timeout=LONG)


def make(call: Callable[[list[Any]], Any]) -> tuple[Worker, threading.Semaphore]:
    woken = threading.Semaphore(0)
    return Worker("tool", call, woken.release), woken


def test_what_queues_up_becomes_one_batch() -> None:
    component = Component()
    worker, woken = make(component)
    first = worker.submit(1, LONG)
    assert component.called.acquire(timeout=LONG)
    others = [worker.submit(n, LONG) for n in (2, 3, 4)]
    assert not first.done
    component.gate.set()
    wait_for(worker, others[-1], woken)

    assert component.batches == [[1], [2, 3, 4]]
    assert [job.result for job in (first, *others)] == [2, 4, 6, 8]
    assert not any(job.error for job in (first, *others))
    assert first.latency_s >= 0
    worker.close()


def test_one_bad_payload_fails_alone() -> None:
    gate = threading.Event()

    def call(payloads: list[Any]) -> list[Any]:
        assert gate.wait(LONG)
        if 0 in payloads:
            raise ZeroDivisionError("no zero here")
        return [1 / payload for payload in payloads]

    worker, woken = make(call)
    jobs = [worker.submit(n, LONG) for n in (4, 0, 2)]
    gate.set()
    for job in jobs:
        wait_for(worker, job, woken)
    assert [job.result for job in jobs] == [0.25, None, 0.5]
    assert jobs[1].error == "tool failed: ZeroDivisionError: no zero here"
    worker.close()


@pytest.mark.parametrize("answer", [[], [1, 2], None, 7], ids=["too few", "too many", "nothing", "no list"])
def test_a_wrong_number_of_results_is_an_error(answer: Any) -> None:
    worker, woken = make(lambda payloads: answer)
    job = worker.submit(0, LONG)
    wait_for(worker, job, woken)
    assert job.result is None
    assert job.error.startswith("tool failed: ")
    worker.close()


def test_a_hanging_call_is_left_behind_and_later_jobs_are_served() -> None:
    component = Component()
    worker, woken = make(component)
    hung = worker.submit(1, 5)
    assert component.called.acquire(timeout=LONG)
    queued = worker.submit(2, 5)
    assert worker.next_deadline() == hung.deadline

    worker.abandon_overdue(hung.deadline - 0.1)
    assert not hung.done
    worker.abandon_overdue(queued.deadline)  # both are overdue now

    assert hung.error == queued.error == "tool did not answer within 5 s"
    assert worker.next_deadline() is None
    later = worker.submit(3, LONG)
    assert component.called.acquire(timeout=LONG)  # by a new thread: the old one still hangs
    component.gate.set()
    wait_for(worker, later, woken)
    assert (later.result, hung.result, hung.error != "") == (6, None, True)
    assert component.batches == [[1], [3]]  # what timed out in the queue was never tried
    assert component.threads[0] is not component.threads[1]
    for thread in component.threads[:1]:
        thread.join(LONG)
        assert not thread.is_alive()  # the one left behind ends when its call does
    worker.close()


def test_jobs_given_up_are_not_tried_again_one_by_one() -> None:
    gate, called, calls = threading.Event(), threading.Semaphore(0), []

    def call(payloads: list[Any]) -> list[Any]:
        calls.append(payloads)
        called.release()
        if payloads == ["first"]:
            assert first_gate.wait(LONG)
            return ["ok"]
        assert gate.wait(LONG)
        raise RuntimeError("late and wrong")

    first_gate = threading.Event()
    worker, woken = make(call)
    first = worker.submit("first", LONG)
    assert called.acquire(timeout=LONG)
    overdue = [worker.submit(n, 5) for n in (1, 2)]
    first_gate.set()
    wait_for(worker, first, woken)
    assert called.acquire(timeout=LONG)
    worker.abandon_overdue(overdue[-1].deadline)
    [old] = [t for t in threading.enumerate() if t.name == "ewe-tool" and t is not worker._thread]
    gate.set()
    old.join(LONG)
    assert calls == [["first"], [1, 2]]
    worker.close()


def test_close_fails_open_jobs_and_ends_the_thread() -> None:
    component = Component()
    worker, _ = make(component)
    running = worker.submit(1, LONG)
    assert component.called.acquire(timeout=LONG)
    queued = worker.submit(2, LONG)
    worker.close()
    assert running.error == queued.error == "tool was closed"
    component.gate.set()
    component.threads[0].join(LONG)
    assert not component.threads[0].is_alive()
    assert running.result is None  # the first answer counts


# --- in the engine: whatever the components do, the text goes on


def config(**feedback: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2}
    return Config.from_mapping({"memory": memory, "feedback": feedback, "cache": {"block_size": 4}})


class Broken:
    """A retriever and verifier that does the same wrong thing every time."""

    def __init__(self, action: Callable[[Sequence[Any]], Any]) -> None:
        self._action = action

    def retrieve(self, queries: Sequence[str], top_k: int) -> Any:
        return self._action(queries)

    def verify(self, requests: Sequence[Any]) -> Any:
        return self._action(requests)


def fail(items: Sequence[Any]) -> Any:
    raise ConnectionError("no network")


NONSENSE_RESULTS: dict[str, Any] = {
    "raises": fail,
    "returns None": lambda items: None,
    "too few": lambda items: [],
    "too many": lambda items: [VerificationResult()] * (len(items) + 1),
    "strings": lambda items: ["supported"] * len(items),
    "claims are no claims": lambda items: [VerificationResult(("yes",))] * len(items),  # type: ignore[arg-type]
    "no list of claims": lambda items: [VerificationResult(None)] * len(items),  # type: ignore[arg-type]
    "a verdict is a string": lambda items: [VerificationResult((Claim("x", verdict="refuted"),))] * len(items),  # type: ignore[arg-type]
    "evidence is text": lambda items: [VerificationResult((Claim("x"),), ("see page 5",))] * len(items),  # type: ignore[arg-type]
    "evidence without passage": lambda items: (
        [VerificationResult((Claim("x"),), (Evidence("p", Verdict.REFUTED, 1.0),))] * len(items)  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("action", NONSENSE_RESULTS.values(), ids=NONSENSE_RESULTS.keys())
def test_a_bad_verifier_costs_the_verdicts_and_nothing_else(action: Any) -> None:
    good = Bench(config(), None, None, sentences)
    good.add("a", "Tell me", SamplingParams(max_tokens=40))
    bench = Bench(config(), None, Broken(action), sentences)
    reader = Reader()
    bench.add("a", "Tell me", SamplingParams(max_tokens=40), listener=reader)

    generation = bench.run()["a", 0]

    # The context starts at another position when there is a memory, so the mock model writes something else.
    assert generation.finish_reason == "length"
    assert len(generation.token_ids) == 40 == len(good.run()["a", 0].token_ids)
    assert len(generation.sentences) > 2
    assert {sentence.verdict for sentence in generation.sentences} == {Verdict.NOT_CHECKED}
    assert all(sentence.reason.startswith("verification failed: ") for sentence in generation.sentences)
    assert reader.text == generation.text
    assert any("error" in event.data for event in generation.trace if event.kind == "verification")


NONSENSE_HITS: dict[str, Any] = {
    "raises": fail,
    "returns None": lambda items: None,
    "too few": lambda items: [],
    "None per query": lambda items: [None] * len(items),
    "passages without scores": lambda items: [[Passage("p", "text")]] * len(items),
    "a score is text": lambda items: [[ScoredPassage(Passage("p", "text"), "high")]] * len(items),  # type: ignore[arg-type]
    "no passage": lambda items: [[ScoredPassage("text", 1.0)]] * len(items),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("action", NONSENSE_HITS.values(), ids=NONSENSE_HITS.keys())
def test_a_bad_retriever_costs_the_passages_and_nothing_else(action: Any) -> None:
    bench = Bench(config(), Broken(action), Judge(lambda _: Verdict.SUPPORTED), sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=40))
    generation = bench.run()["a", 0]
    assert generation.finish_reason == "length"
    assert generation.stats.refreshes == 0
    assert {sentence.verdict for sentence in generation.sentences} == {Verdict.SUPPORTED}
    errors = [event.data.get("error", "") for event in generation.trace if event.kind == "retrieval"]
    assert errors
    assert all(error.startswith("retrieval failed: ") for error in errors)


def test_passages_that_no_unit_can_hold_are_skipped_with_a_note() -> None:
    hits = [Passage("empty", ""), Passage("worthless", "not believed", veracity=0.0), Passage("fine", "a fact")]
    action = lambda items: [[ScoredPassage(p, 1.0) for p in hits]] * len(items)  # noqa: E731
    bench = Bench(config(), Broken(action), None, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=5))
    generation = bench.run()["a", 0]
    skipped = {event.data["id"]: event.data["reason"] for event in generation.trace if event.kind == "skip"}
    assert skipped.keys() == {"empty", "worthless"}
    assert "no text" in skipped["empty"]
    assert "veracity is 0" in skipped["worthless"]
    assert generation.sources.keys() == {"fine"}
    assert generation.finish_reason == "length"


class Hanging(Library, Judge):
    """Answers nothing until the gate opens."""

    def __init__(self) -> None:
        Judge.__init__(self, lambda _: Verdict.SUPPORTED)
        self.gate = threading.Event()
        self.calls = 0

    def retrieve(self, queries: Sequence[str], top_k: int) -> Any:
        self.calls += 1
        assert self.gate.wait(LONG)
        return Library.retrieve(self, queries, top_k)

    def verify(self, requests: Sequence[Any]) -> Any:
        self.calls += 1
        assert self.gate.wait(LONG)
        return Judge.verify(self, requests)


@pytest.mark.parametrize("mode", ["blocking", "optimistic"])
def test_a_hanging_verifier_times_out_and_serves_again_later(mode: str) -> None:
    component = Hanging()
    bench = Bench(config(timeout=0.02, mode=mode), None, component, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=30))
    generation = bench.run()["a", 0]
    assert generation.finish_reason == "length"
    reasons = {sentence.reason for sentence in generation.sentences}
    assert reasons == {"verification did not answer within 0.02 s"}

    component.gate.set()
    bench.core._pauses._config = config(timeout=LONG).feedback
    bench.add("b", "Tell me", SamplingParams(max_tokens=30))
    assert {s.verdict for s in bench.run()["b", 0].sentences} == {Verdict.SUPPORTED}


def test_a_hanging_retriever_times_out() -> None:
    component = Hanging()
    bench = Bench(config(timeout=0.02, retrieve_every=16), component, None, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=30))
    generation = bench.run()["a", 0]
    assert generation.finish_reason == "length"
    assert generation.stats.refreshes == 0
    assert component.calls >= 1
    component.gate.set()
