"""What the engine asks of whoever computes attention.

Owns: the protocol between the registered attention function and its backends. Knows the flat batch only.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

from ewe.attention.metadata import FlatBatch


class AttentionBackend(Protocol):
    """Computes attention of a flat batch over paged keys and values.

    A plan holds what one kind of layer needs for one step; it is made once and used by all layers with that window.
    """

    def plan(self, batch: FlatBatch, window: int | None, attribution: bool) -> Any:
        """Index and bias tensors of one step for layers with this sliding window (tokens; None: none)."""
        ...

    def attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        pool_key: torch.Tensor,
        pool_value: torch.Tensor,
        plan: Any,
        scale: float,
        softcap: float | None,
    ) -> torch.Tensor:
        """Attention outputs [T, Hq, Dv] in the query's dtype.

        query [Hq, T, Dk]; key [Hkv, T, Dk] and value [Hkv, T, Dv] of this step's tokens, already written to the pool;
        pool_key [slots, Hkv, Dk]; pool_value [slots, Hkv, Dv]. Logits are query.key * scale, then capped as
        softcap * tanh(logits / softcap) if softcap is given, then biased.
        """
        ...

    def shares(
        self,
        query: torch.Tensor,
        pool_key: torch.Tensor,
        plan: Any,
        scale: float,
        softcap: float | None,
        into: torch.Tensor,
    ) -> None:
        """Adds each row's attention share per segment (units, then context), mean over heads and tokens.

        into: float32 [rows in the caller's order, most units + 1].
        """
        ...
