"""The KV pool of one part of a model: the keys and values of its own heads, in the same blocks on every rank."""

import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed

from ewe.engine.distributed.executor import Executor
from ewe.engine.distributed.message import Message
from ewe.engine.kvcache.fp8 import FP8, SCALE
from ewe.engine.kvcache.pool import HostBlocks, IntArray, KVPool, LayerShape


class ShardedPool(KVPool):
    """A pool whose stored units come with the heads of all ranks; each takes its own."""

    def write_slots(self, slots: IntArray, stored: Tensor) -> None:
        """As KVPool's; stored: of all heads, or its bytes."""
        super().write_slots(slots, self._own_heads(len(slots), stored.view(self._plain)))

    def _own_heads(self, tokens: int, stored: Tensor) -> Tensor:
        """Of what `read_slots` gives for all heads, what it gives for those of this rank."""
        rank, parts = distributed.get_rank(), distributed.get_world_size()
        shapes = self.layer_shapes
        states = [(shape.num_kv_heads, shape.key_dim) for shape in shapes]
        states += [(shape.num_kv_heads, shape.value_dim) for shape in shapes]
        scales = [(heads, SCALE.itemsize) for heads, _ in states] if self.dtype == FP8 else []
        pieces: list[Tensor] = []
        begin = 0
        for heads, width in (*scales, *states):
            end = begin + tokens * parts * heads * width
            pieces.append(stored[begin:end].view(tokens, parts, -1)[:, rank].reshape(-1))
            begin = end
        return torch.cat([*pieces, stored[begin:]])


@dataclass(frozen=True)
class SharedHostBlocks(HostBlocks):
    """Blocks copied to host memory on every rank; number: what they are called there."""

    number: int


class DriverPool(ShardedPool):
    """The pool of rank 0: whatever is done to it is done by every worker to its own, in the same order."""

    def __init__(
        self,
        executor: Executor,
        layer_shapes: Sequence[LayerShape],
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype,
        *others: Any,
    ) -> None:
        self._executor = executor
        self._numbers = count()
        self._dropped: deque[int] = deque()
        name = str(dtype).removeprefix("torch.")
        self._tell("pool", {"num_blocks": num_blocks, "block_size": block_size, "dtype": name})
        super().__init__(layer_shapes, num_blocks, block_size, dtype, *others)

    def copy_blocks(self, pairs: Sequence[tuple[int, int]]) -> None:
        """As KVPool's."""
        self._tell("copy_blocks", pairs=pairs)
        super().copy_blocks(pairs)

    def read_blocks(self, blocks: Sequence[int]) -> HostBlocks:
        """As KVPool's; the workers keep their copies as long as the result is held."""
        number, dropped = next(self._numbers), [self._dropped.popleft() for _ in range(len(self._dropped))]
        self._tell("read_blocks", {"number": number, "dropped": dropped}, blocks=blocks)
        host = super().read_blocks(blocks)
        copies = SharedHostBlocks(**{item.name: getattr(host, item.name) for item in fields(host)}, number=number)
        # A finalizer runs at any moment, so it only notes what the workers are told later.
        weakref.finalize(copies, self._dropped.append, number)
        return copies

    def write_blocks(self, blocks: Sequence[int], host: HostBlocks) -> None:
        """As KVPool's; host: from `read_blocks`."""
        assert isinstance(host, SharedHostBlocks)
        self._tell("write_blocks", {"number": host.number}, blocks=blocks)
        super().write_blocks(blocks, host)

    def write_slots(self, slots: IntArray, stored: Tensor) -> None:
        """As ShardedPool's."""
        self._tell("write_slots", slots=slots, stored=stored.view(torch.uint8).numpy())
        super().write_slots(slots, stored)

    def scale_keys(self, slots: IntArray, factor: float) -> None:
        """As KVPool's."""
        self._tell("scale_keys", {"factor": factor}, slots=slots)
        super().scale_keys(slots, factor)

    def _tell(self, command: str, values: dict[str, Any] | None = None, **arrays: Any) -> None:
        self._executor.send(Message(command, values or {}, {name: np.asarray(array) for name, array in arrays.items()}))
