"""Reviews in the background: what they do, that they can be stopped, and what a kill leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ewe.errors import ConfigError, JudgeError
from ewe.longterm.records import Memory, Scope
from ewe.longterm.reviews import BackgroundReviews, Reviewed, ReviewStatus
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.types import Passage, ScoredPassage

DAY = 86400.0
NOW = 1000 * DAY
LONG = 300.0
ANN, BOB = Scope("ann"), Scope("bob")


class Library:
    """Finds one passage; `before` is called with what is looked for."""

    def __init__(self, before: Callable[[str], Any] = lambda query: None) -> None:
        self.before = before

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        for query in queries:
            self.before(query)
        return [[ScoredPassage(Passage("p", "It is not so", veracity=0.95), 1.0)] for _ in queries]


class Refuting:
    """Refutes what ends in "wrong", says nothing of the rest."""

    def judge(self, pairs: Any) -> Any:
        rows = [(0, 0.95, 0.05) if claim.endswith("wrong") else (0, 0, 1) for _, claim in pairs]
        return np.array(rows, dtype=np.float32).reshape(-1, 3)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.create(tmp_path / "memories") as opened:
        yield opened


def fill(store: MemoryStore, count: int, scope: Scope = ANN) -> None:
    """Memories from long ago, the first the least believed; every other one is wrong."""
    ends = ("wrong", "right")
    store.add(
        Memory(f"m{number}", f"fact {number} is {ends[number % 2]}", scope=scope, veracity=0.1 + 0.08 * number)
        for number in range(count)
    )


def service(store: MemoryStore, before: Callable[[str], Any] = lambda query: None) -> MemoryService:
    return MemoryService(store, judge=Refuting(), trusted=Library(before), clock=lambda: NOW)


def reviewed(store: MemoryStore) -> set[str]:
    return {memory.id for memory in store.scan() if len(store.history(memory.scope, memory.id)) > 1}


def test_rounds_go_on_until_everything_was_checked_and_can_be_stopped(store: MemoryStore) -> None:
    fill(store, 7)
    seen: list[Reviewed] = []
    done = threading.Event()

    def note(one: Reviewed) -> None:
        seen.append(one)
        if len(seen) == 7:
            done.set()

    with BackgroundReviews(service(store).reviewer(), budget=3, every_s=0.001, on_review=note) as reviews:
        assert done.wait(LONG)
    assert reviews.stop()
    assert [one.memory.id for one in seen] == [f"m{number}" for number in range(7)]
    status = reviews.status
    assert (status.reviewed, status.moved, status.failed, status.last_error) == (7, 4, 0, "")
    assert status.rounds >= 3
    assert [one.revision.reason for one in seen if one.revision] == ["reviewed"] * 7
    assert store.get(ANN, "m0").veracity < 0.1
    assert store.history(ANN, "m0")[-1].evidence == ("passage:p",)
    assert store.verify() == []


def test_stopping_waits_for_the_memory_under_way_and_no_longer(store: MemoryStore) -> None:
    fill(store, 5)
    entered, go_on = threading.Event(), threading.Event()

    def hold(query: str) -> None:
        entered.set()
        go_on.wait(LONG)

    reviews = BackgroundReviews(service(store, hold).reviewer(), budget=5).start()
    assert entered.wait(LONG)
    assert not reviews.stop(0.01)
    assert reviewed(store) == set()
    go_on.set()
    assert reviews.stop(LONG)
    assert reviewed(store) == {"m0"}


def test_the_store_can_be_written_while_a_review_reads(store: MemoryStore) -> None:
    fill(store, 1)
    entered, go_on = threading.Event(), threading.Event()

    def hold(query: str) -> None:
        entered.set()
        go_on.wait(LONG)

    memories = service(store, hold)
    with BackgroundReviews(memories.reviewer()):
        assert entered.wait(LONG)
        store.delete(ANN, ["m0"], at=NOW, reason="asked")
        store.add([Memory("new", "tea", scope=BOB, created_at=NOW, updated_at=NOW)])
        go_on.set()
    assert reviewed(store) == set()
    assert [memory.id for memory in store.scan()] == ["new"]


def test_what_cannot_be_checked_is_counted_and_does_not_hold_up_the_others(store: MemoryStore) -> None:
    fill(store, 4)
    tries: list[str] = []

    def fail(query: str) -> None:
        tries.append(query)
        if query == "fact 0 is wrong":
            raise JudgeError("nobody can judge this")

    reviewer = service(store, fail).reviewer()
    rounds = [[one.memory.id for one in reviewer.round(reviewer.plan(1))] for _ in range(5)]
    assert rounds == [["m0"], ["m1"], ["m2"], ["m3"], ["m0"]]
    assert reviewed(store) == {"m1", "m2", "m3"}
    with pytest.raises(JudgeError, match="nobody can judge"):
        service(store, fail).review(1)


def test_a_round_ends_where_nobody_is_there_who_checks_and_the_next_one_comes(store: MemoryStore) -> None:
    fill(store, 8)
    down = True
    failures: list[Reviewed] = []
    all_reviewed = threading.Event()

    def maybe(query: str) -> None:
        if down:
            raise OSError("unreachable")

    def note(one: Reviewed) -> None:
        nonlocal down
        if one.error:
            failures.append(one)
        down = len(failures) < 3
        if len(reviewed(store)) == 8:
            all_reviewed.set()

    reviews = BackgroundReviews(service(store, maybe).reviewer(), 8, 0.001, [ANN], note)
    with reviews:
        assert all_reviewed.wait(LONG)
    assert [one.memory.id for one in failures] == ["m0", "m1", "m2"]
    assert (reviews.status.failed, reviews.status.reviewed, reviews.status.last_error) == (3, 8, "unreachable")


def test_a_store_that_was_closed_ends_rounds_not_the_thread(store: MemoryStore) -> None:
    reviewer = service(store).reviewer()
    store.close()
    reviews = BackgroundReviews(reviewer, every_s=0.001)
    with reviews:
        waited = threading.Event()
        while reviews.status.rounds < 2:
            assert not waited.wait(0.01)
    assert reviews.status.last_error


def test_only_the_scopes_asked_for(store: MemoryStore) -> None:
    fill(store, 1, ANN)
    fill(store, 1, BOB)
    reviewer = service(store).reviewer()
    assert [one.memory.scope for one in reviewer.round(reviewer.plan(9, [BOB]))] == [BOB]
    assert [one.memory.scope for one in reviewer.round(reviewer.plan(9))] == [ANN]


def test_what_reviews_need(store: MemoryStore) -> None:
    with pytest.raises(ConfigError, match="trusted"):
        MemoryService(store, judge=Refuting()).reviewer()
    with pytest.raises(ConfigError, match="judge"):
        MemoryService(store, trusted=Library()).reviewer()
    for budget, every in ((0, 1.0), (1, 0.0), (1, float("nan"))):
        with pytest.raises(ConfigError, match="above 0"):
            BackgroundReviews(service(store).reviewer(), budget, every)
    assert BackgroundReviews(service(store).reviewer()).stop()
    assert ReviewStatus().with_one(Reviewed(Memory("x", "y"), None)) == ReviewStatus()


_CHILD = """
import os, signal, sys, threading
from tests.unit.test_longterm_reviews import service
from ewe.longterm.reviews import BackgroundReviews
from ewe.longterm.store import MemoryStore
asked = []
def die(query):
    asked.append(query)
    if len(asked) > int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
with BackgroundReviews(service(MemoryStore.open(sys.argv[1], read_only=False), die).reviewer(), budget=99):
    threading.Event().wait()
"""


@pytest.mark.parametrize("after", [0, 3])
def test_a_kill_takes_back_no_review_and_the_next_process_goes_on(store: MemoryStore, after: int) -> None:
    fill(store, 6)
    path = store.path
    store.close()
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path), str(after)],
        cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": "."}, timeout=LONG,
    )  # fmt: skip
    assert child.returncode == -signal.SIGKILL
    with MemoryStore.open(path, read_only=False) as opened:
        assert opened.verify() == []
        assert reviewed(opened) == {f"m{number}" for number in range(after)}
        assert len(service(opened).review(99)) == 6 - after
        assert opened.verify() == []
