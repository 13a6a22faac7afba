"""Precomputed units on their way into the pool: what is there, what is on its way, what turns out to be damaged."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from engine_bench import LATENCIES, GatedBench, Latencies
from engine_parts import Judge, Library, sentences
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from mock_engine import Bench

from ewe.config import Config
from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.kvcache.pool import KVPool, LayerShape
from ewe.engine.units.precomputed import HostUnits, Load, PrecomputedUnits
from ewe.engine.units.unit_cache import EncodedUnit, UnitCache
from ewe.engine.units.unit_files import UnitIdentity
from ewe.engine.units.unit_writer import UnitWriter
from ewe.types.sampling_params import SamplingParams

SHAPES = [LayerShape(2, 3, 4), LayerShape(1, 5, 5)]
IDENTITY = UnitIdentity("w", "c", "t", "{text}", 8, "float32", ((2, 3, 4), (1, 5, 5)))
UNITS = [(1, 2, 3), (4,), (5, 6, 7, 8, 9)]
DEADLINE_S = 60


def kv_of(tokens: tuple[int, ...]) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(tokens))
    return torch.randn(len(tokens) * IDENTITY.elements_per_token, generator=generator)


class Rig:
    """A folder of units, a pool, and a cache that hands out places in it."""

    def __init__(self, folder: Path, host_bytes: int = 0) -> None:
        with UnitWriter(folder, IDENTITY) as writer:
            for tokens in UNITS:
                writer.add(tokens, kv_of(tokens))
        self.pool = KVPool(SHAPES, 20, 4, torch.float32, "cpu")
        self.cache = UnitCache(BlockManager(20, 4), keep_unused=True)
        self.changed = threading.Event()
        self.units = PrecomputedUnits(folder, IDENTITY, self.pool, host_bytes, self.changed.set)

    def load(self, unit: EncodedUnit) -> Load:
        """Until it is there or turns out not to be."""
        while (state := self.units.load(unit)) is Load.READING:
            assert self.changed.wait(DEADLINE_S)
            self.changed.clear()
        return state


def test_a_unit_comes_into_its_slots_and_nowhere_else(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    assert len(rig.units) == len(UNITS)
    for tokens in UNITS:
        unit = rig.cache.acquire(tokens)
        assert rig.load(unit) is Load.DONE
        assert (unit.ready, unit.was_loaded, unit.reading) == (True, True, None)
    for unit in [rig.cache.acquire(tokens) for tokens in UNITS]:
        assert torch.equal(rig.pool.read_slots(unit.table.slots()), kv_of(unit.token_ids))
    used = {slot for tokens in UNITS for slot in rig.cache.acquire(tokens).table.slots().tolist()}
    free = [slot for slot in range(80) if slot not in used]
    assert not any(tensor[free].any() for tensor in (*rig.pool.keys, *rig.pool.values))
    rig.units.close()


def test_a_unit_that_is_not_there_is_absent_at_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    unit = rig.cache.acquire((1, 2))
    assert rig.units.load(unit) is Load.ABSENT
    assert not unit.ready
    rig.units.close()


def test_a_damaged_unit_is_reported_and_encoded_and_the_others_are_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig(tmp_path)
    shard = tmp_path / "shard-00000.safetensors"
    data = shard.read_bytes()
    place = data.index(kv_of(UNITS[0]).numpy().tobytes())
    with shard.open("r+b") as file:  # the engine has the file mapped already
        file.seek(place)
        file.write(bytes([data[place] ^ 1]))
    with caplog.at_level(logging.WARNING):
        assert rig.load(rig.cache.acquire(UNITS[0])) is Load.ABSENT
        assert rig.load(rig.cache.acquire(UNITS[1])) is Load.DONE
        assert rig.load(rig.cache.acquire(UNITS[0], salt="another")) is Load.ABSENT
    [record] = caplog.records
    assert "shard-00000.safetensors is damaged" in record.getMessage()
    rig.units.close()


@pytest.mark.parametrize("num_kept", [0, 1, 3])
def test_what_is_in_host_memory_is_not_read_again(tmp_path: Path, num_kept: int) -> None:
    sizes = [kv_of(tokens).nbytes for tokens in UNITS]
    rig = Rig(tmp_path, sum(sizes[len(sizes) - num_kept :]))
    for tokens in UNITS:
        assert rig.load(rig.cache.acquire(tokens)) is Load.DONE
    (tmp_path / "shard-00000.safetensors").write_bytes(b"\0" * (tmp_path / "shard-00000.safetensors").stat().st_size)
    states = []
    for tokens in UNITS:
        unit = rig.cache.acquire(tokens, salt="again")
        states.append(rig.load(unit))
        if states[-1] is Load.DONE:
            assert torch.equal(rig.pool.read_slots(unit.table.slots()), kv_of(tokens))
    assert states == [Load.ABSENT] * (len(UNITS) - num_kept) + [Load.DONE] * num_kept
    rig.units.close()


def test_the_pool_refuses_what_does_not_fit() -> None:
    pool = KVPool(SHAPES, 4, 4, torch.float32, "cpu")
    slots = np.array([4, 5, 6])
    for wrong in (kv_of((1, 2)), kv_of((1, 2, 3)).double()):
        with pytest.raises(ValueError, match="expected"):
            pool.write_slots(slots, wrong)
    with pytest.raises(ValueError, match="null block"):
        pool.write_slots(slots - 4, kv_of((1, 2, 3)))


@given(
    capacity=st.integers(0, 60),
    steps=st.lists(st.tuples(st.sampled_from("gp"), st.integers(0, 6)), max_size=40),
)
def test_host_memory_is_bounded_and_the_least_recently_used_goes(capacity: int, steps: list[tuple[str, int]]) -> None:
    host, model = HostUnits(capacity), OrderedDict[bytes, int]()
    for step, number in steps:
        key, kv = bytes([number]), torch.zeros(4 * number + 1, dtype=torch.uint8)
        if step == "g":
            assert (host.get(key) is not None) == (key in model)
            if key in model:
                model.move_to_end(key)
        elif key not in model and kv.nbytes <= capacity:
            host.put(key, kv)
            model[key] = kv.nbytes
            while sum(model.values()) > capacity:
                model.popitem(last=False)
        else:
            host.put(key, kv)
        assert list(host._units) == list(model)
        assert (len(host), host.num_bytes) == (len(model), sum(model.values()))
        assert host.num_bytes <= capacity


class ScriptedUnits:
    """Stands in for PrecomputedUnits over the mock model, whose KV is the tokens and their positions.

    A unit is read for as many looks as `delays` says (over and over); every third content is absent.
    """

    def __init__(self, bench: Bench, delays: list[int]) -> None:
        self._bench, self._delays = bench, delays
        self._left: dict[EncodedUnit, int] = {}
        self.is_reading = False

    def load(self, unit: EncodedUnit) -> Load:
        if sum(unit.token_ids) % 3 == 0:
            return Load.ABSENT
        left = self._left.setdefault(unit, self._delays[len(self._left) % len(self._delays)])
        self.is_reading = left > 0
        if left:
            self._left[unit] -= 1
            self._bench.engine.changed.set()
            return Load.READING
        slots = torch.from_numpy(unit.table.slots().copy())
        self._bench.runner.pool.keys[0][slots, 0, 0] = torch.tensor(unit.token_ids, dtype=torch.float32)
        self._bench.runner.pool.values[0][slots, 0, 0] = torch.arange(len(slots), dtype=torch.float32)
        unit.ready = unit.was_loaded = True
        return Load.DONE


def run(delays: list[int] | None, num_blocks: int, latencies: Latencies, mode: str) -> GatedBench:
    values = {
        "memory": {"unit_tokens": 12, "retrieval_units": 2, "verification_units": 2},
        "feedback": {"mode": mode, "verify_every": 5, "retrieve_every": 3},
        "cache": {"block_size": 4},
        "scheduler": {"max_num_seqs": 3},
    }
    bench = PlainKV(Config.from_mapping(values), Library(), Judge(), sentences, num_blocks=num_blocks)
    if delays is not None:
        bench.core.scheduler.precomputed = ScriptedUnits(bench, delays)  # type: ignore[assignment]
    bench.runner.strength = 6.0
    for name, documents in {"a": ["one two"], "b": [], "c": ["three", "do re"]}.items():
        params = SamplingParams(max_tokens=30, temperature=0.7, seed=3)
        bench.add(name, "Tell me", params, documents)
    bench.run_with(latencies)
    return bench


class PlainKV(GatedBench):
    """Gates for the answers, and the mock model whose units' KV is known."""

    runner_type = Bench.runner_type


@examples(5, 20)
@given(
    delays=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    more=st.sampled_from([0, 3, 300]),
    latencies=LATENCIES,
    mode=st.sampled_from(["blocking", "optimistic"]),
)
def test_whatever_is_loaded_and_whenever_the_texts_are_the_same(
    delays: list[int], more: int, latencies: Latencies, mode: str
) -> None:
    smallest = 1 + 2 * 4 * 3 + 10
    encoded, loaded = (run(item, smallest + more, latencies, mode) for item in (None, delays))
    assert {key: g.text for key, g in loaded.finished.items()} == {key: g.text for key, g in encoded.finished.items()}
    loads = sum(g.stats.units_loaded for g in loaded.finished.values())
    assert loads == loaded.engine.memory_manager.cache.loads > 0
    refreshes = [event.data for g in loaded.finished.values() for event in g.trace if event.kind == "refresh"]
    assert any(data["loaded"] for data in refreshes)
    assert not any(data["loaded"] and data["cached"] for data in refreshes)
    for generation in encoded.finished.values():
        assert generation.stats.units_loaded == 0
        assert (generation.stats.units_encoded == 0) == (generation.stats.unit_tokens_encoded == 0)


class Watched(threading.Event):
    """Fails the test if the loop waits although no unit is being read."""

    units: ScriptedUnits

    def wait(self, timeout: float | None = None) -> bool:
        assert self.units.is_reading, "the loop waits for nothing"
        return True


@pytest.mark.parametrize("delays", [[0], [1], [0, 2]])
def test_units_that_come_back_after_a_swap_do_not_make_the_loop_wait(delays: list[int]) -> None:
    memory = {"unit_tokens": 12, "retrieval_units": 2, "verification_units": 0}
    values = {"memory": memory, "cache": {"block_size": 4, "unit_cache": False}, "scheduler": {"max_num_seqs": 3}}
    bench = Bench(Config.from_mapping(values), script=sentences, num_blocks=22)
    watched = bench.core.changed = Watched()
    watched.units = bench.core.scheduler.precomputed = ScriptedUnits(bench, delays)  # type: ignore[assignment]
    for name, document in {"a": "seven", "b": "three", "c": "four"}.items():
        bench.add(name, "Tell me", SamplingParams(max_tokens=30, ignore_eos=True), [document])
    finished = bench.run()
    assert bench.core.scheduler.swapper.swaps
    assert all(generation.stats.units_encoded == 0 for generation in finished.values())
    assert sum(generation.stats.units_loaded for generation in finished.values()) > 3
