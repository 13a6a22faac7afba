"""The passage store against a plain dictionary, and what it does with damage, full disks and other processes."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ewe.errors import DatastoreError
from ewe.retrieval.ingest.datastore_info import info
from ewe.retrieval.store import PassageStore
from ewe.retrieval.store import passage_store as store_module
from ewe.types import Passage

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
PASSAGES = st.builds(
    Passage,
    id=st.sampled_from("abcdefgh"),
    text=st.sampled_from(["", "x", "y"]) | TEXT,
    title=st.sampled_from(["", "z"]),
    source=st.sampled_from(["", "s", "t"]),
    url=TEXT,
    date=TEXT,
    veracity=st.floats(0, 1),
)


def passages(count: int, first: int = 0) -> list[Passage]:
    return [Passage(f"p{i}", f"text {i}", title=f"title {i}") for i in range(first, first + count)]


@pytest.fixture
def store(tmp_path: Path):
    with PassageStore.create(tmp_path / "ds") as created:
        yield created


def database(store: PassageStore) -> Path:
    return store.folder / "passages.sqlite"


class StoreMachine(RuleBasedStateMachine):
    """Adds, removes and reopens, beside a dictionary that does the same."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = PassageStore.create(Path(self.folder.name) / "ds")
        self.model: dict[str, Passage] = {}
        self.generation = 0

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    @rule(batch=st.lists(PASSAGES, max_size=5))
    def add(self, batch: list[Passage]) -> None:
        added = duplicates = 0
        conflicts = []
        for passage in batch:
            known = self.model.get(passage.id)
            contents = {(p.title, p.text, p.source) for p in self.model.values()}
            if known is not None and known != passage:
                conflicts.append(passage.id)
            elif known is not None or (passage.title, passage.text, passage.source) in contents:
                duplicates += 1
            else:
                self.model[passage.id] = passage
                added += 1
        result = self.store.add(batch)
        assert (result.added, result.duplicates, list(result.conflicts)) == (added, duplicates, conflicts)
        self.generation += added > 0

    @rule(ids=st.lists(st.sampled_from("abcdefgh"), max_size=4))
    def remove(self, ids: list[str]) -> None:
        there = [name for name in dict.fromkeys(ids) if self.model.pop(name, None) is not None]
        assert self.store.remove(ids) == len(there)
        self.generation += bool(there)

    @rule()
    def reopen(self) -> None:
        path = self.store.folder
        self.store.close()
        self.store = PassageStore.open(path, read_only=False)

    @invariant()
    def agrees(self) -> None:
        scanned = list(self.store.scan())
        assert [passage for _, passage in scanned] == list(self.model.values())
        rowids = [rowid for rowid, _ in scanned]
        assert rowids == sorted(set(rowids))
        assert self.store.rows(rowids[::-1]) == list(self.model.values())[::-1]
        assert self.store.get(list(self.model)) == list(self.model.values())
        assert (len(self.store), self.store.generation) == (len(self.model), self.generation)
        assert self.store.verify() == []


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=8, stateful_step_count=10, deadline=None)


@given(first=st.lists(PASSAGES, unique_by=lambda p: p.id, max_size=6))
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_checksum_depends_on_rows_and_not_on_the_way_to_them(tmp_path_factory, first: list[Passage]) -> None:
    with (
        PassageStore.create(tmp_path_factory.mktemp("a") / "ds") as one,
        PassageStore.create(tmp_path_factory.mktemp("b") / "ds") as other,
    ):
        one.add(first)
        for passage in first:
            other.add([passage])
        other.add([Passage("last", "to be removed again")])
        before = other.checksum
        other.remove(["last"])
        assert one.checksum == other.checksum != before


def test_row_numbers_are_never_used_twice(store: PassageStore) -> None:
    store.add(passages(3))
    store.remove(["p2"])
    assert store.add([Passage("new", "new")]).rowids == (4,)
    with pytest.raises(DatastoreError, match="rowid 3"):
        store.rows([1, 3])


def test_readers_see_commits_and_keep_their_snapshot(store: PassageStore) -> None:
    with PassageStore.open(store.folder) as reader:
        store.add(passages(2))
        assert len(reader) == 2
        with reader.snapshot():
            store.add(passages(3, first=2))
            assert len(reader) == 2
            assert [passage.id for _, passage in reader.scan()] == ["p0", "p1"]
        assert len(reader) == 5


def test_a_snapshot_lasts_until_its_last_holder_leaves(store: PassageStore) -> None:
    store.add(passages(1))
    with PassageStore.open(store.folder) as reader, reader.snapshot():
        with reader.snapshot():
            pass
        store.add(passages(1, first=1))
        assert len(reader) == 1


def test_a_snapshot_inside_a_transaction_ends_nothing(store: PassageStore) -> None:
    with store.transaction():
        store.add(passages(2))
        with store.snapshot():
            assert len(store) == 2
        assert store.verify() == []
        store.add(passages(1, first=2))
    assert len(store) == 3
    with store.snapshot(), PassageStore.open(store.folder) as reader:
        assert len(reader) == 3


def test_one_writer_at_a_time_and_readers_cannot_write(store: PassageStore) -> None:
    with pytest.raises(DatastoreError, match="another process is writing"):
        PassageStore.open(store.folder, read_only=False)
    with PassageStore.open(store.folder) as reader, pytest.raises(DatastoreError, match="reading only"):
        reader.add(passages(1))
    with store.snapshot(), pytest.raises(DatastoreError, match="snapshot"):
        store.add(passages(1))
    store.close()
    with PassageStore.open(store.folder, read_only=False) as again:
        assert again.add(passages(1)).added == 1


def test_a_transaction_is_undone_whole(store: PassageStore) -> None:
    store.add(passages(2))
    before = store.checksum

    def fail_at_the_end() -> None:
        with store.transaction() as connection:
            store.add(passages(3, first=2))
            store.remove(["p0"])
            connection.execute("CREATE TABLE mine (x)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_at_the_end()
    assert (len(store), store.generation, store.checksum, store.verify()) == (2, 1, before, [])
    assert not store.query("SELECT 1 FROM sqlite_master WHERE name = 'mine'")


def test_large_additions_are_committed_in_parts(store: PassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_BATCH", 4)

    def stream():
        yield from passages(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.add(stream())
    assert (len(store), store.generation) == (8, 2)


def test_scan_goes_on_after_a_row_and_pages(store: PassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.retrieval.store.passage_store._PAGE", 3)
    store.add(passages(8))
    store.remove(["p4"])
    assert [rowid for rowid, _ in store.scan(2)] == [3, 4, 6, 7, 8]


def test_half_surrogates_are_refused_and_everything_else_survives(store: PassageStore) -> None:
    odd = Passage("x", "nul \0, line \r\n, \u202e, <|eot_id|>, 𝄞", url="a\0b", metadata={"a": ["é", 1, None]})
    store.add([odd])
    assert store.get(["x"]) == [odd]
    with pytest.raises(DatastoreError, match=r"'bad'.*surrogate"):
        store.add([Passage("ok", "fine"), Passage("bad", "\ud800")])
    with pytest.raises(DatastoreError, match=r"'bad'.*surrogate"):
        store.add([Passage("bad", "x", metadata={"a": "\ud800"})])
    with pytest.raises(DatastoreError, match=r"'bad': metadata must be JSON"):
        store.add([Passage("bad", "x", metadata={"a": object()})])
    assert len(store) == 1


def test_what_is_not_there_is_named(store: PassageStore) -> None:
    with pytest.raises(DatastoreError, match="'nobody'"):
        store.get(["nobody"])
    assert store.get([]) == []
    assert store.remove(["nobody"]) == 0
    assert store.generation == 0


@pytest.mark.parametrize("column", ["text", "veracity", "metadata", "digest"])
def test_a_changed_row_is_refused_by_name(store: PassageStore, column: str) -> None:
    store.add(passages(3))
    store.close()
    with sqlite3.connect(database(store)) as connection:
        connection.execute(f"UPDATE passages SET {column} = '0.5' WHERE rowid = 2")
    connection.close()
    with PassageStore.open(store.folder) as opened:
        assert opened.get(["p0"])
        for read in (lambda: opened.rows([2]), lambda: opened.get(["p1"]), lambda: list(opened.scan())):
            with pytest.raises(DatastoreError, match=r"passages\.sqlite is damaged at row 2"):
                read()
        assert "row 2" in opened.verify()[0]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM passages WHERE rowid = 1",
        "UPDATE passages SET rowid = 9 WHERE rowid = 1",
        "UPDATE state SET passages = 7",
    ],
)
def test_lost_and_renumbered_rows_are_found(store: PassageStore, statement: str) -> None:
    store.add(passages(3))
    store.close()
    with sqlite3.connect(database(store)) as connection:
        connection.execute(statement)
    connection.close()
    with PassageStore.open(store.folder) as opened:
        [problem] = opened.verify()
        assert "is damaged" in problem


@pytest.mark.parametrize("statement", ["DELETE FROM passages WHERE rowid = 1", "UPDATE state SET passages = 7"])
def test_a_scan_that_misses_rows_says_so(store: PassageStore, statement: str) -> None:
    store.add(passages(3))
    store.close()
    with closing(sqlite3.connect(database(store), isolation_level=None)) as connection:
        connection.execute(statement)
    with PassageStore.open(store.folder) as opened, pytest.raises(DatastoreError, match=r"it counts \d passages"):
        list(opened.scan())


def test_the_name_of_a_source_is_told_as_it_was_written(store: PassageStore) -> None:
    store.add(passages(3))
    store.close()
    with closing(sqlite3.connect(database(store), isolation_level=None)) as connection:
        connection.execute("UPDATE passages SET source = 'altered' WHERE rowid = 2")
    with pytest.raises(DatastoreError, match="damaged at row 2"):
        info(store.folder)


def test_damaged_and_foreign_files_are_refused_by_name(store: PassageStore, tmp_path: Path) -> None:
    store.add(passages(500))
    store.close()
    good = database(store).read_bytes()

    def refused(content: bytes, match: str) -> None:
        database(store).write_bytes(content)
        with pytest.raises(DatastoreError, match=match), PassageStore.open(store.folder) as opened:
            list(opened.scan())
        with pytest.raises(DatastoreError, match=match), PassageStore.open(store.folder, read_only=False) as opened:
            list(opened.scan())

    refused(b"", r"passages\.sqlite is no datastore, or damaged")
    refused(b"%PDF-1.7" * 100, r"passages\.sqlite is no datastore, or damaged")
    refused(good[: len(good) // 2], r"passages\.sqlite is damaged: it was cut short")
    refused(good[:8192] + b"\xff" * 16384 + good[8192 + 16384 :], r"passages\.sqlite.*damaged")
    refused(good[:60] + (99).to_bytes(4, "big") + good[64:], "schema version 99.*update the engine")
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE passages (id)")
    connection.close()
    refused(other.read_bytes(), "no datastore of this engine")
    database(store).write_bytes(good)
    with PassageStore.open(store.folder) as opened:
        assert opened.verify() == []


def test_a_missing_store_and_an_existing_one(store: PassageStore, tmp_path: Path) -> None:
    with pytest.raises(DatastoreError, match="nothing holds no datastore"):
        PassageStore.open(tmp_path / "nothing", read_only=False)
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(DatastoreError, match="holds a datastore already"):
        PassageStore.create(store.folder)
    (tmp_path / "file").write_text("x")
    with pytest.raises(DatastoreError, match="file"):
        PassageStore.create(tmp_path / "file")


def test_a_full_disk_says_so_and_loses_nothing(store: PassageStore) -> None:
    store.add(passages(10))
    (pages,) = store.query("PRAGMA page_count")[0]
    store.query(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(DatastoreError, match=r"passages\.sqlite: the disk is full: free some space"):
        store.add(Passage(f"large{i}", "x" * 4000 + str(i)) for i in range(50))
    assert (len(store), store.verify()) == (10, [])
    store.query("PRAGMA max_page_count = 100000")
    assert store.add(passages(1, first=10)).added == 1


def test_a_folder_that_cannot_be_written_can_be_read(store: PassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add(passages(3))
    store.close()
    monkeypatch.setattr("os.access", lambda path, mode: False)
    before = sorted(path.name for path in store.folder.iterdir())
    with PassageStore.open(store.folder) as opened:
        assert len(list(opened.scan())) == 3
        assert sorted(path.name for path in store.folder.iterdir()) == before


def test_threads_share_one_store(store: PassageStore) -> None:
    store.add(passages(50))
    wrong: list[object] = []

    def read(number: int) -> None:
        for i in range(50):
            name = f"p{(i * number) % 50}"
            if store.get([name])[0].id != name:
                wrong.append(name)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    store.add(passages(50, first=50))
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(store) == 100
