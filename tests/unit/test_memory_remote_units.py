"""Units behind a URL: found by ranges of bytes, kept on the local disk, and encoded when their store fails."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
import torch

from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.kvcache.pool import KVPool, LayerShape
from ewe.engine.units import unit_folder
from ewe.engine.units.disk_cache import DiskCache
from ewe.engine.units.precomputed import Load, PrecomputedUnits
from ewe.engine.units.unit_cache import UnitCache
from ewe.engine.units.unit_files import MANIFEST, UnitIdentity, open_units, unit_key
from ewe.engine.units.unit_folder import LocalFolder, open_folder
from ewe.engine.units.unit_writer import UnitWriter
from ewe.errors import ConfigError, PrecomputedError

IDENTITY = UnitIdentity("w", "c", "t", "{text}", 8, "float32", ((2, 3, 4),))
UNITS = [(1, 2, 3), (4,), (5, 6, 7, 8, 9)]
SHARD = "shard-00000.safetensors"
STORE = fsspec.filesystem("memory")
DEADLINE_S = 60


def kv_of(tokens: tuple[int, ...]) -> torch.Tensor:
    return torch.arange(len(tokens) * IDENTITY.elements_per_token) * 0.5 + tokens[0]


def write(url: str, units: list[tuple[int, ...]]) -> None:
    with UnitWriter(url, IDENTITY) as writer:
        for tokens in units:
            if unit_key(tokens) not in writer.keys:
                writer.add(tokens, kv_of(tokens))


@pytest.fixture
def url() -> Iterator[str]:
    """A place of its own in fsspec's store in memory, which all tests of a process share."""
    name = f"memory://{uuid.uuid4()}/units"
    yield name
    if STORE.exists(name):
        STORE.rm(name, recursive=True)


class Reads:
    """Bytes that were asked for from the store in memory, and what happens before they are given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.before: Callable[[], object] = lambda: None
        self._cat_file = STORE.cat_file
        monkeypatch.setattr(STORE, "cat_file", self._read)

    def _read(self, path: str, start: int | None = None, end: int | None = None) -> bytes:
        self.before()
        data: bytes = self._cat_file(path, start, end)
        self.sizes.append(len(data))
        return data


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


class Rig:
    """The units of a URL on their way into a pool."""

    def __init__(self, url: str, cache: DiskCache | None = None) -> None:
        self.pool = KVPool([LayerShape(2, 3, 4)], 40, 4, torch.float32, "cpu")
        self.units = UnitCache(BlockManager(40, 4), keep_unused=True)
        self.changed = threading.Event()
        self.precomputed = PrecomputedUnits(url, IDENTITY, self.pool, 0, self.changed.set, cache)

    def load(self, tokens: tuple[int, ...]) -> Load:
        unit = self.units.acquire(tokens, salt=str(uuid.uuid4()))
        while (state := self.precomputed.load(unit)) is Load.READING:
            assert self.changed.wait(DEADLINE_S)
            self.changed.clear()
        if state is Load.DONE:
            assert torch.equal(self.pool.read_slots(unit.table.slots()), kv_of(tokens))
        return state


def test_what_is_written_to_a_url_is_read_and_added_to(url: str) -> None:
    write(url, UNITS[:1])
    write(url, UNITS)
    found = open_units(url, IDENTITY)
    assert {unit.shard for unit in found.values()} == {SHARD, "shard-00001.safetensors"}
    assert found.keys() == {unit_key(tokens) for tokens in UNITS}
    for tokens in UNITS:
        assert torch.equal(found[unit_key(tokens)].read(), kv_of(tokens))


def test_several_writers_at_a_time_keep_each_others_units(url: str) -> None:
    with UnitWriter(url, IDENTITY) as one, UnitWriter(url, IDENTITY) as another:
        for writer, tokens in zip((one, another, one), UNITS, strict=True):
            writer.add(tokens, kv_of(tokens))
            writer.flush()
    assert len(open_units(url, IDENTITY)) == len(UNITS)


def test_only_the_bytes_of_a_unit_are_read_and_once(url: str, reads: Reads, tmp_path: Path) -> None:
    write(url, UNITS)
    rig = Rig(url, DiskCache(tmp_path, 1 << 20))
    reads.sizes.clear()
    for _ in range(2):
        assert rig.load(UNITS[1]) is Load.DONE
    assert reads.sizes == [kv_of(UNITS[1]).nbytes]
    again = Rig(url, DiskCache(tmp_path, 1 << 20))  # another process on this machine
    reads.sizes.clear()
    assert again.load(UNITS[1]) is Load.DONE
    assert not reads.sizes


def test_what_the_disk_has_damaged_is_read_again(url: str, reads: Reads, tmp_path: Path) -> None:
    write(url, UNITS)
    rig = Rig(url, DiskCache(tmp_path, 1 << 20))
    for damage in (lambda data: data[:-1] + b"?", lambda data: data[:5], lambda data: b""):
        assert rig.load(UNITS[0]) is Load.DONE
        [kept] = [path for path in tmp_path.iterdir() if path.stat().st_size]
        kept.write_bytes(damage(kept.read_bytes()))
        reads.sizes.clear()
        assert rig.load(UNITS[0]) is Load.DONE
        assert len(reads.sizes) == 1


def test_a_store_that_fails_is_told_of_once_and_asked_again_later(
    url: str, reads: Reads, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(url, UNITS)
    rig = Rig(url)
    now = [100.0]
    monkeypatch.setattr(unit_folder.time, "monotonic", lambda: now[0])

    def fail() -> None:
        reads.sizes.append(-1)
        raise RuntimeError("no route")  # stores raise errors of their own

    reads.before = fail
    reads.sizes.clear()
    with caplog.at_level(logging.WARNING):
        assert [rig.load(tokens) for tokens in UNITS] == [Load.ABSENT] * 3
    assert reads.sizes == [-1]
    [record] = caplog.records
    assert "encoded instead" in record.getMessage()
    assert f"{url} cannot be reached: RuntimeError: no route" in record.getMessage()
    reads.before = lambda: None
    assert rig.load(UNITS[0]) is Load.ABSENT
    now[0] += 31
    assert [rig.load(tokens) for tokens in UNITS] == [Load.DONE] * 3


def _cut(path: str) -> None:
    STORE.pipe_file(path, STORE.cat_file(path)[:-8])


@pytest.mark.parametrize(("change", "said"), [(_cut, "is damaged"), (STORE.rm, "is gone")])
def test_a_shard_that_changes_while_it_is_served_costs_its_units_only(
    url: str, change: Callable[[str], object], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(url, UNITS[:1])
    write(url, UNITS[1:])
    rig = Rig(url)
    change(f"{url}/{SHARD}")
    with caplog.at_level(logging.WARNING):
        assert [rig.load(tokens) for tokens in (UNITS[0], UNITS[1], UNITS[0])] == [Load.ABSENT, Load.DONE, Load.ABSENT]
    [record] = caplog.records
    assert f"{url}/{SHARD} {said}" in record.getMessage()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda url: STORE.rm(url, recursive=True), "holds no precomputed units"),
        (lambda url: STORE.rm(f"{url}/{SHARD}"), "holds no units yet"),
        (lambda url: _cut(f"{url}/{SHARD}"), f"{SHARD} is torn"),
        (lambda url: STORE.pipe_file(f"{url}/{SHARD}", b"\xff" * 40), f"{SHARD} is torn"),
        (lambda url: STORE.pipe_file(f"{url}/{SHARD}", b""), f"{SHARD} is torn"),
        (lambda url: STORE.pipe_file(f"{url}/{MANIFEST}", b"{"), "units.json is damaged"),
    ],
)
def test_what_is_wrong_is_told_at_open(url: str, change: Callable[[str], object], said: str) -> None:
    write(url, UNITS)
    change(url)
    with pytest.raises(PrecomputedError) as caught:
        open_units(url, IDENTITY)
    assert said in str(caught.value)
    assert url in str(caught.value)


def test_a_store_out_of_reach_and_other_models_units_are_refused_at_open(
    url: str, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(url, UNITS)
    with pytest.raises(PrecomputedError, match="weights are others"):
        open_units(url, replace(IDENTITY, weights="x"))
    places = iter([0, 1, 2])

    def fail_at_third() -> None:
        if next(places) == 2:
            raise RuntimeError("no route")

    reads.before = fail_at_third  # the manifest, the header's length, the header
    with pytest.raises(PrecomputedError, match="cannot be reached: RuntimeError: no route"):
        open_units(url, IDENTITY)

    def refuse(path: str, data: bytes, mode: str) -> None:
        raise RuntimeError("no credentials")

    monkeypatch.setattr(STORE, "pipe_file", refuse)
    with pytest.raises(PrecomputedError, match=r"cannot write .*units.json: .* no credentials"):
        UnitWriter(f"{url}2", IDENTITY)


def test_files_are_local_whatever_the_name_and_other_schemes_name_what_is_missing(tmp_path: Path) -> None:
    folder: Any = open_folder(f"file://{tmp_path}")
    assert isinstance(folder, LocalFolder)
    assert folder.path == tmp_path
    with pytest.raises(ConfigError, match=r"ewe-engine\[remote\]"):
        open_folder("nowhere://bucket")
