"""A writer that is killed with -9 again and again loses nothing that it acknowledged, and leaves nothing half done."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ewe.longterm.store import MemoryStore
from tests.unit.longterm_crash_child import State, expected
from tests.unit.longterm_parts import WordEncoder

ROOT = Path(__file__).parents[2]


def test_a_killed_writer_loses_nothing_acknowledged(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, rounds=3)


@pytest.mark.slow
def test_a_writer_that_is_killed_a_hundred_times_loses_nothing_acknowledged(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, rounds=100)


def kill_again_and_again(folder: Path, rounds: int) -> None:
    store = folder / "store"
    MemoryStore.create(store).close()
    state: State = {"memories": {}, "deleted": []}
    step, draw = 0, random.Random(rounds)
    for _ in range(rounds):
        last = step + draw.randrange(1, 40)
        command = [sys.executable, "-m", "tests.unit.longterm_crash_child", str(store), "seed", str(step)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            for line in child.stdout:
                if int(line) >= last:
                    child.kill()  # in the middle of a later step
                    break
            acknowledged = [int(line) for line in child.stdout.read().split()]
        for done in range(step, max([last, *acknowledged]) + 1):
            state = expected(state, "seed", done)
        step = max([last, *acknowledged]) + 1
        found = what_is_there(store)
        if found != state:  # the step that was not acknowledged may be whole, but nothing else
            state = expected(state, "seed", step)
            step += 1
        assert found == state


def what_is_there(folder: Path) -> State:
    """The state of a store that opens, is sound, and whose file of vectors holds what it should and nothing else."""
    with MemoryStore.open(folder, read_only=False) as store:
        assert store.verify() == []
        memories = {
            memory.id: (
                memory.content,
                memory.veracity,
                [revision.reason for revision in store.history(memory.scope, memory.id)],
            )
            for memory in store.scan()
        }
        embedded = dict(store._session.query("SELECT number, content FROM memories WHERE cell IS NOT NULL"))
        waiting = {number for (number,) in store._session.query("SELECT number FROM memories WHERE cell IS NULL")}
        for file in folder.glob("vectors-*"):
            check_vectors(np.fromfile(file, dtype=np.float32).reshape(-1, 24), embedded, waiting)
        return {"memories": memories, "deleted": [entry.memory_id for entry in store.deletions()]}


def check_vectors(stored: np.ndarray, embedded: dict[int, str], waiting: set[int]) -> None:
    numbers = list(embedded)
    np.testing.assert_array_equal(stored[numbers], WordEncoder().encode_queries([embedded[n] for n in numbers]))
    gone = [number for number in range(len(stored)) if number not in embedded and number not in waiting]
    assert not stored[gone].any()
