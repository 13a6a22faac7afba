"""The attention named "ewe" in transformers' registries."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from transformers import AttentionInterface, AttentionMaskInterface

from ewe.engine.attention.backend import AttentionBackend, LayerCall, Rotary, RotatingBackend
from ewe.engine.attention.metadata import FlatBatch
from ewe.engine.attention.probe import UNKNOWN_MASK, AttentionLayer
from ewe.engine.kvcache.pool import KVPool
from ewe.errors import UnsupportedModelError

NAME = "ewe"


class StepMetadata:
    """One step's plans over a pool; every layer of the forward pass calls `attend`.

    plans: per layer, as the backend made them. write_slots: int64 [T].
    shares: float32 [rows, most units + 1], to which every layer adds its shares of attention, or None.

    What the pool keeps of every token (`TokenStates`) goes to the same slots as its keys.
    """

    def __init__(
        self,
        plans: Sequence[Any],
        pool: KVPool,
        backend: AttentionBackend,
        write_slots: torch.Tensor,
        shares: torch.Tensor | None = None,
    ) -> None:
        self.plans, self.pool, self.backend = plans, pool, backend
        self.write_slots, self.shares = write_slots, shares
        self._rotating = backend if isinstance(backend, RotatingBackend) else None

    def keeps(self, kind: str) -> bool:
        """Whether the pool keeps this of every token."""
        return self.pool.kept is not None and self.pool.kept.kind == kind

    def keep(self, states: torch.Tensor) -> None:
        """Brings [T, width] to the pool; what pads a step goes to the null block."""
        assert self.pool.states is not None
        self.pool.states.index_copy_(0, self.write_slots.clamp(min=0), states.to(self.pool.device))

    def attend(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        scaling: float | None,
        softcap: float | None,
        others: Mapping[str, Any],
    ) -> torch.Tensor:
        """Writes the step's keys and values, attends; query [1, Hq, T, D] to output [1, T, Hq, Dv].

        A layer may lie on another device than the pool, where all of this is done; the output is on the layer's.
        """
        number: int = module.layer_idx  # type: ignore[assignment]
        scale, place = query.shape[-1] ** -0.5 if scaling is None else scaling, self.pool.device
        states = query[0].to(place), key[0].to(place), value[0].to(place)
        return self.attend_layer(number, *states, scale, softcap).unsqueeze(0).to(query.device)

    @property
    def rotates(self) -> bool:
        """Whether `attend_layer` takes queries and keys without their rotary embedding."""
        return self._rotating is not None

    def attend_layer(
        self,
        number: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scale: float,
        softcap: float | None,
        rotary: Rotary | None = None,
    ) -> torch.Tensor:
        """As `attend` in layer `number`; query [Hq, T, D], key, value to [T, Hq, Dv].

        rotary: the embedding that queries and keys still have to get, where the step `rotates`.
        """
        pool = self.pool
        call = LayerCall(
            query, key, value, pool.keys[number], pool.values[number], scale, softcap,
            pool.key_scales[number], pool.value_scales[number],
        )  # fmt: skip
        if rotary is None:
            self.backend.write(call, self.write_slots)
        else:
            assert self._rotating is not None
            self._rotating.rotate_and_write(call, rotary, self.write_slots)
        if self.shares is not None:
            self.backend.shares(call, self.plans[number], self.shares)
        if number == len(self.plans) - 1 and self.keeps("queries"):
            self.keep(call.query.transpose(0, 1).flatten(1))
        return self.backend.attend(call, self.plans[number])


def windows_of(layers: Sequence[AttentionLayer], batch: FlatBatch) -> list[int | None]:
    """Each layer's sliding window in this batch; one that hides nothing from any row is none."""
    longest = max(len(item.row.context_slots) for item in batch.rows)
    return [layer.window if (layer.window or longest) < longest else None for layer in layers]


def plan_step(
    batch: FlatBatch,
    layers: Sequence[AttentionLayer],
    pool: KVPool,
    backend: AttentionBackend,
    attribution: bool,
    write_slots: torch.Tensor,
) -> StepMetadata:
    """The metadata of one step; one plan per distinct sliding window, made here, once. write_slots: the batch's."""
    windows = windows_of(layers, batch)
    plans = {window: backend.plan(batch, window, attribution) for window in set(windows)}
    shares = None
    if attribution:
        width = max(len(item.memory_biases) for item in batch.rows) + 1
        shares = torch.zeros(len(batch.rows), width, device=pool.device)
    return StepMetadata([plans[window] for window in windows], pool, backend, write_slots, shares)


def run_flat(
    model: Any, token_ids: torch.Tensor, positions: torch.Tensor, logits_to_keep: torch.Tensor | int, step: StepMetadata
) -> torch.Tensor:
    """Logits [kept, vocab] of one flat run of tokens: token_ids and positions int64 [T]; 0 keeps all tokens' logits."""
    output = model(
        input_ids=token_ids[None],
        position_ids=positions[None],
        # A four-dimensional mask is passed on as it is: transformers builds none.
        attention_mask=torch.empty(1, 1, 1, 0, device=token_ids.device),
        use_cache=False,
        logits_to_keep=logits_to_keep,
        ewe=step,
    )
    logits: torch.Tensor = output.logits[0]
    return logits


class _LayerCalls(Protocol):
    attend: Callable[..., torch.Tensor]


def ewe_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    ewe: _LayerCalls | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' attention call: query [1, Hq, T, D], key and value [1, Hkv, T, D] to ([1, T, Hq, Dv], None)."""
    if ewe is None:
        raise UnsupportedModelError(
            f"{type(module).__name__} was called without the engine's metadata: the ewe attention runs only through "
            "ewe.engine.model_executor.model_runner.ModelRunner, and the model must hand keyword arguments down to "
            "its attention"
        )
    return ewe.attend(module, query, key, value, attention_mask, scaling, softcap, others), None


def ewe_mask(
    *,
    mask_function: Callable[..., torch.Tensor],
    local_size: int | None = None,
    use_vmap: bool = False,
    device: torch.device | str = "cpu",
    **_: Any,
) -> torch.Tensor:
    """What a mask amounts to, as int64 [1, 1, 1, 1]: its sliding window, 0 for plain causal, UNKNOWN_MASK for all else.

    Only the probe gets here: steps pass a ready four-dimensional placeholder, so no mask is ever built for them. Models
    also make masks that none of their layers use, so an unknown one is refused when a layer gets it.
    """
    window = local_size or 0
    reach = window + 3
    # From the first token to beyond two windows, off their multiples, so that prefixes and chunks show.
    query = torch.arange(0, 2 * reach + window, max(1, reach // 8), device=device)[:, None]
    key = torch.arange(3 * reach + window, device=device)[None]
    expected = (key <= query) & ((query - key < window) if window else True)
    zero = torch.zeros((), dtype=torch.int64, device=device)
    if use_vmap or not torch.equal(mask_function(zero, zero, query, key).expand_as(expected), expected):
        window = UNKNOWN_MASK
    return torch.full((1, 1, 1, 1), window, dtype=torch.int64, device=device)


AttentionInterface.register(NAME, ewe_attention)
AttentionMaskInterface.register(NAME, ewe_mask)
