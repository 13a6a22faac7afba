"""Workers: batching, bad components, hanging ones, and what the loop does with each; no test looks at a clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from ewe.engine.evidence.workers import Job, Worker

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


def test_what_a_component_loads_first_takes_nothing_from_the_time_of_its_jobs() -> None:
    component, loaded, woken = Component(), threading.Event(), threading.Semaphore(0)
    worker = Worker("tool", component, woken.release, lambda: loaded.wait(LONG))
    jobs = [worker.submit(n, LONG) for n in (1, 2)]
    late = jobs[0].deadline + LONG
    worker.abandon_overdue(late)
    assert worker.next_deadline() is None
    assert not any(job.done for job in jobs)
    begun = [job.submitted for job in jobs]
    loaded.set()
    assert woken.acquire(timeout=LONG), "the loop hears of it, since from now on there are deadlines"
    component.gate.set()
    wait_for(worker, jobs[-1], woken)
    assert [job.result for job in jobs] == [2, 4]
    assert all(job.submitted > before for job, before in zip(jobs, begun, strict=True))
    worker.close()


def test_a_component_that_cannot_load_fails_its_jobs() -> None:
    def fail(*_: Any) -> Any:
        raise OSError("no such weights")

    woken = threading.Semaphore(0)
    worker = Worker("tool", fail, woken.release, fail)
    job = worker.submit(1, LONG)
    wait_for(worker, job, woken)
    assert "no such weights" in job.error
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
    gate, called, calls, threads = threading.Event(), threading.Semaphore(0), [], []

    def call(payloads: list[Any]) -> list[Any]:
        calls.append(payloads)
        threads.append(threading.current_thread())
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
    gate.set()
    threads[-1].join(LONG)
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
