"""Who sees whom when units are read in parallel (with `merge: plain`)."""

from __future__ import annotations

from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

from reader_training.packing import REST, Packed


def block_mask(batch: Packed) -> Tensor:
    """Bool [rows, 1, width, width], true where a token (third axis) sees another (fourth).

    A token sees earlier tokens of its own example: those of the prefix and of its own segment, and all if it belongs to
    the rest. Padding sees padding, so that no row of the softmax is empty.
    """
    owners, segments = batch.owners, batch.segments
    same = owners[:, :, None] == owners[:, None, :]
    query, key = segments[:, :, None], segments[:, None, :]
    visible = (key == 0) | (query == key) | (query == REST)
    return (same & visible).tril()[:, None]


def flex_mask(batch: Packed) -> BlockMask:
    """The same for flex attention, which skips the blocks in which nothing is seen."""
    owners, segments = batch.owners, batch.segments

    def sees(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        own = segments[row, query]
        seen = segments[row, key]
        visible = (seen == 0) | (own == seen) | (own == REST)
        return (query >= key) & (owners[row, query] == owners[row, key]) & visible

    rows, width = owners.shape
    return create_block_mask(sees, rows, None, width, width, device=str(owners.device))


def mask_for(batch: Packed, implementation: str) -> Tensor | BlockMask:
    """The mask that `implementation` (transformers' name of an attention) takes."""
    return flex_mask(batch) if implementation == "flex_attention" else block_mask(batch)
