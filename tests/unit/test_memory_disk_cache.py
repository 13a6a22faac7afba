"""The disk cache of units: never larger than its bound, the least recently used go first, whoever else writes."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections import OrderedDict
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from ewe.engine.units.disk_cache import DiskCache


def content(number: int) -> torch.Tensor:
    return torch.full((7 * number,), number, dtype=torch.uint8)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


@examples(15, 40)
@given(
    capacity=st.sampled_from([0, 20, 60, 100]),
    steps=st.lists(st.tuples(st.sampled_from("gppk"), st.integers(1, 6), st.integers(0, 1)), min_size=12, max_size=25),
)
@example(capacity=60, steps=[("p", 2, 0), ("p", 3, 1), ("g", 2, 1), ("p", 4, 0)])
def test_it_is_bounded_and_the_least_recently_used_goes(capacity: int, steps: list[tuple[str, int, int]]) -> None:
    model = OrderedDict[int, int]()
    with TemporaryDirectory() as name:
        folder = Path(name)
        caches = [DiskCache(folder, capacity), DiskCache(folder, capacity)]
        for step, number, process in steps:
            if step == "g":
                found = caches[process].get(str(number))
                assert (found is not None) == (number in model)
                if found is not None:
                    assert torch.equal(found, content(number))
                    model.move_to_end(number)
            elif step == "k":
                (folder / "partial").write_bytes(bytes(5))  # of a process that was killed
                continue
            else:
                caches[process].put(str(number), content(number))
                if 7 * number <= capacity:
                    model.pop(number, None)
                    model[number] = 7 * number
                    while sum(model.values()) > capacity:
                        model.popitem(last=False)
                    assert size_of(folder) <= capacity
            kept = {path.name for path in folder.iterdir()} - {"lock", "partial"}
            assert kept == {str(number) for number in model}


def test_a_writer_waits_for_the_one_that_writes(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 50)
    cache.put("a", content(1))
    writer = threading.Thread(target=cache.put, args=("b", content(2)))
    with DiskCache(tmp_path, 50)._locked():  # as another process has it
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
        assert cache.get("b") is None
    writer.join()
    assert cache.get("b") is not None


def test_several_writers_keep_the_bound(tmp_path: Path) -> None:
    def write(first: int) -> None:
        cache = DiskCache(tmp_path, 50)
        for number in range(20):
            cache.put(str(first + number % 5), content(1 + number % 5))

    threads = [threading.Thread(target=write, args=(first,)) for first in (0, 2, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < size_of(tmp_path) <= 50


def test_what_was_given_out_stays_when_it_makes_room(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 20)
    cache.put("a", content(2))
    found = cache.get("a")
    cache.put("b", content(2))
    assert cache.get("a") is None
    assert found is not None
    assert torch.equal(found, content(2))


def test_a_disk_that_refuses_is_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file", 100)
    with caplog.at_level(logging.WARNING):
        for number in (1, 2):
            cache.put(str(number), content(number))
            assert cache.get(str(number)) is None
    [record] = caplog.records
    assert "not kept on this disk" in record.getMessage()


def test_a_file_that_cannot_be_whole_leaves_the_old_ones(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "units", 100)
    cache.put("a", content(1))
    (tmp_path / "units" / "b").mkdir()  # in the way
    cache.put("b", content(2))
    assert cache.get("b") is None
    assert torch.equal(cache.get("a"), content(1))  # type: ignore[arg-type]


def test_others_do_not_read_it(tmp_path: Path) -> None:
    DiskCache(tmp_path / "units", 100).put("a", content(1))
    assert (tmp_path / "units").stat().st_mode & 0o077 == 0


_WRITER = """
import sys, torch
from pathlib import Path
from ewe.engine.units.disk_cache import DiskCache
cache = DiskCache(Path(sys.argv[1]), 400)
for turn in range(300):
    number = 1 + turn * int(sys.argv[2]) % 13
    want = torch.full((7 * number,), number, dtype=torch.uint8)
    found = cache.get(str(number))
    assert found is None or torch.equal(found, want), number
    cache.put(str(number), want)
"""


@pytest.mark.slow
def test_processes_share_it(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", _WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, step], stderr=subprocess.PIPE) for step in ("5", "7")]
    said = [writer.communicate(timeout=100)[1] for writer in writers]
    assert ([writer.returncode for writer in writers], said) == ([0, 0], [b"", b""])
    assert 0 < size_of(tmp_path) <= 400
