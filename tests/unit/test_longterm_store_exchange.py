"""Memories out of a store and into another one, old files, and what deleted memories leave behind."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ewe.errors import DatastoreError, InvalidRequestError
from ewe.longterm.records import Memory, MemorySource, Revision, Scope
from ewe.longterm.store import Change, MemoryStore, erase_from_export, export_jsonl, import_jsonl
from tests.unit.longterm_parts import SHARED, WordEncoder, impatient, memories, new_store

ANN, BOB = Scope("ann"), Scope("bob", "helper")


@pytest.fixture
def store(new_place: Callable[[], Any]):
    with new_store(new_place()) as created:
        yield created


@pytest.fixture
def file_store(tmp_path: Path):
    with new_store(tmp_path / "store") as created:
        yield created


@pytest.fixture
def other(new_place: Callable[[], Any]):
    with new_store(new_place()) as created:
        yield created


def filled(store: MemoryStore) -> MemoryStore:
    source = MemorySource("user", "ann\n", 0.3)
    store.add([Memory("x", "tea\n𝄞", "fact", source, ANN, {"a": "b"}, 1.0, 2.0, contradicts=("m0",))])
    store.add(memories(3, BOB))
    store.revise(ANN, "x", Change(veracity=0.9, content="coffee"), at=3.0, reason="said", evidence=["m1", "heard"])
    store.delete(BOB, ["m1"], at=4.0, reason="asked")
    return store


def contents(store: MemoryStore) -> list[object]:
    return [(memory, store.history(memory.scope, memory.id)) for memory in store.scan()]


def test_an_export_imports_whole(store: MemoryStore, other: MemoryStore, tmp_path: Path) -> None:
    assert export_jsonl(filled(store), tmp_path / "out.jsonl") == 3
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600
    with new_store(tmp_path / "copy") as copy:
        for one in (copy, other):  # a folder, and one like it came from
            for added in (3, 0):
                report = import_jsonl(one, tmp_path / "out.jsonl")
                assert (report.result.added, report.result.duplicates, report.deleted_here) == (added, 3 - added, 0)
            assert contents(one) == contents(store)
            assert one.deletions() == store.deletions()
            assert one.verify() == []
    export_jsonl(other, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()


def test_an_export_of_one_scope_holds_nothing_of_another(store: MemoryStore, tmp_path: Path) -> None:
    export_jsonl(filled(store), tmp_path / "out.jsonl", [ANN])
    text = (tmp_path / "out.jsonl").read_text()
    assert "coffee" in text
    assert not any(other in text for other in ("bob", "helper", "word0", "asked"))


def test_what_was_deleted_here_does_not_come_back_from_an_old_copy(store: MemoryStore, tmp_path: Path) -> None:
    export_jsonl(filled(store), tmp_path / "old.jsonl")
    store.delete(ANN, ["x"], at=9.0, reason="asked")
    report = import_jsonl(store, tmp_path / "old.jsonl")
    assert (report.result.added, report.deleted_here) == (0, 1)
    assert store.find(ANN, "x") is None
    store.add([Memory("x", "tea again", scope=ANN, created_at=10.0)])
    store.revise(ANN, "x", Change(), at=11.0, reason="looked at")
    export_jsonl(store, tmp_path / "new.jsonl")
    with new_store(tmp_path / "copy") as copy:
        copy.note_deletions(store.deletions())
        assert import_jsonl(copy, tmp_path / "new.jsonl").result.added == 3


def test_a_conflict_is_told_and_changes_nothing(store: MemoryStore, tmp_path: Path) -> None:
    export_jsonl(filled(store), tmp_path / "out.jsonl")
    with new_store(tmp_path / "copy") as copy:
        copy.add([Memory("x", "mine", scope=ANN)])
        assert import_jsonl(copy, tmp_path / "out.jsonl").result.conflicts == ((ANN, "x"),)
        assert copy.get(ANN, "x").content == "mine"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("not json", "line 2"),
        ("[]", "line 2"),
        ('{"memory": {"id": "x", "content": "y"}}', "'revisions' is missing"),
        ('{"memory": {"id": "x", "content": "y", "veracity": 7}, "revisions": []}', r"veracity must lie in \[0, 1\]"),
        ('{"memory": {"id": "x", "content": "y", "nose": 7}, "revisions": []}', "no memory.*nose"),
        ('{"memory": {"id": "x", "content": "y", "contradicts": "z"}, "revisions": []}', "list of texts"),
        ('{"memory": {"id": "x", "content": "y", "metadata": {"a": 1}}, "revisions": []}', "must be a string"),
        ('{"memory": {"id": "x", "content": "y", "metadata": [1]}, "revisions": []}', "no memory"),
        ('{"memory": {"id": "x", "content": "\\ud800"}, "revisions": []}', "surrogate"),
        ('{"memory": {"id": "x", "content": "y"}, "revisions": [{"number": 1}]}', "no revision"),
        ('{"deletion": {"at": "now", "scope": {}, "memory_id": "x", "reason": "y"}}', "line 2"),
    ],
)
def test_a_line_that_is_no_memory_is_named(store: MemoryStore, tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"format": "ewe-memories", "version": 1}\n' + line + "\n")
    with pytest.raises(InvalidRequestError, match=f"(?s)line 2.*{told}|{told}"):
        import_jsonl(store, path)
    assert len(store) == 0


def test_other_files_and_gaps_are_refused(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text('{"format": "ewe-memories", "version": 2}\n')
    with pytest.raises(InvalidRequestError, match="must begin with"):
        import_jsonl(store, path)
    with pytest.raises(DatastoreError, match="No such file"):
        import_jsonl(store, tmp_path / "nothing")
    memory = Memory("x", "tea")
    for numbers in ((), (2,), (1, 3), (1, 1)):
        revisions = [Revision("x", number, 1.0, "r", 0.5, 0.5) for number in numbers]
        with pytest.raises(InvalidRequestError, match="without a gap"):
            store.restore([(memory, revisions)])
    with pytest.raises(InvalidRequestError, match="its own"):
        store.restore([(memory, [Revision("y", 1, 1.0, "r", 0.5, 0.5)])])


@pytest.fixture
def on_disk(request: pytest.FixtureRequest):
    """Everything that the files of a store hold."""

    def read(store: MemoryStore) -> bytes:
        if isinstance(store.path, str):
            return request.getfixturevalue("postgres").files(store.path)
        return b"".join(path.read_bytes() for path in store.path.iterdir() if path.is_file())

    return read


def test_nothing_of_what_was_deleted_is_left_on_the_disk(
    store: MemoryStore, on_disk: Callable[[MemoryStore], bytes]
) -> None:
    """Many sizes, so that rows move between pages, which leaves traces that only a rewrite takes away."""
    lots = 8 if isinstance(store.path, Path) else 2
    for lot in range(lots):
        store.add(
            Memory(f"id-{lot}-{i}", f"content zqx{lot}x{i}x " + "filler " * (i * 37 % 90), scope=Scope(f"user{i % 7}"))
            for i in range(40)
        )
        for user in range(7):
            gone = [f"id-{lot}-{i}" for i in range(40) if i % 3 and i % 7 == user]
            store.revise(Scope(f"user{user}"), gone[0], Change(content="other words"), at=1.0, reason="said")
            store.delete(Scope(f"user{user}"), gone, at=2.0, reason="asked")
    assert store.stats()["deleted_and_not_scrubbed"] == sum(1 for i in range(40) if i % 3) * lots
    impatient(store)
    with MemoryStore.open(store.path) as reader, reader.snapshot(), pytest.raises(DatastoreError, match="scrub again"):
        store.scrub()
    store.scrub()
    assert store.stats()["deleted_and_not_scrubbed"] == 0
    left = on_disk(store)
    for lot in range(lots):
        for i in range(40):
            assert (f"zqx{lot}x{i}x".encode() in left) == (i % 3 == 0), f"content zqx{lot}x{i}x"
    assert store.verify() == []


def test_what_is_deleted_during_a_scrub_counts_as_not_scrubbed(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(memories(3))
    store.delete(SHARED, ["m0"], at=1.0, reason="asked")
    rewrite = store._session.rewrite

    def late() -> bool:
        done = rewrite()
        store.delete(SHARED, ["m1"], at=2.0, reason="asked")
        return done

    with monkeypatch.context() as during:
        during.setattr(store._session, "rewrite", late)
        store.scrub()
    assert store.stats()["deleted_and_not_scrubbed"] == 1
    store.scrub()
    assert store.stats()["deleted_and_not_scrubbed"] == 0


def test_an_erased_user_is_in_no_file_under_any_agent(
    store: MemoryStore, on_disk: Callable[[MemoryStore], bytes], tmp_path: Path
) -> None:
    """Words, vectors, histories and the log, with what was deleted before; the others keep all they had."""
    encoder = WordEncoder()
    agents = ("", "helper", "clerk")
    secrets = [f"zqx{agent or 'alone'}secret" for agent in agents]
    for agent, secret in zip(agents, secrets, strict=True):
        scope = Scope("anneliese", agent)
        store.add(
            Memory(f"{secret}-{i}", f"{secret} number {i} " + "filler " * (i * 37 % 90), scope=scope) for i in range(40)
        )
        store.add([Memory(f"m{i}", f"tea {agent} {i}", scope=Scope("bob", agent)) for i in range(20)])
        store.embeddings.embed(encoder)
        store.revise(scope, f"{secret}-1", Change(content=f"{secret} revised"), at=1.0, reason=secret)
        store.delete(scope, [f"{secret}-2"], at=2.0, reason=secret)
    export_jsonl(store, tmp_path / "old.jsonl")
    others = [one for one in store.scan() if one.scope.user == "bob"]
    assert all(secret.encode() in on_disk(store) for secret in secrets)

    parts = store.erase("anneliese", at=3.0, reason="asked")
    store.scrub()
    assert [(part.scope.agent, part.memories, part.revisions, part.log) for part in parts] == [
        ("", 39, 40, 1), ("clerk", 39, 40, 1), ("helper", 39, 40, 1)
    ]  # fmt: skip
    assert all(part.words > 39 and part.vectors >= 38 for part in parts)
    left = on_disk(store)
    assert not [text for text in (*secrets, "anneliese") if text.encode() in left]
    if isinstance(store.path, Path):
        vectors = np.fromfile(next(store.path.glob("vectors-*.f32")), dtype="<f4").reshape(-1, encoder.dimension)
        assert np.count_nonzero(vectors.any(axis=1)) == 60
    assert list(store.scan()) == others
    assert store.verify() == []

    assert import_jsonl(store, tmp_path / "old.jsonl").deleted_here == 3 * 39
    assert store.scopes() == {Scope("bob", agent): 20 for agent in sorted(agents)}
    assert [entry.memory_id for entry in store.deletions()] == ["*"]
    store.add([Memory("new", "tea again", scope=Scope("anneliese"), created_at=9.0)])
    assert not store.was_deleted(store.get(Scope("anneliese"), "new"))
    with pytest.raises(InvalidRequestError, match="name the user"):
        store.erase("", at=4.0, reason="asked")


def test_what_an_erased_user_said_of_others_memories_no_longer_names_them(
    store: MemoryStore, on_disk: Callable[[MemoryStore], bytes], tmp_path: Path
) -> None:
    """As a source, and as a voice in histories, of shared memories and of another user's; an export names nobody."""
    said, bobs = MemorySource("user", "anneliese", 0.8), Scope("bob")
    store.add([Memory("a", "tea is hot", source=said), Memory("b", "wine is red", source=said, scope=bobs)])
    store.add([Memory("own", "my tea", source=said, scope=Scope("anneliese"))])
    store.add([Memory("c", "water is wet", source=MemorySource("user", "carl"))])
    for scope, memory_id in ((Scope(), "c"), (bobs, "b"), (Scope(), "a")):
        evidence = ["feedback:user:anneliese:correct", "passage:p"]
        store.revise(scope, memory_id, Change(veracity=0.6), at=1.0, reason="feedback", evidence=evidence)
    before = {(one.scope, one.id): one for one in store.scan()}
    assert before[Scope(), "a"].source == said
    assert store.history(Scope(), "c")[1].evidence == ("feedback:user:anneliese:correct", "passage:p")
    assert b"anneliese" in on_disk(store)

    export_jsonl(store, tmp_path / "before.jsonl")
    assert erase_from_export(tmp_path / "before.jsonl", "anneliese") == 1
    assert b"anneliese" not in (tmp_path / "before.jsonl").read_bytes()
    with MemoryStore.create(tmp_path / "taken out") as taken_out:
        assert import_jsonl(taken_out, tmp_path / "before.jsonl").result.added == 3
        assert taken_out.get(Scope(), "c") == before[Scope(), "c"]

    store.erase("anneliese", at=3.0, reason="asked")
    store.scrub()
    export_jsonl(store, tmp_path / "after.jsonl")
    assert b"anneliese" not in on_disk(store) + (tmp_path / "after.jsonl").read_bytes()
    after = {(one.scope, one.id): one for one in store.scan()}
    assert after.keys() == before.keys() - {(Scope("anneliese"), "own")}
    assert after[Scope(), "c"] == before[Scope(), "c"]
    voice = after[Scope(), "a"].source.id
    assert voice.startswith("voice-")
    assert voice != after[bobs, "b"].source.id  # nothing tells that it was one person in two scopes
    assert store.history(Scope(), "c")[1].evidence == (f"feedback:user:{voice}:correct", "passage:p")
    assert after[Scope(), "a"] == replace(before[Scope(), "a"], source=replace(said, id=voice))
    assert store.verify() == []

    store.revise(Scope(), "a", Change(veracity=0.7), at=4.0, reason="said")
    store.add([Memory("new", "tea again", source=said)])
    found = {one.id: one.source.id for one in store.scan([Scope()])}
    assert found == {"a": voice, "c": "carl", "new": "anneliese"}
    with MemoryStore.create(tmp_path / "copy") as copy:
        import_jsonl(copy, tmp_path / "after.jsonl")
        assert copy.get(Scope(), "a").source.id == voice


def test_damaged_and_foreign_files_are_refused_by_name(file_store: MemoryStore, tmp_path: Path) -> None:
    store = file_store
    store.add(memories(200))
    store.close()
    file = store.path / "memories.sqlite"
    good = file.read_bytes()
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE memories (id)")
    connection.close()
    for content, told in (
        (b"", "no datastore, or damaged"),
        (good[: len(good) // 2], "cut short"),
        (good[:60] + (99).to_bytes(4, "big") + good[64:], "schema version 99.*update"),
        (good[:60] + (3).to_bytes(4, "big") + good[64:], "schema version 3.*import them here"),
        (other.read_bytes(), "no memory store of this engine"),
    ):
        file.write_bytes(content)
        for read_only in (True, False):
            with pytest.raises(DatastoreError, match=rf"memories\.sqlite.*{told}"):
                MemoryStore.open(store.path, read_only=read_only)
    with pytest.raises(DatastoreError, match="holds no memory store"):
        MemoryStore.open(tmp_path / "nothing", read_only=False)
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(DatastoreError, match="holds a memory store already"):
        MemoryStore.create(store.path)


def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with new_store(tmp_path / "store") as store:
            store.add(memories(2))
            store.embeddings.embed(WordEncoder())
            files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store.path.iterdir()}
    finally:
        os.umask(before)
    del files["writer.lock"]  # it is empty
    assert set(files.values()) == {0o600}, files
    assert {"memories.sqlite", "memories.sqlite-wal", "vectors-1.f32"} <= set(files)


def test_a_line_of_json_is_what_the_guide_says(store: MemoryStore, tmp_path: Path) -> None:
    store.add([Memory("x", "tea", scope=ANN)])
    export_jsonl(store, tmp_path / "out.jsonl")
    header, line = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert header == {"format": "ewe-memories", "version": 1}
    assert set(line) == {"memory", "revisions"}
    assert (line["memory"]["scope"], line["revisions"][0]["reason"]) == ({"user": "ann", "agent": ""}, "added")
