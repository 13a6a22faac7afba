"""Tokens that the device has drawn and the host has not read: a pass can begin with them all the same."""

import numpy as np
import torch
from torch import Tensor

from ewe.engine.attention.metadata import FlatBatch, IntArray


def sources_of(batch: FlatBatch) -> tuple[IntArray, Tensor | None]:
    """Where each token of a pass is among those drawn together, -1 for what the host knows; and these, if any is."""
    sources = np.full(len(batch.token_ids), -1, np.int64)
    known = [(item.row.placeholder, item.end - 1) for item in batch.rows if item.row.placeholder is not None]
    if not known:
        return sources, None
    sources[[place for _, place in known]] = [placeholder.index for placeholder, _ in known]
    return sources, known[-1][0].ids


def feed(token_ids: Tensor, sources: Tensor, drawn: Tensor) -> Tensor:
    """A pass's token ids [T] with the drawn ones in their places; nothing is read back, so they may be on their way."""
    return torch.where(sources < 0, token_ids, drawn[sources])
