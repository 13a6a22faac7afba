"""The rows of a forward pass as a few arrays, and back."""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from ewe.engine.attention.metadata import ForwardRow
from ewe.engine.distributed.message import Array

_NONE = -1


def rows_to_arrays(rows: Sequence[ForwardRow], block_size: int) -> dict[str, Array]:
    """What `rows_from_arrays` makes the same rows of; every token must be known.

    rows: int64 [rows, 7]: tokens, start position, context, prefix (-1: none), units, two flags. A segment (context,
    prefix or unit) stands once, as its length and its blocks, however many rows see it.
    """
    segments: dict[int, tuple[int, npt.NDArray[np.int64]]] = {}

    def number(slots: npt.NDArray[np.int64]) -> int:
        return segments.setdefault(id(slots), (len(segments), slots))[0]

    table, units = [], []
    for row in rows:
        assert row.placeholder is None
        prefix = _NONE if row.prefix_slots is None else number(row.prefix_slots)
        sizes = len(row.token_ids), row.start_position, number(row.context_slots), prefix, len(row.unit_slots)
        table.append((*sizes, row.wants_logits, row.all_logits))
        units += [number(slots) for slots in row.unit_slots]
    blocks = [slots[::block_size] // block_size for _, slots in segments.values()]
    return {
        "rows": np.array(table, np.int64).reshape(-1, 7),
        "token_ids": np.fromiter(chain.from_iterable(row.token_ids for row in rows), np.int64),
        "units": np.array(units, np.int64),
        "weights": np.fromiter(chain.from_iterable(row.unit_weights for row in rows), np.float64),
        "lengths": np.array([len(slots) for _, slots in segments.values()], np.int64),
        "blocks": np.concatenate([*blocks, np.empty(0, np.int64)]).astype(np.int32),
    }


def rows_from_arrays(arrays: Mapping[str, Array], block_size: int) -> list[ForwardRow]:
    """The rows that `rows_to_arrays` was given; rows that shared a segment share it again."""
    segments = _segments(arrays["lengths"], arrays["blocks"], block_size)
    tokens, weights = arrays["token_ids"].tolist(), arrays["weights"].tolist()
    units = [segments[number] for number in arrays["units"].tolist()]
    rows: list[ForwardRow] = []
    token = unit = 0
    for num_tokens, start, context, prefix, num_units, wants_logits, all_logits in arrays["rows"].tolist():
        rows.append(
            ForwardRow(
                token_ids=tokens[token : token + num_tokens],
                start_position=start,
                context_slots=segments[context],
                unit_slots=tuple(units[unit : unit + num_units]),
                unit_weights=tuple(weights[unit : unit + num_units]),
                wants_logits=bool(wants_logits),
                all_logits=bool(all_logits),
                prefix_slots=None if prefix == _NONE else segments[prefix],
            )
        )
        token, unit = token + num_tokens, unit + num_units
    return rows


def _segments(lengths: Array, blocks: Array, block_size: int) -> list[npt.NDArray[np.int64]]:
    """The slots of every segment."""
    counts = -(-lengths // block_size)
    slots = blocks.astype(np.int64)[:, None] * block_size + np.arange(block_size)
    ends = np.cumsum(counts).tolist()
    return [
        slots[end - count : end].reshape(-1)[:length]
        for end, count, length in zip(ends, counts.tolist(), lengths.tolist(), strict=True)
    ]
