"""What the engine asks of whoever computes attention."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch

from ewe.engine.attention.metadata import FlatBatch


@dataclass(slots=True)
class LayerCall:
    """What one layer hands to its attention, for the T tokens of a flat batch.

    query [Hq, T, Dk]; key [Hkv, T, Dk] and value [Hkv, T, Dv], which `write` brings into the pool: pool_key
    [slots, Hkv, Dk] and pool_value [slots, Hkv, Dv]. Logits are query.key * scale, then, if softcap is given, capped
    as softcap * tanh(logits / softcap), then biased. key_scales, value_scales: float32 [slots, Hkv] of a pool in fp8
    (`ewe.engine.kvcache.fp8`); all attention then sees keys and values as they are in the pool, those of this pass
    included.
    """

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    pool_key: torch.Tensor
    pool_value: torch.Tensor
    scale: float
    softcap: float | None
    key_scales: torch.Tensor | None = None
    value_scales: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class Rotary:
    """What queries and keys of a step get before they meet: cos, sin [T, R] of the first R columns, in halves.

    query_norm, key_norm: [D], the scales of an RMS norm over each head that comes first, or None; eps: its own.
    """

    cos: torch.Tensor
    sin: torch.Tensor
    query_norm: torch.Tensor | None = None
    key_norm: torch.Tensor | None = None
    eps: float = 0.0


class AttentionBackend(Protocol):
    """Computes attention of a flat batch over paged keys and values.

    A plan holds what one kind of layer needs for one step; it is made once and used by all layers with that window.
    """

    def plan(self, batch: FlatBatch, window: int | None, attribution: bool) -> Any:
        """Index and bias tensors of one step for layers with this sliding window (tokens; None: none)."""
        ...

    def write(self, call: LayerCall, slots: torch.Tensor) -> None:
        """Writes the tokens' keys and values to slots int64 [T] of the pool, before anything is attended to."""
        ...

    def attend(self, call: LayerCall, plan: Any) -> torch.Tensor:
        """Attention outputs [T, Hq, Dv] in the query's dtype; the softmax and its biases in float32."""
        ...

    def shares(self, call: LayerCall, plan: Any, into: torch.Tensor) -> None:
        """Adds each row's share of attention per segment (memory, then context), mean over heads and tokens.

        into: float32 [rows in the caller's order, most memory + 1]. The plan must have been made with attribution.
        """
        ...


@runtime_checkable
class RotatingBackend(Protocol):
    """What a backend can also do: norm, rotate and write in one kernel. Fused layers need it."""

    def rotate_and_write(self, call: LayerCall, rotary: Rotary, slots: torch.Tensor) -> None:
        """As `write`, for queries and keys without their rotary embedding; `call.query` has it afterwards."""
        ...
