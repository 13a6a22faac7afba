"""What goes from rank 0 to the workers arrives as it was sent, and models that cannot be split are refused."""

from __future__ import annotations

import io
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from parity.families import CONFIGS
from torch import distributed

from ewe.config import Config, ModelConfig
from ewe.engine.attention.metadata import ForwardRow
from ewe.engine.distributed.group import group_device, refuse_unshardable
from ewe.engine.distributed.message import Message, read_message
from ewe.engine.distributed.row_arrays import rows_from_arrays, rows_to_arrays
from ewe.engine.distributed.sharded_pool import DriverPool, ShardedPool
from ewe.engine.distributed.worker import Worker
from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.kvcache.block_table import BlockTable
from ewe.engine.kvcache.pool import KVPool, LayerShape
from ewe.engine.models.loader import load_model
from ewe.errors import ConfigError, UnsupportedModelError

BLOCK_SIZE = 4
SHAPES = [LayerShape(2, 3, 4), LayerShape(2, 5, 5)]


def through(message: Message) -> Message:
    found = read_message(io.BytesIO(message.pack()))
    assert found is not None
    return found


arrays = st.tuples(
    st.sampled_from(["uint8", "int32", "int64", "float32", "float64"]), st.lists(st.integers(0, 4), max_size=3)
).map(lambda kind: np.arange(int(np.prod(kind[1])), dtype=kind[0]).reshape(kind[1]))


@given(st.lists(st.dictionaries(st.text(max_size=4), arrays, max_size=4), max_size=3), st.integers(0, 300))
def test_messages_arrive_whole_or_not_at_all(found: list[dict[str, Any]], lost: int) -> None:
    sent = [Message(f"command {number}", {"number": number}, item) for number, item in enumerate(found)]
    data = [message.pack() for message in sent]
    whole = b"".join(data)
    stream = io.BytesIO(whole[: max(0, len(whole) - lost)])
    read = list(iter(lambda: read_message(stream), None))
    assert len(read) == sum(len(b"".join(data[: number + 1])) <= len(whole) - lost for number in range(len(sent)))
    for mine, message in zip(read, sent, strict=False):
        assert (mine.command, mine.values, mine.arrays.keys()) == (
            message.command,
            message.values,
            message.arrays.keys(),
        )
        for name, array in message.arrays.items():
            assert (mine.arrays[name].dtype, mine.arrays[name].shape) == (array.dtype, array.shape)
            assert np.array_equal(mine.arrays[name], array)


@st.composite
def passes(draw: st.DrawFn) -> list[ForwardRow]:
    manager = BlockManager(400, BLOCK_SIZE)

    def slots(least: int = 1) -> Any:
        table = BlockTable(manager)
        table.extend(draw(st.integers(least, 11)))
        return table.slots()

    units, prefix = [slots() for _ in range(3)], slots()
    rows = []
    for _ in range(draw(st.integers(0, 4))):
        tokens = draw(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=5))
        seen = draw(st.lists(st.sampled_from(range(3)), max_size=4))
        rows.append(
            ForwardRow(
                token_ids=tokens,
                start_position=draw(st.integers(0, 1000)),
                context_slots=slots(len(tokens)),
                unit_slots=tuple(units[number] for number in seen),
                unit_weights=tuple(draw(st.floats(0.01, 3)) for _ in seen),
                wants_logits=draw(st.booleans()),
                all_logits=draw(st.booleans()),
                prefix_slots=prefix if draw(st.booleans()) else None,
            )
        )
    return rows


def plain(row: ForwardRow) -> list[Any]:
    return [repr(item.tolist() if isinstance(item, np.ndarray) else item) for item in astuple(row)]


@given(passes())
def test_rows_arrive_as_they_were_and_share_what_they_shared(rows: list[ForwardRow]) -> None:
    found = rows_from_arrays(through(Message("forward", {}, rows_to_arrays(rows, BLOCK_SIZE))).arrays, BLOCK_SIZE)
    assert list(map(plain, found)) == list(map(plain, rows))

    def shared(of: list[ForwardRow]) -> list[int]:
        segments = [segment for row in of for segment in row.memory_slots]
        first = {id(segment): place for place, segment in reversed(list(enumerate(segments)))}
        return [first[id(segment)] for segment in segments]

    assert shared(found) == shared(rows)


class Loopback:
    """Sends to a worker that is in the same process."""

    def __init__(self) -> None:
        self.worker = Worker()

    def send(self, message: Message) -> None:
        message = through(message)
        if message.command == "pool":
            dtype = getattr(torch, message.values["dtype"])
            self.worker.pool = ShardedPool(SHAPES, message.values["num_blocks"], BLOCK_SIZE, dtype, "cpu")
        else:
            self.worker.obey(message)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    place(monkeypatch, 0, 1)


def place(monkeypatch: pytest.MonkeyPatch, rank: int, parts: int) -> None:
    monkeypatch.setattr(distributed, "get_rank", lambda: rank)
    monkeypatch.setattr(distributed, "get_world_size", lambda: parts)


def tensors(pool: KVPool) -> list[torch.Tensor]:
    scales = [scale for scale in (*pool.key_scales, *pool.value_scales) if scale is not None]
    states = (*pool.keys, *pool.values)
    return [*scales, *(state.view(torch.uint8) if scales else state for state in states)]


def fill(pool: KVPool) -> None:
    torch.manual_seed(0)
    for tensor in tensors(pool):
        tensor[BLOCK_SIZE:].copy_(torch.randint(1, 99, tensor[BLOCK_SIZE:].shape))


def assert_same_bits(one: KVPool, other: KVPool) -> None:
    assert all(torch.equal(mine, others) for mine, others in zip(tensors(one), tensors(other), strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn])
def test_whatever_is_done_to_the_driver_s_pool_is_done_to_the_workers(alone: None, dtype: torch.dtype) -> None:
    loopback = Loopback()
    pool = DriverPool(loopback, SHAPES, 9, BLOCK_SIZE, dtype, "cpu")  # type: ignore[arg-type]
    for item in (pool, loopback.worker.pool):
        fill(item)
    stored, slots = pool.read_slots(np.arange(6, 11)), np.arange(20, 25)

    def swap() -> None:
        host = pool.read_blocks([3, 1])
        pool.copy_blocks([(0, 3), (0, 1)])
        pool.write_blocks([7, 2], host)

    for change in (
        lambda: pool.copy_blocks([(1, 4), (4, 5)]),
        lambda: pool.write_slots(slots, stored),
        lambda: pool.scale_keys(slots, 0.5),
        swap,
    ):
        before = [tensor.clone() for tensor in tensors(pool)]
        change()
        assert_same_bits(pool, loopback.worker.pool)
        assert not all(map(torch.equal, before, tensors(pool)))
    public = {name for name, item in vars(KVPool).items() if callable(item) and not name.startswith("_")}
    only_read = {"read_slots", "release", "bytes_per_token", "bytes_per_block"}
    assert public - vars(DriverPool).keys() == only_read  # a new one has to be told to the workers, too


def test_workers_forget_blocks_that_rank_0_has_dropped(alone: None) -> None:
    loopback = Loopback()
    pool = DriverPool(loopback, SHAPES, 9, BLOCK_SIZE, torch.float32, "cpu")  # type: ignore[arg-type]
    held = pool.read_blocks([1])
    for _ in range(5):
        pool.read_blocks([2])
    assert len(loopback.worker.swapped) == 2  # one is held, one will be dropped with the next message
    assert held.num_bytes == loopback.worker.swapped[0].num_bytes


@pytest.mark.parametrize("dtype", [torch.float32, torch.float8_e4m3fn])
def test_stored_units_are_split_by_heads(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype) -> None:
    whole = KVPool(SHAPES, 9, BLOCK_SIZE, dtype, "cpu")
    fill(whole)
    slots = np.array([5, 9, 10])
    stored = whole.read_slots(slots)
    for rank in (0, 1):
        place(monkeypatch, rank, 2)
        part = ShardedPool(
            [LayerShape(1, item.key_dim, item.value_dim) for item in SHAPES], 9, BLOCK_SIZE, dtype, "cpu"
        )
        part.write_slots(slots, stored)
        for mine, all_heads in zip(tensors(part), tensors(whole), strict=True):
            assert torch.equal(mine[slots], all_heads[slots][:, rank : rank + 1])
        with pytest.raises(ValueError, match="expected"):
            part.write_slots(slots, torch.cat([stored, stored]))


def folder_of(family: str, path: Path) -> ModelConfig:
    CONFIGS[family].save_pretrained(path)
    (path / "model.safetensors").touch()
    (path / "tokenizer.json").touch()
    return ModelConfig(name=str(path), tensor_parallel=2)


def test_models_that_cannot_be_split_are_refused(tmp_path: Path) -> None:
    refuse_unshardable(folder_of("llama", tmp_path / "llama"))
    with pytest.raises(ConfigError, match=r"must divide num_attention_heads of .*, which is 4"):
        refuse_unshardable(folder_of("llama", tmp_path / "llama").model_copy(update={"tensor_parallel": 3}))
    with pytest.raises(ConfigError, match=r"must divide num_key_value_heads of .*, which is 2"):
        refuse_unshardable(folder_of("llama", tmp_path / "llama").model_copy(update={"tensor_parallel": 4}))
    with pytest.raises(UnsupportedModelError, match="phi3: transformers has no plan that splits its attention"):
        refuse_unshardable(folder_of("phi3", tmp_path / "phi3"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["model.adapter=/nowhere"], "model.adapter"),
        (["model.weights=int8"], "model.weights"),
        (["model.compile=true"], "model.compile"),
        (["model.load_format=dummy"], "load_format dummy"),
        (["model.name=a.gguf"], "a GGUF file"),
        (["policy=dragin"], "dragin"),
        (["scheduler.async_scheduling=true"], "async_scheduling"),
    ],
)
def test_settings_that_do_not_go_with_it_are_refused(settings: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Config().override([*settings, "model.tensor_parallel=2"])
    Config().override(settings)


def test_devices_that_are_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert group_device(ModelConfig(tensor_parallel=2)) == "cpu"
    with pytest.raises(ConfigError, match="leave it at auto"):
        group_device(ModelConfig(tensor_parallel=2, device="cuda:1"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert group_device(ModelConfig(tensor_parallel=2, device="cuda")) == "cuda"
    with pytest.raises(ConfigError, match="there are 2 GPUs here"):
        group_device(ModelConfig(tensor_parallel=4))
    with pytest.raises(ConfigError, match="leave it at auto"):
        group_device(ModelConfig(tensor_parallel=2, device="cpu"))


def test_what_runs_in_one_process_says_so() -> None:
    with pytest.raises(ConfigError, match=r"this runs in one process: set model.tensor_parallel to 1"):
        load_model(ModelConfig(tensor_parallel=2))
