"""The store of memories against a plain dictionary, and two tenants who must never notice each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from ewe.errors import DatastoreError, InvalidRequestError
from ewe.longterm.memory_search import MemorySearch
from ewe.longterm.records import Memory, MemorySource, Revision, Scope
from ewe.longterm.store import Change, Deletion, MemoryStore
from tests.unit.longterm_parts import WordEncoder, memories, new_store, quick, raw

ANN, BOB = Scope("ann"), Scope("bob", "helper")
SCOPES = st.sampled_from([ANN, BOB, Scope()])
IDS = st.sampled_from("abcd")
VOCABULARY = ["tea", "red", "wine", "Lyon", "the", "likes", "moved", "1903"]
WORDS = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6)
CONTENTS = WORDS.map(" ".join)
SHARES = st.floats(0, 1)
ENCODER = WordEncoder()


class StoreMachine(RuleBasedStateMachine):
    """All tenants in one store, each alone in another, and a dictionary that does the same."""

    def __init__(self, new_place: Callable[[], Any]) -> None:
        super().__init__()
        self.store = new_store(new_place())
        self.alone = {scope: new_store(new_place()) for scope in (ANN, BOB, Scope())}
        self.model: dict[tuple[Scope, str], tuple[Memory, list[Revision]]] = {}
        self.deleted: list[Deletion] = []
        self.now = 0.0

    def teardown(self) -> None:
        for store in (self.store, *self.alone.values()):
            assert store.verify() == []
            store.close()

    def tick(self) -> float:
        self.now += 1
        return self.now

    @rule(scope=SCOPES, memory_id=IDS, content=CONTENTS, veracity=SHARES, metadata=st.dictionaries(IDS, CONTENTS))
    def add(self, scope: Scope, memory_id: str, content: str, veracity: float, metadata: dict[str, str]) -> None:
        at = self.tick()
        source = MemorySource("user", content, veracity)
        memory = Memory(memory_id, content, "fact", source, scope, metadata, at, at, veracity)
        known = self.model.get((scope, memory_id))
        for store in (self.store, self.alone[scope]):
            result = store.add([memory])
            expected = (
                (1, 0, ())
                if known is None
                else (0, 1, ())
                if known[0].content == content
                else (0, 0, ((scope, memory_id),))
            )
            assert (result.added, result.duplicates, result.conflicts) == expected
        if known is None:
            self.model[scope, memory_id] = (
                memory,
                [Revision(memory_id, 1, at, "added", veracity, veracity, uncertainty=1.0)],
            )

    @rule(
        scope=SCOPES,
        memory_id=IDS,
        content=st.none() | CONTENTS,
        veracity=st.none() | SHARES,
        correct=st.integers(0, 2),
        evidence=st.lists(CONTENTS, max_size=2),
    )
    def revise(
        self, scope: Scope, memory_id: str, content: str | None, veracity: float | None, correct: int, evidence: Any
    ) -> None:
        at = self.tick()
        change = Change(veracity=veracity, content=content, correct=correct)
        known = self.model.get((scope, memory_id))
        for store in (self.store, self.alone[scope]):
            if known is None:
                with pytest.raises(InvalidRequestError, match=repr(memory_id)):
                    store.revise(scope, memory_id, change, at=at, reason="said", evidence=evidence)
            else:
                store.revise(scope, memory_id, change, at=at, reason="said", evidence=evidence)
        if known is None:
            return
        old, history = known
        new = replace(
            old,
            content=old.content if content is None else content,
            veracity=old.veracity if veracity is None else veracity,
            correct_count=old.correct_count + correct,
            updated_at=at,
            confirmed_at=at if correct or (veracity or 0.0) > old.veracity else old.confirmed_at,
        )
        before = "" if new.content == old.content else old.content
        revision = Revision(
            memory_id, len(history) + 1, at, "said", old.veracity, new.veracity, tuple(evidence), before, 1.0
        )
        self.model[scope, memory_id] = (new, [*history, revision])

    @rule(scope=SCOPES, ids=st.lists(IDS, max_size=3))
    def recall(self, scope: Scope, ids: list[str]) -> None:
        ids = [*ids, *(memory_id for known, memory_id in self.model if known == scope)]  # drawn alone they rarely meet
        for store in (self.store, self.alone[scope]):
            store.recalled(scope, ids)
        for memory_id in ids:
            if (scope, memory_id) in self.model:
                memory, history = self.model[scope, memory_id]
                self.model[scope, memory_id] = (replace(memory, recall_count=memory.recall_count + 1), history)

    @rule(scope=SCOPES, ids=st.none() | st.lists(IDS, max_size=2))
    def delete(self, scope: Scope, ids: list[str] | None) -> None:
        at = self.tick()
        going = [key for key in self.model if key[0] == scope and (ids is None or key[1] in ids)]
        for store in (self.store, self.alone[scope]):
            assert store.delete(scope, ids, at=at, reason="asked") == len(going)
        for key in going:
            del self.model[key]
            self.deleted.append(Deletion(at, scope, key[1], "asked"))

    @rule()
    def embed(self) -> None:
        for store in (self.store, *self.alone.values()):
            store.embeddings.embed(ENCODER)

    @rule()
    def reopen(self) -> None:
        path = self.store.path
        self.store.close()
        self.store = quick(MemoryStore.open(path, read_only=False))

    @rule(scope=SCOPES, query=CONTENTS, by_meaning=st.booleans())
    def search(self, scope: Scope, query: str, by_meaning: bool) -> None:
        """What others hold changes neither what is found nor its score."""
        encoder = ENCODER if by_meaning else None
        together, apart = (
            MemorySearch(store, encoder).search([query], [scope], 3) for store in (self.store, self.alone[scope])
        )
        assert together == apart
        assert all(hit.memory == self.model[scope, hit.memory.id][0] for hit in together[0])

    @invariant()
    def everything_is_there(self) -> None:
        assert len(self.store) == len(self.model)
        for scope, alone in self.alone.items():
            mine = {key: value for key, value in self.model.items() if key[0] == scope}
            for store in (self.store, alone):
                assert {memory.id: memory for memory in store.scan([scope])} == {
                    memory_id: memory for (_, memory_id), (memory, _) in mine.items()
                }
                for (_, memory_id), (memory, history) in mine.items():
                    assert store.get(scope, memory_id) == memory
                    assert store.history(scope, memory_id) == history
            assert sorted(self.store.deletions(scope), key=str) == sorted(
                (entry for entry in self.deleted if entry.scope == scope), key=str
            )


def test_a_store_is_what_a_dictionary_would_be(new_place: Callable[[], Any]) -> None:
    fast, thorough = (10, 25) if isinstance(new_place(), Path) else (2, 3)
    run_state_machine_as_test(
        lambda: StoreMachine(new_place), settings=examples(fast, thorough, stateful_step_count=20)
    )


@pytest.fixture
def store(new_place: Callable[[], Any]):
    with new_store(new_place()) as created:
        yield created


@pytest.fixture
def file_store(tmp_path: Path):
    with new_store(tmp_path / "store") as created:
        yield created


def test_a_change_reads_no_table_of_all_tenants(file_store: MemoryStore) -> None:
    store = file_store
    store.add([*memories(40, ANN), *memories(40, BOB)])
    statements: list[str] = []
    store._session._connection.set_trace_callback(statements.append)
    store.add(memories(2, ANN, first=40))
    store.revise(ANN, "m1", Change(content="other words"), at=1.0, reason="said")
    store.recalled(ANN, ["m2"])
    store.delete(ANN, ["m3", "m4"], at=2.0, reason="asked")
    assert len(store.deletions(ANN)) == 2
    store.erase("ann", at=3.0, reason="asked")
    store._session._connection.set_trace_callback(None)
    plans = [
        (statement, step)
        for statement in statements
        if statement.startswith(("SELECT", "UPDATE", "DELETE", "INSERT"))
        for *_, step in store._session.query(f"EXPLAIN QUERY PLAN {statement}")
    ]
    tables = ("scopes", "memories", "revisions", "deletions", "words", "postings")
    assert len(plans) > 20
    assert not [
        (statement, step) for statement, step in plans if step.startswith(tuple(f"SCAN {one}" for one in tables))
    ]


def test_what_another_scope_holds_cannot_be_told_from_any_answer(store: MemoryStore) -> None:
    store.add([Memory("x", "Ann's secret", scope=ANN), Memory("y", "everybody's")])
    for scope in (BOB, Scope("ann", "helper"), Scope(agent="ann"), Scope()):
        assert store.find(scope, "x") is None
        refusals = []
        for memory_id in ("x", "z"):
            with pytest.raises(InvalidRequestError) as refused:
                store.get(scope, memory_id)
            refusals.append(str(refused.value).replace(memory_id, "?"))
        assert refusals[0] == refusals[1]
        assert store.add([Memory("x", "mine", scope=scope)]).conflicts == ()
        assert store.delete(scope, ["x", "z"], at=1.0, reason="asked") == 1
        with pytest.raises(InvalidRequestError):
            store.revise(scope, "x", Change(veracity=0.0), at=2.0, reason="lie")
    assert store.get(ANN, "x").content == "Ann's secret"
    both = [Memory("same", "hers", scope=ANN), Memory("same", "his", scope=BOB)]
    assert (store.add(both).added, store.add(both).duplicates) == (2, 2)
    assert store.deletions(ANN) == []


def test_history_cannot_be_rewritten_even_by_sql(store: MemoryStore) -> None:
    store.add([Memory("x", "tea", scope=ANN)])
    store.revise(ANN, "x", Change(content="coffee"), at=1.0, reason="said")
    store.delete(Scope(), at=1.0, reason="nothing there")
    store.add([Memory("z", "gone")])
    store.delete(Scope(), ["z"], at=2.0, reason="asked")
    for statement in (
        "UPDATE revisions SET reason = 'other'",
        "DELETE FROM revisions",
        "UPDATE deletions SET reason = 'other'",
        "DELETE FROM deletions",
    ):
        with pytest.raises(DatastoreError, match=r"never|only"):
            raw(store, statement)
    assert [revision.content_before for revision in store.history(ANN, "x")] == ["", "tea"]


def test_a_transaction_holds_reading_and_writing_together(store: MemoryStore) -> None:
    store.add(memories(1, ANN))

    def fail_at_the_end() -> None:
        with store.transaction():
            veracity = store.get(ANN, "m0").veracity
            store.revise(ANN, "m0", Change(veracity=veracity / 2), at=9.0, reason="doubt")
            store.delete(ANN, ["m0"], at=9.0, reason="worse")
            store.add(memories(3, BOB))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_at_the_end()
    assert store.get(ANN, "m0").veracity == 0.5
    assert (len(store), len(store.history(ANN, "m0")), store.deletions(), store.verify()) == (1, 1, [], [])


def test_large_additions_are_committed_in_parts(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.longterm.store.adding._BATCH", 4)

    def stream():
        yield from memories(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.add(stream())
    assert (len(store), store.verify()) == (8, [])


def test_a_file_has_one_writer(file_store: MemoryStore) -> None:
    with pytest.raises(DatastoreError, match="another process is writing"):
        MemoryStore.open(file_store.path, read_only=False)


def test_readers_see_what_was_committed_before_they_looked(store: MemoryStore) -> None:
    store.add(memories(2))
    with MemoryStore.open(store.path) as reader:
        with pytest.raises(DatastoreError, match="reading only"):
            reader.add(memories(1))
        with reader.snapshot():
            store.add(memories(1, first=2))
            assert len(reader) == 2
        assert len(reader) == 3


def test_a_store_that_was_closed_stays_closed(store: MemoryStore) -> None:
    store.close()
    with pytest.raises(DatastoreError, match="closed"):
        len(store)


def test_a_writer_waits_for_the_snapshots_of_other_threads(store: MemoryStore) -> None:
    order: list[str] = []

    def write() -> None:
        store.add(memories(1))
        order.append("written")

    def read() -> None:
        with store.snapshot():
            order.append(f"later reader sees {len(store)}")

    writer, reader = threading.Thread(target=write), threading.Thread(target=read)
    with store.snapshot():
        with store.snapshot(), pytest.raises(DatastoreError, match="inside a snapshot"):
            store.add(memories(1))
        writer.start()
        while not store._session._waiting:
            time.sleep(0.001)
        reader.start()
        with store.snapshot():
            order.append(f"snapshot sees {len(store)}")
    writer.join()
    reader.join()
    assert (order[0], set(order[1:])) == ("snapshot sees 0", {"written", "later reader sees 1"})


def test_a_snapshot_inside_a_transaction_ends_nothing(store: MemoryStore) -> None:
    with store.transaction():
        store.add(memories(2))
        assert store.stats()["memories"] == 2
        assert store.verify() == []
    assert len(store) == 2


def test_what_speaks_for_a_memory_confirms_it_and_nothing_else_does(store: MemoryStore) -> None:
    store.add([replace(memories(1)[0], created_at=10.0)])
    changes = [Change(veracity=0.4), Change(incorrect=1), Change(contradicts=("m1",)), Change(uncertainty=0.1)]
    for at, change in enumerate(changes, 20):
        store.revise(Scope(), "m0", change, at=at, reason="said")
    memory = store.get(Scope(), "m0")
    assert (memory.confirmed_at, memory.last_said_at, memory.updated_at) == (0.0, 10.0, 23.0)
    for at, change in ((30.0, Change(correct=1)), (40.0, Change(veracity=0.5)), (35.0, Change(correct=1))):
        store.revise(Scope(), "m0", change, at=at, reason="said")
    assert store.get(Scope(), "m0").last_said_at == 40.0


def test_an_invalid_change_changes_nothing(store: MemoryStore) -> None:
    store.add(memories(1))
    for change in (Change(veracity=1.5), Change(content=" "), Change(correct=-1), Change(contradicts=("\ud800",))):
        with pytest.raises(InvalidRequestError):
            store.revise(Scope(), "m0", change, at=1.0, reason="wrong")
    with pytest.raises(InvalidRequestError, match="surrogate"):
        store.revise(Scope(), "m0", Change(veracity=0.1), at=1.0, reason="wrong", evidence=["\ud800"])
    assert (store.get(Scope(), "m0"), len(store.history(Scope(), "m0"))) == (memories(1)[0], 1)


def test_odd_text_survives(store: MemoryStore) -> None:
    odd = Memory(
        "a/b c%", "nul \0, line \r\n, \u202e, <|eot_id|>, 𝄞, '; DROP TABLE memories", scope=Scope("ü/ö", "%2F")
    )
    store.add([odd])
    assert store.get(odd.scope, odd.id) == odd
    [[hit]] = MemorySearch(store).search(["'drop table"], [odd.scope], 5)
    assert hit.memory == odd


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DROP TRIGGER revisions_stay; DELETE FROM revisions WHERE number = 1", "lost a revision"),
        ("UPDATE memories SET veracity = 0.9 WHERE id = 'm1'", "another veracity"),
        ("UPDATE scopes SET memories = 7", "counted in a scope"),
        ("UPDATE words SET memories = 7 WHERE word = 'word1'", "counted as a word"),
        ("UPDATE memories SET uncertainty = 3", "row 1 of memories (memory 'm0'), which is not what was written"),
        ("UPDATE memories SET metadata = '{'", "damaged"),
        ("UPDATE memories SET cell = 0", "without an encoder"),
    ],
)
def test_damage_is_found(store: MemoryStore, damage: str, told: str) -> None:
    store.add(memories(3))
    store.revise(Scope(), "m1", Change(veracity=0.7), at=1.0, reason="said")
    assert store.verify() == []
    for statement in damage.split(";"):
        if not isinstance(store.path, Path):
            statement = statement.replace("TRIGGER revisions_stay", "TRIGGER revisions_stay ON revisions")
        raw(store, statement)
    assert any(told in problem for problem in store.verify())


@pytest.mark.parametrize("text", ["moved to Lyon", "because she said so"])
def test_bytes_that_change_in_place_are_found(file_store: MemoryStore, text: str) -> None:
    """In a memory and in its history; a flipped letter leaves a valid database and valid rows."""
    store = file_store
    source = MemorySource("user", "ann", 1)
    store.add([Memory("m0", "Ann moved to Lyon", source=source, created_at=-0.0, updated_at=1, metadata={"a": "é"})])
    store.revise(Scope(), "m0", Change(veracity=1), at=2, reason="because she said so")
    store.recalled(Scope(), ["m0"])
    assert store.verify() == []
    store.scrub()
    store.close()
    file = store.path / "memories.sqlite"
    content = file.read_bytes()
    assert content.count(text.encode()) == 1
    file.write_bytes(content.replace(text.encode(), text.replace("o", "a", 1).encode()))
    with MemoryStore.open(store.path) as opened:
        [problem] = opened.verify()
    assert "memory 'm0'), which is not what was written" in problem
