"""Bits that flip on the disk: what is read is what was written, or an error names it; what can be is mended."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ewe.errors import DatastoreError
from ewe.longterm.memory_search import MemorySearch
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.store import Change, MemoryStore
from tests.unit.longterm_parts import WordEncoder, memories, new_store, raw

ANN, BOB = Scope("ann"), Scope("bob")
Read = Callable[[MemoryStore], Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with new_store(tmp_path / "store") as store:
        store.add([*memories(5, ANN), *memories(2, BOB), Memory("s", "shared tea", source=MemorySource("user", "ann"))])
        store.revise(ANN, "m1", Change(veracity=0.7), at=1.0, reason="said", evidence=["feedback:user:ann:correct"])
        store.recalled(ANN, ["m1"])
        store.delete(ANN, ["m4"], at=2.0, reason="asked for")
        store.embeddings.embed(WordEncoder())
        store.scrub()
    return tmp_path / "store"


def damage(folder: Path, *statements: str) -> None:
    connection = sqlite3.connect(folder / "memories.sqlite")
    for statement in (
        "DROP TRIGGER revisions_stay_as_they_are",
        "DROP TRIGGER deletions_stay_as_they_are",
        *statements,
    ):
        connection.execute(statement)
    connection.commit()
    connection.close()


def damage_index(folder: Path, index: str, place: int, mask: int = 0) -> None:
    """Flips bits in the last byte of an index's entry, the number of a row; without a mask doubles the next entry."""
    file = folder / "memories.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        [(page,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)).fetchall()
        [(size,)] = connection.execute("PRAGMA page_size").fetchall()
    data, start, pointer = bytearray(file.read_bytes()), size * (page - 1), size * (page - 1) + 8 + 2 * place
    if mask:
        entry = start + int.from_bytes(data[pointer : pointer + 2], "big")
        data[entry + data[entry]] ^= mask
    else:
        data[pointer : pointer + 2] = data[pointer + 2 : pointer + 4]
    file.write_bytes(data)


def get(store: MemoryStore) -> object:
    return store.get(ANN, "m1")


def find(store: MemoryStore) -> object:
    return MemorySearch(store).search(["memory"], [ANN], 5)


@pytest.mark.parametrize(
    ("change", "reads", "named"),
    [
        ("memories SET content = 'memory of word7' WHERE number = 2", (get, find, lambda s: list(s.scan())), "m1"),
        ("memories SET recall_count = 5 WHERE number = 2", (get, find, lambda s: s.page([ANN], 0, 5)), "m1"),
        ("memories SET source_id = 'x' WHERE number = 2", (get, find), "m1"),
        ("memories SET observed_at = 7.0 WHERE number = 2", (get, find), "m1"),
        ("memories SET supersedes = '[\"m0\"]' WHERE number = 2", (get, find), "m1"),
        (
            "memories SET scope = 3 WHERE number = 2",
            (lambda s: list(s.scan()), lambda s: list(s.scan([Scope()]))),
            "m1",
        ),
        ("memories SET scope = 9 WHERE number = 2", (lambda s: list(s.scan()),), "m1"),
        ("memories SET veracity = x'00' WHERE number = 2", (get, find), "m1"),
        ("scopes SET user = 'anm' WHERE user = 'ann'", (lambda s: list(s.scan()), lambda s: s.scopes()), "row 1 of"),
        ("scopes SET memories = 1 WHERE user = 'ann'", (lambda s: s.scopes(), len), "row 1 of scopes"),
        ("revisions SET reason = 'sad' WHERE number = 2", (lambda s: s.history(ANN, "m1"),), "the history of row 2"),
        ("revisions SET memory = 1 WHERE memory = 2 AND number = 2", (lambda s: s.history(ANN, "m0"),), "the history"),
        ("deletions SET id = 'm3'", (lambda s: s.deletions(), lambda s: s.deletions(ANN)), "row 1 of deletions"),
        ("voices SET name = 'anm' WHERE scope = 3", (lambda s: s.get(Scope(), "s"),), "the name behind 'voice-"),
        ("voices SET pseudonym = 'voice-1' WHERE scope = 3", (lambda s: s.get(Scope(), "s"),), "the name behind"),
    ],
)
def test_what_was_not_written_is_never_returned(folder: Path, change: str, reads: tuple[Read, ...], named: str) -> None:
    damage(folder, f"UPDATE {change}")
    with MemoryStore.open(folder) as store:
        for read in reads:
            with pytest.raises(DatastoreError, match=r"memories\.sqlite is damaged at .*ewe memory check") as caught:
                read(store)
            assert named in str(caught.value)
        assert store.get(BOB, "m0").content == "memory of word0"
        assert any(named in problem for problem in store.verify())


def test_an_altered_vector_is_named_and_made_again(folder: Path) -> None:
    encoder, file = WordEncoder(), folder / "vectors-1.f32"
    query = encoder.encode_queries(["memory of word2"])[0]
    data = bytearray(file.read_bytes())
    data[4 * encoder.dimension * 3 + 2] ^= 1
    file.write_bytes(data)
    with MemoryStore.open(folder) as store:
        with pytest.raises(DatastoreError, match=r"vectors-1\.f32 .* vector of memory number 3: .*check --repair"):
            store.embeddings.search(query, store.scope_numbers([ANN]), 5)
        [problem] = store.verify()
        assert "vector of memory number 3" in problem
    with MemoryStore.open(folder, read_only=False) as store:
        assert store.mend() == ["1 vectors are given up: 'ewe memory embed' makes them again"]
        assert store.verify() == []
        assert store.embeddings.embed(encoder) == 1
        hits = store.embeddings.search(query, store.scope_numbers([ANN]), 5)
        assert hits[0][0] == 3
        assert hits[0][1] == pytest.approx(1.0)
        assert len(hits) == 4


def test_vectors_that_are_written_again_are_read_again(folder: Path) -> None:
    encoder = WordEncoder()
    with MemoryStore.open(folder, read_only=False) as store:
        numbers = store.scope_numbers([ANN])
        query = encoder.encode_queries(["quite other words"])[0]
        store.embeddings.search(query, numbers, 5)
        store.revise(ANN, "m2", Change(content="quite other words"), at=3.0, reason="said")
        store.embeddings.embed(encoder)
        assert store.embeddings.search(query, numbers, 5)[0] == (3, pytest.approx(1.0))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE words SET word = 'word2x' WHERE word = 'word2' AND scope = 1",
        "UPDATE words SET memories = 9",
        "UPDATE postings SET times = 3 WHERE memory = 2",
        "DELETE FROM postings WHERE memory = 2",
        "UPDATE scopes SET words = 0, memories = 2 WHERE user = 'ann'",
    ],
)
def test_the_index_of_words_is_mended(folder: Path, change: str) -> None:
    with MemoryStore.open(folder) as store:
        before = raw(store, "SELECT scope, word, memories FROM words ORDER BY 1, 2")
    damage(folder, change)
    with MemoryStore.open(folder, read_only=False) as store:
        assert any("is damaged" in problem for problem in store.verify())
        assert store.mend() == ["the index of words is made again from the memories"]
        assert raw(store, "SELECT scope, word, memories FROM words ORDER BY 1, 2") == before
        assert (store.verify(), store.mend(), len(store)) == ([], [], 7)
        assert len(find(store)[0]) == 4


def test_an_index_of_the_database_is_mended(folder: Path) -> None:
    damage(
        folder,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, 'IS NULL', 'IS NOT NULL') WHERE name = 'memories_without_vector'",
    )
    with MemoryStore.open(folder, read_only=False, checked=False) as store:
        assert "missing from index memories_without_vector" in store.verify()[0]
        assert store.mend() == ["the database's indexes are made again from its tables"]
        assert store.verify() == []


@pytest.mark.parametrize(
    "index", ["memories_by_cell", "sqlite_autoindex_memories_1", "sqlite_autoindex_scopes_1", "deletions_by_scope"]
)
def test_a_store_whose_index_is_damaged_is_not_opened_until_it_is_mended(folder: Path, index: str) -> None:
    with MemoryStore.open(folder, read_only=False) as store:
        store.delete(BOB, ["m1"], at=3.0, reason="asked for")
        whole = [store.scopes(), *(list(store.scan([scope])) for scope in store.scopes())]
    damage_index(folder, index, 0)
    for read_only in (True, False):
        with pytest.raises(DatastoreError, match=r"memories\.sqlite is damaged .*'ewe memory check --repair"):
            MemoryStore.open(folder, read_only)
    with MemoryStore.open(folder, read_only=False, checked=False) as store:
        assert store.mend() == ["the database's indexes are made again from its tables"]
    with MemoryStore.open(folder) as store:
        assert [store.scopes(), *(list(store.scan([scope])) for scope in store.scopes())] == whole


def test_a_damaged_schema_is_named(folder: Path) -> None:
    file = folder / "memories.sqlite"
    file.write_bytes(file.read_bytes().replace(b"memories (scope, cell)", b"memories (scope, \xcbell)"))
    with pytest.raises(DatastoreError, match=r"memories\.sqlite: it is damaged: restore it from a copy"):
        MemoryStore.open(folder)


def test_a_memory_that_an_index_leads_to_twice_or_wrongly_is_not_returned(folder: Path) -> None:
    """The file as it is when an index is damaged after the store was opened."""
    damage_index(folder, "memories_by_cell", 0)
    damage_index(folder, "sqlite_autoindex_memories_1", 1, mask=1)  # from m1, which is row 2, to row 3, which is m2
    with MemoryStore.open(folder, checked=False) as store:
        for read in (lambda: store.history(ANN, "m1"), lambda: get(store), lambda: list(store.scan([ANN]))):
            with pytest.raises(DatastoreError, match=r"memories\.sqlite is damaged"):
                read()


def test_a_damaged_memory_stays_damaged_until_it_is_deleted(folder: Path) -> None:
    damage(folder, "UPDATE memories SET content = 'memory of word7' WHERE number = 2")
    with MemoryStore.open(folder, read_only=False) as store:
        store.mend()
        [problem] = store.verify()
        assert "memory 'm1'" in problem
        with pytest.raises(DatastoreError, match="memory 'm1'"):
            store.revise(ANN, "m1", Change(veracity=0.9), at=5.0, reason="said")
        assert store.delete(ANN, ["m1"], at=5.0, reason="damaged") == 1
        assert store.verify() == []


def test_a_store_of_version_4_is_brought_up_to_date(tmp_path: Path) -> None:
    """One that version 4 wrote: ann's memory, a shared one that she told and spoke for, deletions, vectors."""
    folder, encoder = tmp_path / "store", WordEncoder()
    folder.mkdir()
    with sqlite3.connect(folder / "memories.sqlite") as connection:
        connection.executescript((Path(__file__).parent / "memories_v4.sql").read_text(encoding="utf-8"))
    connection.close()
    vectors = np.zeros((4, encoder.dimension), dtype="<f4")
    vectors[[1, 3]] = encoder.encode_passages(["Ann drinks tea", "The bridge is long"])
    vectors.tofile(folder / "vectors-1.f32")
    with MemoryStore.open(folder) as store:
        assert store.verify() == []
        tea, bridge = store.get(ANN, "tea"), store.get(Scope(), "bridge")
        assert (tea.source, tea.recall_count, tea.metadata) == (MemorySource("user", "ann", 0.8), 1, {"a": "é"})
        assert (bridge.source.id, bridge.recall_count, bridge.veracity) == ("ann", 2, 0.6)
        assert store.history(Scope(), "bridge")[1].evidence == ("feedback:user:ann:correct", "passage:p1")
        assert [entry.memory_id for entry in store.deletions()] == ["gone", "*"]
        [[hit]] = MemorySearch(store, encoder).search(["long bridge"], [Scope()], 5)
        assert hit.memory == bridge
        assert (tea.observed_at, tea.supersedes) == (None, ())
    newer = Memory("newer", "Ann drinks coffee", scope=ANN, observed_at=5.0, supersedes=("tea",))
    with MemoryStore.open(folder, read_only=False) as store:
        store.add([newer])
        assert (store.get(ANN, "newer"), store.verify()) == (newer, [])
        with pytest.raises(DatastoreError, match="never changed"):
            raw(store, "UPDATE revisions SET reason = 'x'")
