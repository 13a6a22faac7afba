"""One step over tensors that stay where they are, so that it can be replayed as a captured CUDA graph.

It begins with the tokens that the step before has drawn, and ends with drawing its own.

A step that only decodes has a lane per row and lanes that pad it; one with units or chunks of prompts has tokens of
theirs beside the lanes. What pads a step writes no key, sees no key, and its logits are cut off.
"""

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from ewe_kernels.sampling import sample_tokens

from ewe.engine.attention.ewe_attention import StepMetadata, run_flat
from ewe.engine.attention.metadata import FlatBatch
from ewe.engine.attention.packed import Packed, Shape
from ewe.engine.attention.placeholders import feed, sources_of
from ewe.engine.attention.static_plan import PlanSizes
from ewe.engine.attention.triton_backend import TritonBackend
from ewe.engine.attention.triton_plan import Arranged
from ewe.engine.kvcache.pool import KVPool
from ewe.engine.sampling.draw_columns import DRAWN_BY, DrawColumns
from ewe.engine.sampling.sampler import SamplingRow

_PER_TOKEN = ("token_ids", "sources", "positions", "write_slots")
# What pads an array if not zero: it is known and not drawn, written nowhere, and followed by no draw.
_PADDING = {"sources": -1, "write_slots": -1, "temperatures": -1}

Windows = Sequence[int | None]


class StaticStep:
    """One step of fixed sizes: `fill` it, then `run` it; at first it is all padding.

    Without `capture` it runs call by call (tests do so on a CPU). windows: each layer's sliding window; sizes: of the
    plan for each distinct one. outputs: logits float32 [lanes, vocab] by lanes, and drawn: int64 [at least lanes, 2],
    as `sample_tokens` writes them, of all steps together, so that no graph keeps its own.
    """

    def __init__(
        self,
        model: Any,
        pool: KVPool,
        backend: TritonBackend,
        windows: Windows,
        sizes: PlanSizes,
        outputs: dict[int, torch.Tensor],
        drawn: torch.Tensor,
    ) -> None:
        layout: dict[str, tuple[Shape, Any]] = dict.fromkeys(_PER_TOKEN, ((sizes.tokens,), np.int64))
        layout |= {name: ((sizes.rows,), dtype) for name, dtype in {"logit_tokens": np.int64, **DRAWN_BY}.items()}
        items = [(window, name, item) for window in dict.fromkeys(windows) for name, item in sizes.layout().items()]
        layout |= {_key(window, name): item for window, name, item in items if name != "tables"}
        layout |= {_key(window, name): item for window, name, item in items if name == "tables"}
        self._last = list(layout)[-1]
        self._packed = Packed(layout, pool.device)
        host, device = self._packed.host, self._packed.device
        for name, padding in _PADDING.items():
            host[name][:] = padding
        self._parts = {window: _part(host, window, sizes) for window in dict.fromkeys(windows)}
        for part in self._parts.values():
            sizes.fill(part, (None, {}), 0)
        self._packed.upload()
        self.sizes = sizes
        plans = {window: sizes.plan(_part(device, window, sizes), window) for window in dict.fromkeys(windows)}
        self._step = StepMetadata([plans[window] for window in windows], pool, backend, device["write_slots"])
        self._model, self._outputs, self.drawn = model, outputs, drawn
        self._draw_columns = DrawColumns()
        self._graph: torch.cuda.CUDAGraph | None = None
        self.runs = 0

    def fill(self, batch: FlatBatch, arranged: Mapping[int | None, Arranged], draws: Sequence[SamplingRow]) -> bool:
        """Takes a step's tokens and plans; what is left of it does nothing. False if it has no room for them.

        draws: how the token after each row of logits is drawn; none for no token.
        """
        sources, drawn = sources_of(batch)
        if len(batch.logit_tokens) > self.sizes.rows or not all(map(self.sizes.hold, arranged.values())):
            return False
        if drawn is not None and drawn.shape[0] > self.drawn.shape[0]:
            return False
        self._packed.wait()
        host, count = self._packed.host, len(batch.token_ids)
        values = {name: getattr(batch, name) for name in ("token_ids", "positions", "write_slots", "logit_tokens")}
        for name, array in {**values, "sources": sources, **self._draw_columns.of(draws)}.items():
            host[name][: len(array)] = array
            host[name][len(array) :] = _PADDING.get(name, 0)
        num_blocks = 0
        for window, plan in arranged.items():
            self.sizes.fill(self._parts[window], plan, count)
            num_blocks = len(plan[1]["tables"])
        self._packed.upload(self._last, num_blocks)
        if drawn is not None and drawn.data_ptr() != self.drawn.data_ptr():
            self.drawn[: drawn.shape[0], 0].copy_(drawn)
        return True

    def run(self) -> torch.Tensor:
        """Logits float32 [lanes, vocab] of what was filled in; they and `drawn` are valid until any step runs again.

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
        self._graph = _capture(self._call, memory, self._packed.device["token_ids"].device)

    @property
    def is_captured(self) -> bool:
        """Whether `run` replays a graph."""
        return self._graph is not None

    def _call(self) -> None:
        tensors, lanes = self._packed.device, self.sizes.rows
        kept = tensors["logit_tokens"] if self.sizes.runs else 0
        token_ids = feed(tensors["token_ids"], tensors["sources"], self.drawn[:, 0])
        computed = run_flat(self._model, token_ids, tensors["positions"], kept, self._step)
        if lanes not in self._outputs:
            largest = max(self._outputs, default=0)
            whole = torch.empty_like(computed, dtype=torch.float32) if largest < lanes else self._outputs[largest]
            self._outputs[lanes] = whole[:lanes]
        logits = self._outputs[lanes].copy_(computed)
        sample_tokens(logits, logits, self.drawn[:lanes], *(tensors[name] for name in DRAWN_BY))


def _key(window: int | None, name: str) -> str:
    return f"{window} {name}"


def _part(tensors: Mapping[str, Any], window: int | None, sizes: PlanSizes) -> dict[str, Any]:
    """One window's tensors by their own names."""
    return {name: tensors[_key(window, name)] for name in sizes.layout()}


def _capture(call: Callable[[], object], memory: Any, device: torch.device) -> torch.cuda.CUDAGraph:
    """The graph of what `call` launches; it is recorded, not computed. memory: the pool that graphs share.

    Raises RuntimeError if `call` does what cannot be recorded; the stream is then the one of before.
    """
    graph = torch.cuda.CUDAGraph()
    # A graph that the collector frees in the middle of a capture would fail it.
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        # torch.cuda.graph leaves its own stream in place if it fails at the end; this puts ours back.
        # Other threads (encoders, judges) use the device meanwhile, and may.
        with (
            torch.cuda.stream(torch.cuda.current_stream(device)),
            torch.cuda.graph(graph, pool=memory, capture_error_mode="thread_local"),
        ):
            call()
    finally:
        if was_collecting:
            gc.enable()
    return graph
