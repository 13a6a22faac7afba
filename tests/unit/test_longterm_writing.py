"""Contradictions found on write: both sides marked, whoever writes when, and the better one wins by score only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from longterm_parts import WordEncoder, YearJudge

from ewe.errors import DatastoreError
from ewe.longterm.memory_search import visible
from ewe.longterm.neighbouring import neighbours
from ewe.longterm.recall import MemoryRules
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.scoring.threshold import Action
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore

DAY = 86400.0
LONG = 300.0
ANN, BOB, SHARED = Scope("ann"), Scope("bob"), Scope()
HELPER = Scope("ann", "helper")
TRUE, FALSE = "The bridge opened in 1932", "The bridge opened in 1923"


def person(name: str, reliability: float = 0.7) -> MemorySource:
    return MemorySource("user", name, reliability)


class MeetingJudge(YearJudge):
    """Lets the first two callers go on only when both are there: both have looked before either has written."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2)
        self.met = threading.local()

    def judge(self, pairs: Any) -> Any:
        if not getattr(self.met, "once", False):
            self.met.once = True
            self.barrier.wait(LONG)
        return super().judge(pairs)


class Clock:
    now = 1000 * DAY

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.create(tmp_path / "memories") as opened:
        yield opened


def service(store: MemoryStore, judge: Any = None) -> MemoryService:
    return MemoryService(store, judge=judge or YearJudge(), clock=Clock())


def at_once(*jobs: Callable[[], Any]) -> list[Any]:
    results: list[Any] = [None] * len(jobs)

    def work(place: int, job: Callable[[], Any]) -> None:
        results[place] = job()

    threads = [threading.Thread(target=work, args=item) for item in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    return results


def beliefs(memories: MemoryService, scope: Scope) -> dict[str, float]:
    """Per content what is believed of it when asked."""
    recall = memories.search("bridge opened", visible(scope.user, scope.agent), 50, threshold=0.0)
    return {one.memory.content: one.belief for one in (*recall.used, *recall.disregarded)}


def test_memories_written_at_the_same_time_find_each_other(store: MemoryStore) -> None:
    service(store).add("The bridge is green", ANN, person("ann"))
    memories = service(store, MeetingJudge())
    first, second = at_once(
        lambda: memories.add(TRUE, ANN, person("ann")), lambda: memories.add(FALSE, ANN, person("bob"))
    )
    assert store.get(ANN, first.id).contradicts == (second.id,)
    assert store.get(ANN, second.id).contradicts == (first.id,)


def test_the_same_words_at_the_same_time_are_one_memory_with_two_voices(store: MemoryStore) -> None:
    service(store).add("The bridge is green", ANN, person("ann"))
    memories = service(store, MeetingJudge())
    first, second = at_once(
        lambda: memories.add(TRUE, ANN, person("ann")), lambda: memories.add(TRUE, ANN, person("bob"))
    )
    assert first.id == second.id
    assert store.get(ANN, first.id).correct_count == 1
    assert len(store) == 2


def test_a_voice_that_is_not_believed_confirms_nothing_by_repeating_it(store: MemoryStore) -> None:
    memories = service(store)
    known = memories.add(TRUE, ANN, person("ann"))
    for words in (TRUE, "They say that the bridge opened in 1932"):
        memories.add(words, ANN, MemorySource("model", "helper", 0.5))
    assert store.get(ANN, known.id) == known
    memories.add(TRUE, ANN, person("bob", 0.6))
    assert store.get(ANN, known.id).correct_count == 1


def test_a_correction_in_words_that_are_there_already_marks_both(store: MemoryStore) -> None:
    memories = MemoryService(store, clock=Clock())  # without a judge nobody else finds it
    wrong, right = memories.add(FALSE, ANN, person("ann")), memories.add(TRUE, ANN, person("ann"))
    assert memories.correct(ANN, wrong.id, TRUE, person("ann")).id == right.id
    assert store.get(ANN, wrong.id).contradicts == (right.id,)
    assert store.get(ANN, right.id).contradicts == (wrong.id,)
    assert memories.correct(ANN, right.id, TRUE, person("ann")).contradicts == (wrong.id,)


def test_a_crowd_of_copies_does_not_hide_what_it_contradicts(store: MemoryStore) -> None:
    memories = service(store)
    true = memories.add(TRUE, SHARED, person("ann", 0.8))
    lies = [
        memories.add(f"The old bridge as I know opened {place} in 1923", SHARED, person("eve", 0.6))
        for place in range(40)
    ]
    assert all(true.id in lie.contradicts for lie in lies)
    found = beliefs(memories, SHARED)
    assert max(found[lie.content] for lie in lies) < 0.5 < found[TRUE]


def test_a_user_s_memories_with_and_without_an_agent_are_compared_and_only_the_own_scope_is_marked(
    store: MemoryStore,
) -> None:
    memories = service(store)
    mine, shared = memories.add(TRUE, ANN, person("ann")), memories.add(TRUE, SHARED, person("bob"))
    other = memories.add(TRUE, BOB, person("bob"))
    new = memories.add(FALSE, HELPER, person("ann", 0.9))
    assert new.contradicts == (mine.id,)  # the same words have the same id in every scope
    assert [store.get(memory.scope, memory.id).contradicts for memory in (mine, shared, other)] == [(), (), ()]
    assert beliefs(memories, HELPER)[FALSE] < new.veracity
    assert FALSE not in beliefs(memories, ANN)


@pytest.mark.parametrize(
    ("old", "new", "winner"), [(0.9, 0.55, TRUE), (0.6, 0.95, FALSE), (0.55, 0.9, FALSE), (0.95, 0.5, TRUE)]
)
def test_the_newer_one_wins_by_its_score_only_and_the_older_one_stays_in_history(
    store: MemoryStore, old: float, new: float, winner: str
) -> None:
    clock = Clock()
    memories = MemoryService(store, judge=YearJudge(), clock=clock)
    first = memories.add(TRUE, SHARED, person("ann", old))
    clock.now += DAY
    memories.add(FALSE, SHARED, person("bob", new))
    found = beliefs(memories, SHARED)
    assert max(found, key=lambda content: found[content]) == winner
    kept = store.get(SHARED, first.id)
    assert (kept.content, kept.veracity) == (TRUE, old)
    history = store.history(SHARED, first.id)
    assert [(one.reason, one.veracity_after) for one in history] == [("added", old), ("contradicted", old)]
    assert history[1].evidence == (store.get(SHARED, first.id).contradicts[0],)
    answer = memories.search("When did the bridge open?", [SHARED]).used[0]
    assert (answer.memory.content, answer.action) == (winner, Action.USE)


@examples(30)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 99)), unique=True, max_size=30), st.integers(1, 16))
def test_neighbours_are_the_closest_and_every_voice_there_is_room_for(rows: list[tuple[str, int]], most: int) -> None:
    found = [Memory(f"{name}{number}", "x", source=person(name)) for name, number in rows]
    chosen = neighbours(found, most)
    assert len(chosen) == min(most, len(found))
    assert len({memory.id for memory in chosen}) == len(chosen)
    assert chosen[: most // 2] == found[: most // 2]
    voices = {memory.source.id for memory in found}
    heard = {memory.source.id for memory in chosen}
    assert heard == voices or len(heard) >= min(len(voices), most - most // 2)


@pytest.mark.parametrize(("rules", "judge", "asks"), [
    (MemoryRules(), None, False),
    (MemoryRules(judge_turns=False), YearJudge(), False),
    (MemoryRules(), YearJudge(), True),
    (MemoryRules(unjudged=True), None, True),
])  # fmt: skip
def test_neighbours_are_looked_for_where_somebody_compares_them(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, rules: MemoryRules, judge: YearJudge | None, asks: bool
) -> None:
    memories, asked = MemoryService(store, judge=judge, rules=rules), list[str]()
    search = memories._search.search

    def noted(queries: Sequence[str], *rest: Any) -> Any:
        asked.extend(queries)
        return search(queries, *rest)

    monkeypatch.setattr(memories._search, "search", noted)
    memories.add("The mill opened in 1784", ANN, person("ann"))
    assert bool(asked) == asks


def test_of_older_statements_only_those_that_it_changes_are_read_whole(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = MemoryService(store, clock=Clock())
    memories.add("I live in Porto.", ANN, person("ann"))
    for place in range(20):
        memories.add(f"I saw shop {place} in Porto.", ANN, person("ann"))
    read: list[int] = []
    rows = store.rows

    def noted(numbers: Sequence[int], scopes: Sequence[Scope]) -> dict[int, Memory]:
        read.extend(numbers)
        return rows(numbers, scopes)

    monkeypatch.setattr(store, "rows", noted)
    memories.add("I moved from Porto to Bergen.", ANN, person("ann"))
    assert len(read) == 1


def test_memories_that_come_one_after_the_other_are_given_vectors_together(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ewe.longterm.background_vectors._GATHER_S", LONG)
    encoder, lots = WordEncoder(), list[int]()
    memories = MemoryService(store, encoder=encoder, in_background=True)
    monkeypatch.setattr(store.embeddings, "_keep", lambda rows, *_: lots.append(len(rows)) or [])
    for place in range(5):
        memories.add(f"The mill has door {place}", ANN, person("ann"))
    memories.close()  # does not wait any longer
    assert lots == [5]


def test_memories_that_come_together_are_added_as_one_after_the_other(tmp_path: Path) -> None:
    said = ("I live in Porto.", "I saw a ship in Porto.", "I moved to Bergen.", "I live in Porto.", "I have a cat.")
    told = [
        Memory("new", text, source=person("ann"), scope=ANN, created_at=place * DAY)
        for place, text in enumerate(said, 1)
    ]
    kept = []
    for name in ("together", "apart"):
        with MemoryStore.create(tmp_path / name) as store:
            memories = MemoryService(store, clock=Clock())
            added = memories.add_all(told) if name == "together" else [memories.add_all([one])[0] for one in told]
            kept.append((added, list(store.scan()), [store.history(ANN, one.id) for one in added]))
    assert kept[0] == kept[1]
    assert any(one.supersedes for one in kept[0][0])


@pytest.mark.parametrize(("judge", "left"), [(None, 0), (YearJudge(), 2)])
def test_of_memories_that_come_together_all_are_kept_or_none(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, judge: YearJudge | None, left: int
) -> None:
    memories, add = MemoryService(store, judge=judge), store.add

    def once(new: Sequence[Memory], **rest: Any) -> Any:
        if "broken" in new[0].content:
            raise DatastoreError("the disk is full")
        return add(new, **rest)

    monkeypatch.setattr(store, "add", once)
    told = [Memory("new", f"The mill has a {part}", scope=ANN) for part in ("door", "roof", "broken wheel", "yard")]
    with pytest.raises(DatastoreError):
        memories.add_all(told)
    assert len(store) == left
