"""The tensors that hold the keys and values of every cached token, and whole-block operations on them.

Owns: one key and one value tensor per layer. Knows nothing of who holds which block;
slot = block * block_size + offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ewe.kvcache.block_manager import NULL_BLOCK

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Heads and head dimensions of one layer's cache."""

    num_kv_heads: int
    key_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class HostBlocks:
    """Blocks copied to host memory: per layer keys [n, block_size, Hkv, Dk] and values [n, block_size, Hkv, Dv]."""

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    @property
    def num_bytes(self) -> int:
        """Host memory taken, in bytes."""
        return sum(tensor.nbytes for tensor in (*self.keys, *self.values))


class KVPool:
    """Per layer `keys[i]` [num_slots, Hkv, Dk] and `values[i]` [num_slots, Hkv, Dv] of `dtype`, all zero at first.

    num_slots = num_blocks * block_size; block 0 is the null block and stays zero. Raises ValueError without layers.
    """

    def __init__(
        self,
        layer_shapes: Sequence[LayerShape],
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype,
        device: torch.device | str,
    ) -> None:
        if not layer_shapes:
            raise ValueError("a KV pool needs at least one layer")
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.device = torch.device(device)
        num_slots = num_blocks * block_size

        def zeros(num_heads: int, dim: int) -> Tensor:
            return torch.zeros(num_slots, num_heads, dim, dtype=dtype, device=self.device)

        self.layer_shapes = tuple(layer_shapes)
        self.dtype = dtype
        self.keys = [zeros(shape.num_kv_heads, shape.key_dim) for shape in layer_shapes]
        self.values = [zeros(shape.num_kv_heads, shape.value_dim) for shape in layer_shapes]

    @staticmethod
    def elements_per_token(layer_shapes: Sequence[LayerShape]) -> int:
        """Numbers that one token takes over all layers, keys and values."""
        return sum(shape.num_kv_heads * (shape.key_dim + shape.value_dim) for shape in layer_shapes)

    @staticmethod
    def bytes_per_block(layer_shapes: Sequence[LayerShape], block_size: int, dtype: torch.dtype) -> int:
        """Bytes that one block takes over all layers, keys and values."""
        return KVPool.elements_per_token(layer_shapes) * block_size * dtype.itemsize

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
        return HostBlocks(tuple(copies[: len(self.keys)]), tuple(copies[len(self.keys) :]))

    def write_blocks(self, blocks: Sequence[int], host: HostBlocks) -> None:
        """Copy what `read_blocks` returned into as many blocks, in the same order, bit for bit (swap in).

        Raises ValueError if the numbers of blocks differ.
        """
        if len(blocks) != len(host.keys[0]):
            raise ValueError(f"{len(host.keys[0])} blocks on the host, {len(blocks)} to write to")
        index = self._writable(blocks)
        for tensor, stored in zip(self._by_block(), (*host.keys, *host.values), strict=True):
            tensor.index_copy_(0, index, stored.to(self.device, non_blocking=True))

    def read_slots(self, slots: IntArray) -> Tensor:
        """What slots (int64 [n]) hold, copied to host memory bit for bit: [n * elements per token].

        The keys of all layers, then the values; of each layer its tokens in the order of the slots.
        """
        index = torch.from_numpy(slots.copy()).to(self.device)
        parts = [tensor.index_select(0, index).view(-1) for tensor in (*self.keys, *self.values)]
        return torch.cat(parts).cpu()

    def write_slots(self, slots: IntArray, stored: Tensor) -> None:
        """Copies what `read_slots` returned into as many slots, bit for bit; it goes to the device in one piece.

        Raises ValueError if its dtype or size is not what these slots take.
        """
        expected = len(slots) * self.elements_per_token(self.layer_shapes)
        if stored.dtype != self.dtype or stored.numel() != expected:
            raise ValueError(f"{expected} x {self.dtype} expected, got {stored.numel()} x {stored.dtype}")
        if NULL_BLOCK in slots // self.block_size:
            raise ValueError("the null block must stay zero")
        index = torch.from_numpy(slots.copy()).to(self.device)
        moved = stored.to(self.device, non_blocking=True)
        begin = 0
        for tensor in (*self.keys, *self.values):
            size = len(slots) * tensor.shape[1] * tensor.shape[2]
            tensor.index_copy_(0, index, moved[begin : begin + size].view(-1, *tensor.shape[1:]))
            begin += size

    def _by_block(self) -> list[Tensor]:
        """All keys, then all values, as views [num_blocks, block_size, Hkv, D]."""
        shape = (self.num_blocks, self.block_size)
        return [tensor.view(*shape, *tensor.shape[1:]) for tensor in (*self.keys, *self.values)]

    def _index(self, blocks: Sequence[int]) -> Tensor:
        if not all(0 <= block < self.num_blocks for block in blocks):
            raise ValueError(f"blocks outside the pool of {self.num_blocks}: {list(blocks)}")
        return torch.tensor(list(blocks), dtype=torch.int64, device=self.device)

    def _writable(self, blocks: Sequence[int]) -> Tensor:
        if NULL_BLOCK in blocks:
            raise ValueError("the null block must stay zero")
        return self._index(blocks)
