"""The tensors that hold the keys and values of every cached token, and whole-block operations on them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ewe.engine.kvcache.block_manager import NULL_BLOCK
from ewe.engine.kvcache.fp8 import FP8, SCALE

IntArray = npt.NDArray[np.int64]
# What goes to the host, or comes back, in one piece; as much device memory is taken meanwhile.
_SWAP_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Heads and head dimensions of one layer's cache."""

    num_kv_heads: int
    key_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class TokenStates:
    """What is kept of every cached token beside its keys and values: `width` numbers of `dtype`.

    kind: "hidden", the hidden state that the last layer is given; "queries", the queries of the last layer's heads.
    """

    kind: Literal["hidden", "queries"]
    width: int
    dtype: torch.dtype

    @property
    def num_bytes(self) -> int:
        """Bytes per token."""
        return self.width * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class HostBlocks:
    """Blocks copied to host memory, in pieces: of some of the blocks one stack of layers each.

    From a GPU they may still be on their way: only what the same stream does later finds them there.
    """

    num_blocks: int
    tensors: tuple[Tensor, ...]

    @property
    def num_bytes(self) -> int:
        """Host memory taken, in bytes."""
        return sum(tensor.nbytes for tensor in self.tensors)


class KVPool:
    """Per layer `keys[i]` [num_slots, Hkv, Dk] and `values[i]` [num_slots, Hkv, Dv] of `dtype`, all zero at first.

    In fp8 (`ewe.engine.kvcache.fp8`) `key_scales[i]` and `value_scales[i]` are float32 [num_slots, Hkv], else None.
    slot = block * block_size + offset; block 0 is the null block and stays zero. `states` [num_slots, width] holds
    what `kept` describes (None: nothing); its null block takes what belongs nowhere. Raises ValueError without layers,
    RuntimeError or MemoryError without room.
    """

    def __init__(
        self,
        layer_shapes: Sequence[LayerShape],
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype,
        device: torch.device | str,
        kept: TokenStates | None = None,
    ) -> None:
        if not layer_shapes:
            raise ValueError("a KV pool needs at least one layer")
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.device = torch.device(device)
        self.layer_shapes = tuple(layer_shapes)
        self.dtype = dtype
        # torch copies fp8 by index on some devices only, and bytes on all.
        self._plain = torch.uint8 if dtype == FP8 else dtype
        keys = [(shape.num_kv_heads, shape.key_dim) for shape in layer_shapes]
        values = [(shape.num_kv_heads, shape.value_dim) for shape in layer_shapes]
        # Scales go first, so that in one run of bytes they are aligned.
        heads = [shape[:1] for shape in (*keys, *values)]
        scales = self._stacks_of(heads, SCALE) if dtype == FP8 else []
        states = self._stacks_of((*keys, *values), self._plain)
        self._stacks = [*scales, *states]
        self.keys, self.values = _halves([layer.view(dtype) for stack in states for layer in stack])
        self.key_scales: Sequence[Tensor | None] = [None] * len(keys)
        self.value_scales: Sequence[Tensor | None] = [None] * len(keys)
        if scales:
            self.key_scales, self.value_scales = _halves([layer for stack in scales for layer in stack])
        self.kept = kept
        self.states = None if kept is None else self._stacks_of([(kept.width,)], kept.dtype)[0][0]

    @staticmethod
    def bytes_per_token(layer_shapes: Sequence[LayerShape], dtype: torch.dtype) -> int:
        """Bytes that one token takes over all layers, keys, values and scales."""
        scales = 2 * SCALE.itemsize if dtype == FP8 else 0
        return sum(
            shape.num_kv_heads * ((shape.key_dim + shape.value_dim) * dtype.itemsize + scales) for shape in layer_shapes
        )

    @staticmethod
    def bytes_per_block(layer_shapes: Sequence[LayerShape], block_size: int, dtype: torch.dtype) -> int:
        """Bytes that one block takes over all layers, keys, values and scales."""
        return KVPool.bytes_per_token(layer_shapes, dtype) * block_size

    def release(self) -> None:
        """Gives all memory back at once, though others may still hold the pool; nothing can be stored from then on."""
        self.keys, self.values, self._stacks, self.states = [], [], [], None
        self.key_scales, self.value_scales = [], []

    def copy_blocks(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy whole blocks (source, destination), with the same result as doing the pairs one after the other."""
        origin: dict[int, int] = {}
        for source, destination in pairs:
            origin[destination] = origin.get(source, source)
        if not origin:
            return
        targets, sources = self._by_block(_writable(list(origin))), self._by_block(list(origin.values()))
        for (rows, to), (_, index) in zip(targets, sources, strict=True):
            rows.index_copy_(0, to, rows.index_select(0, index))

    def read_blocks(self, blocks: Sequence[int]) -> HostBlocks:
        """Copy whole blocks to host memory, bit for bit (swap out); nothing waits for the device."""
        return HostBlocks(
            len(blocks),
            tuple(
                rows.index_select(0, index).to("cpu", non_blocking=True)
                for part in self._swapped_together(blocks)
                for rows, index in self._by_block(part)
            ),
        )

    def write_blocks(self, blocks: Sequence[int], host: HostBlocks) -> None:
        """Copy what `read_blocks` returned into as many blocks, in the same order, bit for bit (swap in).

        Raises ValueError if the numbers of blocks differ.
        """
        if len(blocks) != host.num_blocks:
            raise ValueError(f"{host.num_blocks} blocks on the host, {len(blocks)} to write to")
        places = (pair for part in self._swapped_together(_writable(blocks)) for pair in self._by_block(part))
        for (rows, index), stored in zip(places, host.tensors, strict=True):
            rows.index_copy_(0, index, stored.to(self.device, non_blocking=True))

    def read_slots(self, slots: IntArray) -> Tensor:
        """What slots (int64 [n]) hold, copied to host memory bit for bit, in one run of `dtype` (fp8: of bytes).

        In fp8 the scales of all layers, keys' and values'; then the keys of all layers, then the values; of each layer
        its tokens in the order of the slots.
        """
        places = [self._rows(stack, slots) for stack in self._stacks]
        return torch.cat([rows.index_select(0, index).view(-1).view(self._plain) for rows, index in places]).cpu()

    def write_slots(self, slots: IntArray, stored: Tensor) -> None:
        """Copies what `read_slots` returned into as many slots, bit for bit; it goes to the device in one piece.

        Nothing waits for the device if it is in pinned memory. Raises ValueError if its dtype or size is not what these
        slots take.
        """
        expected = len(slots) * self.bytes_per_token(self.layer_shapes, self.dtype) // self._plain.itemsize
        if stored.dtype != self._plain or stored.numel() != expected:
            raise ValueError(f"{expected} x {self._plain} expected, got {stored.numel()} x {stored.dtype}")
        _writable((slots // self.block_size).tolist())
        moved = stored.to(self.device, non_blocking=True)
        begin = 0
        for stack in self._stacks:
            rows, index = self._rows(stack, slots)
            end = begin + len(index) * rows.shape[1] * rows.itemsize // self._plain.itemsize
            rows.index_copy_(0, index, moved[begin:end].view(rows.dtype).view(len(index), -1))
            begin = end

    def scale_keys(self, slots: IntArray, factor: float) -> None:
        """Multiplies the keys of slots (int64 [n]) in all layers by a factor; in fp8 the scales alone."""
        index = self._moved(slots.copy())
        for keys, scales in zip(self.keys, self.key_scales, strict=True):
            scaled = keys if scales is None else scales
            scaled.index_copy_(0, index, scaled.index_select(0, index) * factor)

    def _stacks_of(self, shapes: Sequence[tuple[int, ...]], dtype: torch.dtype) -> list[Tensor]:
        """Zeros [num_slots, *shape] for every shape; neighbours that are alike are one tensor [layers, num_slots, ...].

        So one call copies for all layers.
        """
        slots = self.num_blocks * self.block_size
        alike = [(shape, len(list(same))) for shape, same in groupby(shapes)]
        return [_zeros((layers, slots, *shape), dtype, self.device) for shape, layers in alike]

    def _rows(self, stack: Tensor, numbers: npt.ArrayLike, size: int = 1) -> tuple[Tensor, Tensor]:
        """A stack as rows of `size` slots, and which rows (int64) have these numbers in their layers."""
        per_layer = stack.shape[1] // size
        index = np.asarray(numbers, np.int64) + per_layer * np.arange(len(stack))[:, None]
        return stack.view(len(stack) * per_layer, -1), self._moved(index.ravel())

    def _by_block(self, blocks: Sequence[int]) -> Iterator[tuple[Tensor, Tensor]]:
        """Of every stack, states included, its rows of a block each, and which of them these blocks are."""
        if not all(0 <= block < self.num_blocks for block in blocks):
            raise ValueError(f"blocks outside the pool of {self.num_blocks}: {list(blocks)}")
        stacks = self._stacks if self.states is None else [*self._stacks, self.states.unsqueeze(0)]
        return (self._rows(stack, blocks, self.block_size) for stack in stacks)

    def _swapped_together(self, blocks: Sequence[int]) -> Iterator[Sequence[int]]:
        """The blocks in parts, so that the device memory taken meanwhile is bounded."""
        width = 0 if self.kept is None else self.kept.num_bytes
        token_bytes = self.bytes_per_token(self.layer_shapes, self.dtype) + width
        most = max(1, _SWAP_BYTES // (token_bytes * self.block_size))
        return (blocks[begin : begin + most] for begin in range(0, len(blocks), most))

    def _moved(self, numbers: IntArray) -> Tensor:
        """Numbers on the device, which nothing waits for: they leave from pinned memory."""
        host = torch.from_numpy(numbers)
        return host.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else host


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Zeros; on a CPU the system's own, whose pages take time and memory only when they are first written."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    return torch.from_numpy(np.zeros(math.prod(shape) * dtype.itemsize, np.uint8)).view(dtype).view(shape)


def _halves(items: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    return items[: len(items) // 2], items[len(items) // 2 :]


def _writable(blocks: Sequence[int]) -> Sequence[int]:
    if NULL_BLOCK in blocks:
        raise ValueError("the null block must stay zero")
    return blocks
