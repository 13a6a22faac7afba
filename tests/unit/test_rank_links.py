"""Workers that end, fall silent or never come are noticed, and torchrun's processes find rank 0 and nobody else."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest
from torch import distributed

from ewe.config import Config, ModelConfig
from ewe.engine.distributed import executor, torchrun
from ewe.engine.distributed import link as links
from ewe.engine.distributed.link import BEAT_S, SILENT_S, Link
from ewe.engine.startup.preflight import preflight
from ewe.errors import ConfigError, EngineDeadError

LONG = 60.0


class Clock:
    """Stands in for the time in seconds."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(links, "time", clock)
    return clock


@pytest.fixture
def ends() -> Iterator[tuple[Link, socket.socket]]:
    own, other = socket.socketpair()
    with own, other:
        yield Link(1, own), other


def look_for(seconds: float, link: Link, clock: Clock) -> str:
    """What is seen by looking twice per beat for as long."""
    for _ in range(int(2 * seconds / BEAT_S)):
        clock.now += BEAT_S / 2
        if words := link.death()[1]:
            return words
    return ""


def test_a_worker_counts_as_dead_when_its_signs_of_life_stay_away(
    ends: tuple[Link, socket.socket], clock: Clock
) -> None:
    link, worker = ends
    assert look_for(3 * SILENT_S, link, clock) == ""  # it is loading
    worker.sendall(b".")
    assert look_for(SILENT_S, link, clock) == ""
    worker.sendall(b".")
    assert look_for(SILENT_S, link, clock) == ""
    assert look_for(2 * BEAT_S, link, clock) == "has given no sign of life for 8 s"


def test_a_pause_of_rank_0_itself_is_not_held_against_a_worker(ends: tuple[Link, socket.socket], clock: Clock) -> None:
    link, worker = ends
    worker.sendall(b".")
    assert link.death()[1] == ""
    clock.now += 1000
    assert link.death()[1] == ""


def test_a_worker_that_hangs_up_has_ended(ends: tuple[Link, socket.socket]) -> None:
    link, worker = ends
    worker.sendall(b".")
    link.wait_for_first()
    assert link.death()[1] == ""
    worker.close()
    assert link.death()[1] == "has ended (its own output says why)"


def test_a_worker_that_does_not_come_is_named(
    ends: tuple[Link, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "TO_COME_S", 0.01)
    with pytest.raises(EngineDeadError, match="the process of rank 1 did not start within"):
        ends[0].wait_for_first()


def test_what_waits_to_send_to_a_worker_that_does_not_read_fails_when_it_is_cut_off(
    ends: tuple[Link, socket.socket],
) -> None:
    link, _ = ends
    failed = threading.Event()

    def send() -> None:
        try:
            while True:
                link.send(bytes(1 << 20))
        except OSError:
            failed.set()

    thread = threading.Thread(target=send)
    thread.start()
    link.cut()
    thread.join(LONG)
    assert failed.is_set()


def test_workers_that_come_before_they_are_waited_for_have_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "TO_COME_S", 1.0)  # in which nothing more comes
    pairs = [socket.socketpair() for _ in range(3)]
    found = [Link(rank, own) for rank, (own, _) in enumerate(pairs, 1)]
    store = distributed.HashStore()
    monkeypatch.setattr(executor, "is_started_by_torchrun", lambda: True)
    monkeypatch.setattr(executor, "meet_workers", lambda: (store, found))
    waiting = object.__new__(executor.Executor)
    waiting._lock, waiting._death, waiting._parts = threading.Lock(), "", 4
    for _, worker in pairs:
        worker.sendall(b".")
    assert waiting._meet_workers() is store
    pairs[1][1].close()
    pairs[0][1].sendall(b".")
    pairs[2][1].sendall(b".")
    with pytest.raises(EngineDeadError, match=r"rank 2 .of 4. has ended"):
        waiting._meet_workers()
    for end in (end for pair in pairs for end in pair):
        end.close()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Rank 0 of two processes that torchrun has started."""
    values = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "RANK": "0"}
    for name, value in (values | {"MASTER_ADDR": "localhost", "MASTER_PORT": "1"}).items():
        monkeypatch.setenv(name, value)
    store = distributed.HashStore()
    monkeypatch.setattr(torchrun, "_rendezvous", lambda: (store, int(os.environ["RANK"]), 2))
    return monkeypatch


def test_as_many_processes_as_parts(started: pytest.MonkeyPatch) -> None:
    preflight(Config().override(["model.tensor_parallel=2"]))
    preflight(Config())  # one engine in every process
    with pytest.raises(ConfigError, match=r"torchrun has started 2 processes .*model.tensor_parallel is 4"):
        preflight(Config().override(["model.tensor_parallel=4"]))


def test_rank_0_takes_calls_from_its_own_workers_only(started: pytest.MonkeyPatch) -> None:
    found: list[Link] = []
    rank_0 = threading.Thread(target=lambda: found.extend(torchrun.meet_workers()[1]))
    rank_0.start()
    store, _, _ = torchrun._rendezvous()
    port = int(store.get(torchrun._ADDRESS).decode()[64:])
    for said in (b"", b"GET / HTTP/1.1\r\n", bytes(36)):
        with socket.create_connection(("localhost", port), LONG) as stranger:
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(1) == b""  # turned away
    with torchrun._reach_rank_0(store, 1) as worker:
        rank_0.join(LONG)
        [link] = found
        assert link.rank == 1
        link.send(b"work")
        assert worker.recv(4) == b"work"
        link.close()
    with pytest.raises(ConfigError, match="have ended with their first model"):
        torchrun.meet_workers()


def test_the_other_processes_work_for_rank_0_until_it_is_over(started: pytest.MonkeyPatch) -> None:
    served = []

    def serve(*arguments: object) -> None:
        served.append(arguments[2:])
        raise SystemExit

    started.setattr("ewe.engine.distributed.worker.serve", serve)
    rank_0 = threading.Thread(target=torchrun.meet_workers)
    rank_0.start()
    started.setenv("RANK", "1")
    with pytest.raises(SystemExit):
        torchrun.follow_rank_0(ModelConfig(name="here", tensor_parallel=2))
    rank_0.join(LONG)
    assert served == [(1, 2, "here")]


def test_processes_that_do_not_find_each_other_say_where_they_looked(started: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise distributed.DistNetworkError("timed out")

    started.setattr(torchrun, "_rendezvous", fail)
    with pytest.raises(ConfigError, match=r"timed out .rank 0 is looked for at localhost, which all machines"):
        torchrun.meet_workers()
