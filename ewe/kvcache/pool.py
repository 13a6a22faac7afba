"""The tensors that hold the keys and values of every cached token, and whole-block operations on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ewe.kvcache.block_manager import NULL_BLOCK
from ewe.kvcache.fp8 import FP8, SCALE

IntArray = npt.NDArray[np.int64]


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
    """Blocks copied to host memory: each tensor of the pool as [n, block_size, Hkv, ...]."""

    tensors: tuple[Tensor, ...]

    @property
    def num_bytes(self) -> int:
        """Host memory taken, in bytes."""
        return sum(tensor.nbytes for tensor in self.tensors)


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Zeros; on a CPU the system's own, whose pages take time and memory only when they are first written."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    return torch.from_numpy(np.zeros(math.prod(shape) * dtype.itemsize, np.uint8)).view(dtype).view(shape)


class KVPool:
    """Per layer `keys[i]` [num_slots, Hkv, Dk] and `values[i]` [num_slots, Hkv, Dv] of `dtype`, all zero at first.

    In fp8 (`ewe.kvcache.fp8`) `key_scales[i]` and `value_scales[i]` are float32 [num_slots, Hkv], else None.
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
        # torch copies and fills fp8 by index on some devices only, and bytes on all.
        self._plain = torch.uint8 if dtype == FP8 else dtype
        num_slots = num_blocks * block_size

        def zeros(*shape: int, dtype: torch.dtype = self._plain) -> Tensor:
            return _zeros((num_slots, *shape), dtype, self.device)

        keys = [zeros(shape.num_kv_heads, shape.key_dim) for shape in layer_shapes]
        values = [zeros(shape.num_kv_heads, shape.value_dim) for shape in layer_shapes]
        self.keys, self.values = [item.view(dtype) for item in keys], [item.view(dtype) for item in values]
        self.key_scales: Sequence[Tensor | None] = [None] * len(keys)
        self.value_scales: Sequence[Tensor | None] = [None] * len(keys)
        scales: list[Tensor] = []
        if dtype == FP8:
            scales = [zeros(shape.num_kv_heads, dtype=SCALE) for shape in (*layer_shapes, *layer_shapes)]
            self.key_scales, self.value_scales = scales[: len(keys)], scales[len(keys) :]
        # Scales go first, so that in one run of bytes they are aligned.
        self._tensors = [*scales, *keys, *values]
        self.kept = kept
        self.states = None if kept is None else zeros(kept.width, dtype=kept.dtype)

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
        self.keys, self.values, self._tensors, self.states = [], [], [], None
        self.key_scales, self.value_scales = [], []

    def copy_blocks(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy whole blocks (source, destination), with the same result as doing the pairs one after the other."""
        origin: dict[int, int] = {}
        for source, destination in pairs:
            origin[destination] = origin.get(source, source)
        if not origin:
            return
        destinations, sources = self._writable(list(origin)), self._index(list(origin.values()))
        for tensor in self._by_block():
            tensor.index_copy_(0, destinations, tensor.index_select(0, sources))

    def zero_blocks(self, blocks: Sequence[int]) -> None:
        """Set whole blocks to zero."""
        index = self._index(blocks)
        for tensor in self._by_block():
            tensor.index_fill_(0, index, 0)

    def read_blocks(self, blocks: Sequence[int]) -> HostBlocks:
        """Copy whole blocks to host memory, bit for bit (swap out); done when the call returns."""
        index = self._index(blocks)
        pinned = self.device.type == "cuda"
        copies: list[Tensor] = []
        for tensor in self._by_block():
            chosen = tensor.index_select(0, index)
            host = torch.empty(chosen.shape, dtype=chosen.dtype, pin_memory=pinned)
            copies.append(host.copy_(chosen, non_blocking=pinned))
        if pinned:
            torch.cuda.current_stream(self.device).synchronize()
        return HostBlocks(tuple(copies))

    def write_blocks(self, blocks: Sequence[int], host: HostBlocks) -> None:
        """Copy what `read_blocks` returned into as many blocks, in the same order, bit for bit (swap in).

        Raises ValueError if the numbers of blocks differ.
        """
        if len(blocks) != len(host.tensors[0]):
            raise ValueError(f"{len(host.tensors[0])} blocks on the host, {len(blocks)} to write to")
        index = self._writable(blocks)
        for tensor, stored in zip(self._by_block(), host.tensors, strict=True):
            tensor.index_copy_(0, index, stored.to(self.device, non_blocking=True))

    def read_slots(self, slots: IntArray) -> Tensor:
        """What slots (int64 [n]) hold, copied to host memory bit for bit, in one run of `dtype` (fp8: of bytes).

        In fp8 the scales of all layers, keys' and values'; then the keys of all layers, then the values; of each layer
        its tokens in the order of the slots.
        """
        index = torch.from_numpy(slots.copy()).to(self.device)
        parts = [tensor.index_select(0, index).view(-1).view(self._plain) for tensor in self._tensors]
        return torch.cat(parts).cpu()

    def write_slots(self, slots: IntArray, stored: Tensor) -> None:
        """Copies what `read_slots` returned into as many slots, bit for bit; it goes to the device in one piece.

        Raises ValueError if its dtype or size is not what these slots take.
        """
        expected = len(slots) * self.bytes_per_token(self.layer_shapes, self.dtype) // self._plain.itemsize
        if stored.dtype != self._plain or stored.numel() != expected:
            raise ValueError(f"{expected} x {self._plain} expected, got {stored.numel()} x {stored.dtype}")
        if NULL_BLOCK in slots // self.block_size:
            raise ValueError("the null block must stay zero")
        index = torch.from_numpy(slots.copy()).to(self.device)
        moved = stored.to(self.device, non_blocking=True)
        begin = 0
        for tensor in self._tensors:
            size = len(slots) * tensor[0].nbytes // self._plain.itemsize
            part = moved[begin : begin + size].view(tensor.dtype)
            tensor.index_copy_(0, index, part.view(-1, *tensor.shape[1:]))
            begin += size

    def scale_keys(self, slots: IntArray, factor: float) -> None:
        """Multiplies the keys of slots (int64 [n]) in all layers by a factor; in fp8 the scales alone."""
        index = torch.from_numpy(slots.copy()).to(self.device)
        for keys, scales in zip(self.keys, self.key_scales, strict=True):
            scaled = keys if scales is None else scales
            scaled.index_copy_(0, index, scaled.index_select(0, index) * factor)

    def _by_block(self) -> list[Tensor]:
        """All tensors as views [num_blocks, block_size, ...]."""
        shape = (self.num_blocks, self.block_size)
        tensors = self._tensors if self.states is None else [*self._tensors, self.states]
        return [tensor.view(*shape, *tensor.shape[1:]) for tensor in tensors]

    def _index(self, blocks: Sequence[int]) -> Tensor:
        if not all(0 <= block < self.num_blocks for block in blocks):
            raise ValueError(f"blocks outside the pool of {self.num_blocks}: {list(blocks)}")
        return torch.tensor(list(blocks), dtype=torch.int64, device=self.device)

    def _writable(self, blocks: Sequence[int]) -> Tensor:
        if NULL_BLOCK in blocks:
            raise ValueError("the null block must stay zero")
        return self._index(blocks)
