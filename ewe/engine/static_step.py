"""One step over tensors that stay where they are, so that it can be replayed as a captured CUDA graph.

A step that only decodes has a lane per row and lanes that pad it; one with units or chunks of prompts has tokens of
theirs beside the lanes. What pads a step writes no key, sees no key, and its logits are cut off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ewe.attention.metadata import FlatBatch
from ewe.attention.packed import Packed, Shape
from ewe.attention.placeholders import fill_in
from ewe.attention.registry import StepMetadata, run_flat
from ewe.attention.static_plan import PlanSizes
from ewe.attention.triton_backend import TritonBackend
from ewe.attention.triton_plan import Arranged
from ewe.engine.graphs import capture
from ewe.kvcache.pool import KVPool

_NOWHERE = -1

Windows = Sequence[int | None]


class StaticStep:
    """One step of fixed sizes: `fill` it, then `run` it; at first it is all padding.

    Without `capture` it runs call by call (tests do so on a CPU). windows: each layer's sliding window; sizes: of the
    plan for each distinct one. outputs: logits [lanes, vocab] by lanes, of all steps together, so that no graph keeps
    its own.
    """

    def __init__(
        self,
        model: Any,
        pool: KVPool,
        backend: TritonBackend,
        windows: Windows,
        sizes: PlanSizes,
        outputs: dict[int, torch.Tensor],
    ) -> None:
        each: tuple[Shape, Any] = ((sizes.tokens,), np.int64)
        layout = {"token_ids": each, "positions": each, "write_slots": each, "logit_tokens": ((sizes.rows,), np.int64)}
        items = [(window, name, item) for window in dict.fromkeys(windows) for name, item in sizes.layout().items()]
        layout |= {_key(window, name): item for window, name, item in items if name != "tables"}
        layout |= {_key(window, name): item for window, name, item in items if name == "tables"}
        self._last = list(layout)[-1]
        self._packed = Packed(layout, pool.device)
        host, device = self._packed.host, self._packed.device
        host["write_slots"][:] = _NOWHERE
        for window in dict.fromkeys(windows):
            sizes.fill(_part(host, window, sizes), (None, {}), 0)
        self._packed.upload()
        self.sizes = sizes
        plans = {window: sizes.plan(_part(device, window, sizes), window) for window in dict.fromkeys(windows)}
        self._step = StepMetadata([plans[window] for window in windows], pool, backend, device["write_slots"])
        self._model, self._outputs = model, outputs
        self._graph: torch.cuda.CUDAGraph | None = None
        self.runs = 0

    def fill(self, batch: FlatBatch, arranged: Mapping[int | None, Arranged]) -> bool:
        """Takes a step's tokens and plans; what is left of it does nothing. False if it has no room for them."""
        if len(batch.logit_tokens) > self.sizes.rows or not all(map(self.sizes.hold, arranged.values())):
            return False
        self._packed.wait()
        host, count = self._packed.host, len(batch.token_ids)
        for name, values, padding in (
            ("token_ids", batch.token_ids, 0),
            ("positions", batch.positions, 0),
            ("write_slots", batch.write_slots, _NOWHERE),
            ("logit_tokens", batch.logit_tokens, 0),
        ):
            host[name][: len(values)] = values
            host[name][len(values) :] = padding
        num_blocks = 0
        for window, plan in arranged.items():
            self.sizes.fill(_part(host, window, self.sizes), plan, count)
            num_blocks = len(plan[1]["tables"])
        self._packed.upload(self._last, num_blocks)
        fill_in(self._packed.device["token_ids"], batch.rows)
        return True

    def run(self) -> torch.Tensor:
        """Logits [lanes, vocab] of what was filled in, in the model's precision; valid until any step runs again.

        Of all tokens in their order, or of the batch's `logit_tokens` if the step has room for rows of several.
        """
        self.runs += 1
        if self._graph is None:
            self._call()
        else:
            self._graph.replay()
        return self._outputs[self.sizes.rows]

    def capture(self, memory: Any) -> None:
        """Records the step's kernels, which must have run before; `run` replays them from now on. Computes nothing.

        memory: the pool that all graphs share. Raises RuntimeError if the model does what cannot be recorded.
        """
        self._graph = capture(self._call, memory, self._packed.device["token_ids"].device)

    @property
    def is_captured(self) -> bool:
        """Whether `run` replays a graph."""
        return self._graph is not None

    def _call(self) -> None:
        tensors, lanes = self._packed.device, self.sizes.rows
        kept = tensors["logit_tokens"] if self.sizes.runs else 0
        logits = run_flat(self._model, tensors["token_ids"], tensors["positions"], kept, self._step)
        if lanes not in self._outputs:
            self._outputs[lanes] = torch.empty_like(logits)
        self._outputs[lanes].copy_(logits)


def _key(window: int | None, name: str) -> str:
    return f"{window} {name}"


def _part(tensors: Mapping[str, Any], window: int | None, sizes: PlanSizes) -> dict[str, Any]:
    """One window's tensors by their own names."""
    return {name: tensors[_key(window, name)] for name in sizes.layout()}
