"""One forward pass over the rows of a step.

NaN logits pass through: the engine fails the request they belong to.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from ewe.config.loading import LoadStep, OnLoad, ignore_step
from ewe.engine.attention.choose import choose_backend
from ewe.engine.attention.ewe_attention import plan_step, run_flat
from ewe.engine.attention.merge import Merge
from ewe.engine.attention.metadata import ForwardRow, place_rows
from ewe.engine.attention.packed import to_device
from ewe.engine.attention.placeholders import feed, sources_of
from ewe.engine.attention.probe import attention_layers
from ewe.engine.attention.torch_backend import TorchBackend
from ewe.engine.kvcache.pool import KVPool, LayerShape
from ewe.engine.models.device import launching_on, on_one_device
from ewe.engine.sampling.sampler import SamplingRow

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from ewe.engine.model_executor.static_decode import StaticDecoder
    from ewe.engine.model_executor.text_attention import TextAttention
    from ewe.engine.models.row_adapters import RowAdapters

_log = logging.getLogger(__name__)
_CAPTURING = "capturing CUDA graphs"

__all__ = ["ForwardResult", "ForwardRow", "ModelRunner", "layer_shapes"]


@dataclass(slots=True)
class ForwardResult:
    """What a forward pass yields.

    logits: float32 [rows that want logits (or their tokens), vocab], in row order. attention: per row float32
    [units + 1], the share of attention per unit, then the context with its prefix, mean over layers, heads and tokens;
    None if off. drawn: int64 [logits' rows, 2], on the device, the next tokens as `sample_tokens` writes them, if the
    pass drew them; they and the logits are gone with the next pass.
    """

    logits: torch.Tensor
    attention: list[npt.NDArray[np.float32] | None]
    drawn: torch.Tensor | None = None


def layer_shapes(model: Any) -> list[LayerShape]:
    """Key and value shape per layer, for the pool; raises UnsupportedModelError if the model cannot be paged."""
    return [LayerShape(layer.num_kv_heads, layer.key_dim, layer.value_dim) for layer in attention_layers(model)]


class ModelRunner:
    """Runs a transformers causal LM (attn_implementation "ewe") over a paged pool.

    merge: how units share the softmax with the context; attribution: whether to compute shares of attention;
    cuda_graphs: whether steps are replayed as CUDA graphs, where the kernels run. units: how many a row of these may
    hold. adapters: what rows may name; passes with such rows are replayed from no graph.
    """

    def __init__(
        self,
        model: Any,
        pool: KVPool,
        merge: Merge,
        attribution: bool = False,
        cuda_graphs: bool = True,
        units: int = 16,
        adapters: RowAdapters | None = None,
    ) -> None:
        self._units, self._adapters = units, adapters
        self._model, self._pool, self._merge, self._attribution = model, pool, merge, attribution
        self._layers = attention_layers(model)
        self._device = model.device
        self._backend = choose_backend(self._device, pool)
        self._hook: RemovableHandle | None = None
        if pool.kept is not None and pool.kept.kind == "hidden":
            from ewe.engine.model_executor.token_states import keep_hidden_states

            self._hook = keep_hidden_states(model)
        # Attribution sums up shares row by row and is left as it is; weights that move are no part of a graph.
        captures = cuda_graphs and not attribution and on_one_device(model)
        self.static: StaticDecoder | None = self._static_decoder() if captures else None

    @torch.inference_mode()
    def forward(self, rows: Sequence[ForwardRow], draws: Sequence[SamplingRow] | None = None) -> ForwardResult:
        """Runs all rows in one flat pass without padding; their keys and values are in the pool afterwards.

        draws: how the token after each row of logits is drawn, if the pass may draw it; see `known_draws`.
        """
        with launching_on(self._device):
            return self._forward(rows, draws)

    def _forward(self, rows: Sequence[ForwardRow], draws: Sequence[SamplingRow] | None) -> ForwardResult:
        with_adapters = any(row.adapter for row in rows)
        captured = None if self.static is None or with_adapters else self.static.forward(rows, draws)
        if captured is not None:
            return ForwardResult(captured[0], [None] * len(rows), captured[1])
        batch = place_rows(rows, self._merge)
        sources, drawn = sources_of(batch)
        names = ("token_ids", "positions", "logit_tokens", "write_slots")
        moved = to_device({"sources": sources, **{name: getattr(batch, name) for name in names}}, self._device)
        token_ids = moved["token_ids"] if drawn is None else feed(moved["token_ids"], moved["sources"], drawn)
        step = plan_step(batch, self._layers, self._pool, self._backend, self._attribution, moved["write_slots"])
        with self._adapters.applied(batch.rows, self._device) if self._adapters else nullcontext():
            logits = run_flat(self._model, token_ids, moved["positions"], moved["logit_tokens"], step)
        return ForwardResult(logits.float(), self._attention(rows, step.shares))

    def text_attention(self, slots: npt.NDArray[np.int64], prompt: int) -> TextAttention:
        """What a text attended to; see `text_attention`."""
        from ewe.engine.model_executor.text_attention import text_attention

        return text_attention(self._pool, self._layers[-1], slots, prompt)

    @torch.inference_mode()
    def prepare(self, most_rows: int, most_tokens: int, on_load: OnLoad = ignore_step) -> None:
        """Captures the graphs of all steps of up to so many rows and tokens; on_load hears of each."""
        if self.static is None:
            return
        gc.collect()  # what loading left behind may lie on the device
        before = torch.cuda.mem_get_info(self._device)[0] if self._device.type == "cuda" else 0
        with launching_on(self._device):
            self.static.prepare(
                most_rows, most_tokens, lambda done, total: on_load(LoadStep(_CAPTURING, done, total, "graphs"))
            )
        if self._device.type == "cuda":
            taken = before - torch.cuda.mem_get_info(self._device)[0]
            _log.info("%d CUDA graphs take %.2f GiB", self.static.num_graphs, taken / (1 << 30))

    def close(self) -> None:
        """Frees the graphs; nothing can be run from then on."""
        if self.static is not None:
            self.static.close()
        if self._hook is not None:
            self._hook.remove()

    def _static_decoder(self) -> StaticDecoder | None:
        if isinstance(self._backend, TorchBackend):
            return None
        from ewe.engine.attention.triton_backend import TritonBackend
        from ewe.engine.model_executor.static_decode import StaticDecoder

        assert isinstance(self._backend, TritonBackend)
        return StaticDecoder(
            self._model, self._layers, self._pool, self._merge, self._backend, capture=True, units=self._units
        )

    def _attention(
        self, rows: Sequence[ForwardRow], shares: torch.Tensor | None
    ) -> list[npt.NDArray[np.float32] | None]:
        if shares is None:
            return [None] * len(rows)
        means = (shares / len(self._layers)).cpu().numpy()
        return [_unit_shares(means[index], row) for index, row in enumerate(rows)]


def _unit_shares(shares: npt.NDArray[np.float32], row: ForwardRow) -> npt.NDArray[np.float32]:
    """Shares per segment [at least the row's segments] as shares per unit and of the context, prefix included."""
    shares = shares[: len(row.memory_slots) + 1]
    if row.prefix_slots is None:
        return shares
    prefix, *units, context = shares
    return np.array([*units, prefix + context], np.float32)
