"""What a store in PostgreSQL adds to one in a folder: several writers, rows that a tenant cannot see, lost servers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ewe.config import Config
from ewe.errors import ConfigError, DatastoreError
from ewe.longterm.default_memory import open_or_create
from ewe.longterm.memory_search import MemorySearch
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import Change, MemoryStore
from ewe.longterm.store.checksums import checksum
from ewe.longterm.store.memory_rows import MEMORY_COLUMNS, RECALLS, SOURCE_ID
from tests.unit.longterm_parts import WordEncoder, YearJudge, impatient, memories, raw

ANN, BOB = Scope("ann"), Scope("bob", "helper")
ROOT = Path(__file__).parents[2]
OF_TENANTS = ("scopes", "voices", "memories", "revisions", "deletions", "words", "postings")


@pytest.fixture
def store(postgres: Any) -> Iterator[MemoryStore]:
    with MemoryStore.create(postgres.new_schema()) as created:
        yield created


def fill(store: MemoryStore) -> None:
    for scope in (ANN, BOB, Scope(agent="ann"), Scope()):
        store.add(
            [
                Memory("x", f"tea of {scope.user} with {scope.agent}", source=MemorySource("user", "ann"), scope=scope),
                Memory("y", "y", scope=scope),
            ]
        )
        store.delete(scope, ["y"], at=1.0, reason="asked")


def rows(store: MemoryStore, scopes: list[Scope], table: str) -> list[tuple[Any, ...]]:
    with store.seeing(scopes):
        return store._session.query(f"SELECT * FROM {table}")


def test_a_forgotten_condition_shows_nothing_of_another_tenant(store: MemoryStore) -> None:
    fill(store)
    for table in OF_TENANTS:
        everything = raw(store, f"SELECT * FROM {table}")
        parts = [rows(store, [scope], table) for scope in (ANN, BOB, Scope(agent="ann"), Scope())]
        assert all(parts), table
        assert sorted(str(row) for part in parts for row in part) == sorted(map(str, everything)), table
        assert sorted(map(str, rows(store, [ANN, Scope()], table))) == sorted(map(str, parts[0] + parts[3])), table
        assert rows(store, [Scope("ann", "helper"), Scope("carl")], table) == [], table
        assert store._session.query(f"SELECT * FROM {table}") == [], f"nobody was named: {table}"


def test_a_forgotten_condition_changes_nothing_of_another_tenant(store: MemoryStore) -> None:
    fill(store)
    before = [raw(store, f"SELECT * FROM {table} ORDER BY 1, 2") for table in OF_TENANTS]
    [(number,)] = rows(store, [BOB], "(SELECT number FROM scopes) AS numbers")
    with store.seeing([Scope("carl")]):
        for table in OF_TENANTS:
            store._session.query(f"DELETE FROM {table}")
        store._session.query("UPDATE memories SET veracity = 0")
    with pytest.raises(DatastoreError, match="row-level security"), store.seeing([ANN]):
        store._session.query("INSERT INTO words (scope, word, memories) VALUES (?, 'tea', 1)", (number,))
    assert [raw(store, f"SELECT * FROM {table} ORDER BY 1, 2") for table in OF_TENANTS] == before


def test_every_table_that_holds_something_of_a_tenant_has_a_policy(store: MemoryStore, postgres: Any) -> None:
    found = raw(
        store,
        "SELECT relname, relforcerowsecurity FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace",
    )
    assert {name for name, forced in found if not forced} == {"state", "encoder", "erasing"}


def test_whom_no_policy_binds_is_refused(store: MemoryStore) -> None:
    superuser = str(store.path).replace("ewe@", "postgres@")
    with pytest.raises(DatastoreError, match="no superuser"):
        MemoryStore.open(superuser)


def test_what_one_writer_decides_waits_for_the_other(store: MemoryStore, postgres: Any) -> None:
    """Both double a veracity that they read before; the other scope is not held up."""
    store.add([Memory("x", "tea", scope=ANN, veracity=0.1), Memory("x", "tea", scope=BOB)])

    def double(one: MemoryStore) -> None:
        veracity = one.get(ANN, "x").veracity
        one.revise(ANN, "x", Change(veracity=2 * veracity), at=1.0, reason="said")

    def write() -> None:
        with MemoryStore.open(store.path, read_only=False) as other:
            other.revise(BOB, "x", Change(veracity=0.2), at=1.0, reason="said")
            with other.transaction():
                double(other)

    writer = threading.Thread(target=write)
    with store.transaction():
        double(store)
        writer.start()
        wait_until_somebody_waits(postgres)
        with MemoryStore.open(store.path) as reader:
            assert (reader.get(ANN, "x").veracity, reader.get(BOB, "x").veracity) == (0.1, 0.2)
    writer.join()
    assert store.get(ANN, "x").veracity == pytest.approx(0.4)
    assert (len(store.history(ANN, "x")), store.verify()) == (3, [])


def wait_until_somebody_waits(postgres: Any, or_ends: threading.Thread | None = None) -> None:
    deadline = time.monotonic() + 60
    while not postgres.execute("SELECT 1 FROM pg_locks WHERE NOT granted") and (or_ends is None or or_ends.is_alive()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_encoder_that_takes_over_while_vectors_are_written_waits_for_them_or_they_are_not_kept(
    store: MemoryStore, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(memories(3, ANN))
    failed: list[BaseException] = []

    def take_over() -> None:
        try:
            with MemoryStore.open(store.path, read_only=False) as other:
                other.embeddings.embed(WordEncoder("others"), replace=True)
        except BaseException as error:
            failed.append(error)

    taking, lookup = threading.Thread(target=take_over), store._session.lookup

    def look_up(*arguments: Any) -> list[tuple[Any, ...]]:
        if taking.ident is None:
            taking.start()
            wait_until_somebody_waits(postgres, or_ends=taking)
        return lookup(*arguments)

    monkeypatch.setattr(store._session, "lookup", look_up)
    store.embeddings.embed(WordEncoder())
    taking.join()
    assert (failed, store.verify()) == ([], [])
    store.embeddings.check(WordEncoder("others"))
    assert raw(store, "SELECT count(*) FROM memories WHERE cell = 0") == [(3,)]


@pytest.mark.parametrize("replace", [False, True])
def test_vectors_are_made_while_others_write_and_nobody_waits_for_ever(
    store: MemoryStore, postgres: Any, replace: bool
) -> None:
    encoder = WordEncoder()
    store.embeddings.embed(encoder)
    store.add(memories(2, ANN))
    failed: list[BaseException] = []

    def embed() -> None:
        try:
            store.embeddings.embed(encoder, replace)
        except BaseException as error:
            failed.append(error)

    background = threading.Thread(target=embed)
    with MemoryStore.open(store.path, read_only=False) as other, other.transaction():
        other.recalled(ANN, ["m1"])
        background.start()
        wait_until_somebody_waits(postgres)
        other.recalled(ANN, ["m0"])
    background.join()
    assert not failed
    assert {memory.recall_count for memory in store.scan([ANN])} == {1}
    assert store.stats()["without_vector"] == 0


def test_a_snapshot_that_could_not_begin_leaves_nothing_open(store: MemoryStore) -> None:
    impatient(store)
    with MemoryStore.open(store.path, read_only=False) as other, other.transaction() as connection:
        connection.execute("LOCK TABLE state")
        with pytest.raises(DatastoreError, match="another process holds it"), store.snapshot():
            pass
    assert store.stats()["memories"] == 0
    assert store.add(memories(1)).added == 1


def test_where_no_server_can_be_started_tests_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    import postgres_server

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("initdb")

    monkeypatch.setattr(postgres_server.subprocess, "run", refuse)
    with pytest.raises(pytest.skip.Exception, match="no PostgreSQL can be started here"):
        next(postgres_server.started())


CHILD = """
import sys
from ewe.longterm.records import Memory, Scope
from ewe.longterm.store import Change, MemoryStore
from ewe.longterm.store.checksums import checksum
from ewe.longterm.store.memory_rows import MEMORY_COLUMNS, RECALLS, SOURCE_ID
with MemoryStore.open(sys.argv[1], read_only=False) as store:
    print("open", flush=True)
    sys.stdin.readline()
    for i in range(20):
        store.add(Memory(f"{sys.argv[2]}{i}{k}", f"tea{i} {sys.argv[2]}", scope=Scope("ann")) for k in range(3))
        store.add([Memory(f"same{i}", "same words", scope=Scope("ann"))])
        with store.transaction():
            veracity = store.get(Scope("ann"), "count").veracity
            store.revise(Scope("ann"), "count", Change(veracity=veracity + 1 / 128), at=1.0, reason=sys.argv[2])
"""


def test_two_processes_lose_nothing_and_never_number_alike(store: MemoryStore) -> None:
    store.add([Memory("count", "how often", scope=ANN, veracity=0.0)])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", CHILD, str(store.path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment, "cwd": ROOT}
    children = [subprocess.Popen([*command, name], text=True, **pipes) for name in "ab"]
    for child in children:
        assert child.stdout.readline() == "open\n"
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    assert [child.wait(60) for child in children] == [0, 0]
    for child in children:
        child.stdin.close()
        child.stdout.close()
    assert len(store) == 1 + 2 * 60 + 20
    assert store.get(ANN, "count").veracity == 40 / 128
    assert [revision.number for revision in store.history(ANN, "count")] == list(range(1, 42))
    numbers = raw(store, "SELECT number FROM memories")
    assert len(set(numbers)) == len(numbers)
    assert len(MemorySearch(store).search(["tea7"], [ANN], 20)[0]) == 6
    assert store.verify() == []


def test_two_processes_that_make_a_store_at_once_share_it(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url = postgres.new_schema()
    create = MemoryStore.create

    def late(path: str) -> MemoryStore:
        create(path).close()
        return create(path)

    monkeypatch.setattr(MemoryStore, "create", late)
    with open_or_create(url) as store:
        assert store.add(memories(1)).added == 1


@pytest.mark.slow
def test_a_server_that_was_started_again_is_found_again(store: MemoryStore, postgres: Any) -> None:
    store.add(memories(1))
    with MemoryStore.open(store.path) as reader:
        postgres.stop()
        try:
            with pytest.raises(DatastoreError, match=r"postgresql://ewe@/ewe.*cannot be reached"):
                reader.find(Scope(), "m0")
        finally:
            postgres.start()
        assert len(reader) == 1
    assert store.add(memories(1, first=1)).added == 1
    assert (len(store), store.verify()) == (2, [])


def test_a_transaction_whose_connection_is_lost_leaves_nothing(store: MemoryStore, postgres: Any) -> None:
    def add() -> None:
        with store.transaction():
            store.add(memories(1))
            lose_the_connection()
            for _ in range(2):  # not the second time either, on a new connection
                with pytest.raises(DatastoreError, match="connection was lost"):
                    store.add(memories(1, first=1))

    def look() -> None:
        with store.snapshot():
            lose_the_connection()
            with pytest.raises(DatastoreError, match="connection was lost"):
                len(store)
            len(store)

    def lose_the_connection() -> None:
        [(pid,)] = store._session.query("SELECT pg_backend_pid()")
        postgres.execute(f"SELECT pg_terminate_backend({pid}, 60000)")

    for use in (add, look):
        with pytest.raises(DatastoreError, match="connection was lost"):
            use()
        assert len(store) == 0
    assert store.add(memories(1)).added == 1


class MeetingJudge(YearJudge):
    """Answers for the first time when another writer has looked, too."""

    def __init__(self, meeting: threading.Barrier) -> None:
        self.meeting, self.met = meeting, False

    def judge(self, pairs: Any) -> Any:
        if not self.met:
            self.met = True
            self.meeting.wait(300.0)
        return super().judge(pairs)


def test_contradicting_memories_of_two_writers_find_each_other(store: MemoryStore) -> None:
    store.add([Memory("green", "The bridge is green", scope=ANN)])
    meeting, added = threading.Barrier(2), dict[str, Memory]()

    def add(year: str) -> None:
        with MemoryStore.open(store.path, read_only=False) as own:
            service = MemoryService(own, judge=MeetingJudge(meeting))
            added[year] = service.add(f"The bridge opened in {year}", ANN, MemorySource("user", year, 0.7))

    threads = [threading.Thread(target=add, args=(year,)) for year in ("1932", "1923")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300.0)
    one, other = added["1932"], added["1923"]
    assert store.get(ANN, one.id).contradicts == (other.id,)
    assert store.get(ANN, other.id).contradicts == (one.id,)


@pytest.mark.parametrize(
    "url", ["postgresql://ann:geheim@db/memories", "postgres://db/memories?user=ann&password=geheim"]
)
def test_a_url_with_a_password_is_refused_without_repeating_it(url: str) -> None:
    for use in (MemoryStore.open, open_or_create, lambda path: Config.from_mapping({"longterm": {"path": path}})):
        with pytest.raises(ConfigError, match="PGPASSWORD") as refused:
            use(url)
        assert "geheim" not in str(refused.value)


def test_other_databases_are_refused_by_name(store: MemoryStore, postgres: Any) -> None:
    with pytest.raises(DatastoreError, match="holds a memory store already"):
        MemoryStore.create(store.path)
    with pytest.raises(DatastoreError, match="holds no memory store"):
        MemoryStore.open(postgres.new_schema())
    raw(store, "UPDATE state SET version = 99")
    with pytest.raises(DatastoreError, match="schema version 99"):
        MemoryStore.open(store.path)


def test_what_a_database_lacks_is_told(postgres: Any) -> None:
    postgres.execute("CREATE DATABASE bare OWNER ewe", database="postgres")
    url = f"postgresql://ewe@/bare?host={postgres.folder}"
    with pytest.raises(DatastoreError, match="the extension vector"):
        MemoryStore.create(url)
    assert not MemoryStore.exists(url)


def test_large_scopes_have_an_index_of_their_own(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.longterm.store.postgres_vectors.WHOLE_LIMIT", 50)
    encoder = WordEncoder(dimension=64)
    store.add(Memory(str(i), f"word{i} word{i // 2} word{i // 3}", scope=ANN) for i in range(200))
    store.add(memories(3, BOB))
    store.embeddings.embed(encoder)
    [ann] = store.scope_numbers([ANN])
    assert store.embeddings.index._indexes() == [(f"vectors_of_{ann}", ann, True)]
    [query] = encoder.encode_queries(["word7"])
    vectors = encoder.encode_passages([memory.content for memory in store.scan([ANN])])
    best = np.sort(vectors @ query)[::-1]
    with store.seeing([ANN]):
        store._session.query("SET LOCAL enable_sort = off")
        store._session.query("SET LOCAL enable_seqscan = off")
        plan = str(store._session.query(f"EXPLAIN {searched(ann)}"))
        found = store.embeddings.search(query, [ann], 10)
    assert f"vectors_of_{ann}" in plan
    np.testing.assert_allclose([product for _, product in found], best[:10], rtol=1e-5)
    raw(store, "CREATE INDEX vectors_of_1_ccnew ON memories (number)")  # as REINDEX names what it has begun
    store.embeddings.embed(WordEncoder("others"), replace=True)
    assert store.embeddings.index._indexes() == [(f"vectors_of_{ann}", ann, True)]
    [(definition,)] = raw(store, f"SELECT pg_get_indexdef('vectors_of_{ann}'::regclass)")
    assert "vector(24)" in definition


def searched(scope: int) -> str:
    """As `PostgresVectors.search` asks."""
    vector = f"'{[0.5] * 64}'::vector"
    return (
        f"SELECT number FROM memories WHERE scope = {scope} AND cell = 0 "
        f"ORDER BY embedding::vector(64) <#> {vector} FETCH FIRST 10 ROWS WITH TIES"
    )


def test_tables_of_version_1_are_brought_up_to_date(postgres: Any) -> None:
    """Made from today's: what they did not have is taken away, names stand in the rows."""
    url = postgres.new_schema()
    with MemoryStore.create(url) as store:
        said = MemorySource("user", "ann", 0.8)
        store.add([Memory("a", "tea", source=said, scope=ANN), Memory("b", "wine", source=said), Memory("c", "c")])
        store.recalled(ANN, ["a"])
        store.delete(Scope(), ["c"], at=1.0, reason="asked")
        store.revise(Scope(), "b", Change(veracity=0.7), at=2.0, reason="said", evidence=["passage:p"])
        before = [(one, store.history(one.scope, one.id)) for one in store.scan()], store.deletions(), store.scopes()
        with store.transaction() as connection, store.seeing(None):
            for number, *values in raw(store, f"SELECT number, {MEMORY_COLUMNS} FROM memories"):
                values[SOURCE_ID] = "ann"
                old = checksum([*values[:RECALLS], *values[RECALLS + 1 : -2]])
                connection.execute(
                    "UPDATE memories SET source_id = 'ann', checksum = ? WHERE number = ?", (old, number)
                )
            for statement in (
                "DROP TABLE voices",
                "ALTER TABLE scopes DROP checksum",
                "ALTER TABLE deletions DROP checksum",
                "ALTER TABLE memories DROP observed_at",
                "ALTER TABLE memories DROP supersedes",
                "UPDATE state SET version = 1",
            ):
                connection.execute(statement)
    for _ in range(2):
        with MemoryStore.open(url) as store:
            found = [(one, store.history(one.scope, one.id)) for one in store.scan()], store.deletions(), store.scopes()
            assert (found, store.verify()) == (before, [])
            assert {name for (name,) in raw(store, "SELECT source_id FROM memories")}.isdisjoint({"ann"})
