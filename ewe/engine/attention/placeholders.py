"""Tokens that the device has drawn and the host has not read: a pass can begin with them all the same."""

import numpy as np
import torch
from torch import Tensor

from ewe.engine.attention.metadata import FlatBatch, IntArray


def sources_of(batch: FlatBatch) -> tuple[IntArray, Tensor | None]:
    """Where each token of a pass is among those drawn together, -1 for what the host knows; and these, if any is."""
    sources = np.full(len(batch.token_ids), -1, np.int64)
    drawn = None
    ends, indices = [], []
    for item in batch.rows:
        placeholder = item.row.placeholder
        if placeholder is not None:
            ends.append(item.end - 1)
            indices.append(placeholder.index)
            drawn = placeholder.ids
    if ends:
        sources[ends] = indices
    return sources, drawn


def feed(token_ids: Tensor, sources: Tensor, drawn: Tensor) -> Tensor:
    """A pass's token ids [T] with the drawn ones in their places; nothing is read back, so they may be on their way."""
    return torch.where(sources < 0, token_ids, drawn[sources])
