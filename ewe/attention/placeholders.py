"""Tokens that the device has drawn and the host has not read: a pass can begin with them all the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from ewe.attention.metadata import PlacedRow
from ewe.attention.packed import to_device


def fill_in(token_ids: Tensor, rows: Sequence[PlacedRow]) -> None:
    """Writes the placeholder tokens of the rows, which were all drawn together, into a pass's token ids [T], in place.

    Nothing is read back, so the device may still be drawing them.
    """
    found = [(item.end - 1, item.row.placeholder) for item in rows if item.row.placeholder is not None]
    if not found:
        return
    places = np.array([(place, token.index) for place, token in found], np.int64).T
    moved = to_device({"to": places[0], "from": places[1]}, token_ids.device)
    token_ids.index_copy_(0, moved["to"], found[0][1].ids.index_select(0, moved["from"]))
