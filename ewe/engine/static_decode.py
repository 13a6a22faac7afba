"""Decoding steps over tensors that stay where they are, replayed as captured CUDA graphs.

Owns: the padded batch sizes, the steps by size, capturing and what happens when it fails. Knows the Triton backend and
the model's call; nothing of sequences. Without capturing, the same steps run call by call (tests do so on a CPU).

A step has a lane per row and lanes that pad it: those write no key, see no key, and their logits are cut off.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from ewe_kernels.tiles import next_power_of_two

from ewe.attention.decode_arrays import DecodeArrays, Int32Array
from ewe.attention.merge import Merge
from ewe.attention.metadata import FlatBatch, ForwardRow, place_rows
from ewe.attention.packed import Packed, Shape
from ewe.attention.probe import AttentionLayer
from ewe.attention.registry import StepMetadata, run_flat, windows_of
from ewe.attention.static_plan import PlanSizes, fill_plan
from ewe.attention.triton_backend import TritonBackend
from ewe.attention.unread import fill_in
from ewe.kvcache.pool import KVPool

_log = logging.getLogger(__name__)
# Up to here lanes come in powers of two: the weights are read either way. Beyond, they come in steps of this many.
_LANE_STEP = 32
# Steps that are kept, least recently used first to go; each holds a graph of some megabytes.
_MOST_STEPS = 64
_NOWHERE = -1

Arranged = tuple[DecodeArrays, Int32Array]


def lanes_for(num_rows: int) -> int:
    """The padded batch size for so many rows."""
    if num_rows <= _LANE_STEP:
        return next_power_of_two(num_rows)
    return -(-num_rows // _LANE_STEP) * _LANE_STEP


class StaticStep:
    """One step of fixed sizes: `fill` it, then `run` it.

    sizes: of the plan per distinct sliding window; windows: each layer's. outputs: logits [lanes, vocab] by lanes, of
    all steps together, so that no graph keeps its own.
    """

    def __init__(
        self,
        model: Any,
        pool: KVPool,
        backend: TritonBackend,
        lanes: int,
        windows: Sequence[int | None],
        sizes: Mapping[int | None, PlanSizes],
        outputs: dict[int, torch.Tensor],
    ) -> None:
        each: tuple[Shape, Any] = ((lanes,), np.int64)
        layout = {"token_ids": each, "positions": each, "write_slots": each}
        for window, size in sizes.items():
            layout |= {_key(window, name): item for name, item in size.layout().items()}
        self._packed = Packed(layout, pool.device)
        self._sizes = sizes
        plans = {window: size.plan(_part(self._packed.device, window, size)) for window, size in sizes.items()}
        self._step = StepMetadata(
            [plans[window] for window in windows],
            pool,
            backend,
            self._packed.device["write_slots"],
        )
        self._model, self._lanes, self._outputs = model, lanes, outputs
        self._graph: torch.cuda.CUDAGraph | None = None
        self.runs = 0

    def fill(self, batch: FlatBatch, arranged: Mapping[int | None, Arranged]) -> None:
        """Takes a step's tokens and plans; what is left of the lanes does nothing."""
        self._packed.wait()
        host, count = self._packed.host, len(batch.rows)
        for name, values, padding in (
            ("token_ids", batch.token_ids, 0),
            ("positions", batch.positions, 0),
            ("write_slots", batch.write_slots, _NOWHERE),
        ):
            host[name][:count] = values
            host[name][count:] = padding
        for window, (arrays, tables) in arranged.items():
            fill_plan(_part(host, window, self._sizes[window]), arrays, tables)
        self._packed.upload()
        fill_in(self._packed.device["token_ids"], batch.rows)

    def run(self) -> torch.Tensor:
        """Logits [lanes, vocab] of what was filled in, in the model's precision; valid until any step runs again."""
        self.runs += 1
        if self._graph is None:
            self._call()
        else:
            self._graph.replay()
        return self._outputs[self._lanes]

    def capture(self, memory: Any) -> None:
        """Records the step's kernels, which must have run before; `run` replays them from now on. Computes nothing.

        memory: the pool that all graphs share. Raises RuntimeError if the model does what cannot be recorded.
        """
        graph = torch.cuda.CUDAGraph()
        # Other threads (encoders, judges) use the device meanwhile, and may.
        with torch.cuda.graph(graph, pool=memory, capture_error_mode="thread_local"):
            self._call()
        self._graph = graph

    @property
    def is_captured(self) -> bool:
        """Whether `run` replays a graph."""
        return self._graph is not None

    def _call(self) -> None:
        tensors = self._packed.device
        logits = run_flat(self._model, tensors["token_ids"], tensors["positions"], 0, self._step)
        if self._lanes not in self._outputs:
            self._outputs[self._lanes] = torch.empty_like(logits)
        self._outputs[self._lanes].copy_(logits)


class StaticDecoder:
    """Runs steps in which every row has one token; capture: whether to record them as CUDA graphs."""

    def __init__(
        self,
        model: Any,
        layers: Sequence[AttentionLayer],
        pool: KVPool,
        merge: Merge,
        backend: TritonBackend,
        capture: bool,
    ) -> None:
        self._model, self._layers, self._pool, self._merge, self._backend = model, layers, pool, merge, backend
        self._capture = capture
        self._memory = torch.cuda.graph_pool_handle() if capture else None
        self._steps: OrderedDict[Any, StaticStep] = OrderedDict()
        self._outputs: dict[int, torch.Tensor] = {}

    @property
    def num_graphs(self) -> int:
        """Graphs that have been captured and are kept."""
        return sum(step.is_captured for step in self._steps.values())

    def takes(self, rows: Sequence[ForwardRow]) -> bool:
        """Whether the rows are a step of decoding."""
        return all(len(row.token_ids) == 1 and (row.wants_logits or row.all_logits) for row in rows)

    def forward(self, rows: Sequence[ForwardRow]) -> torch.Tensor:
        """Logits float32 [rows, vocab] of rows that `takes` accepts; keys and values are in the pool afterwards."""
        batch = place_rows(rows, self._merge, keep_order=True)
        windows = windows_of(self._layers, batch)
        arranged = {window: self._backend.arrange(batch, window) for window in dict.fromkeys(windows)}
        step = self._step(lanes_for(len(rows)), windows, arranged)
        step.fill(batch, arranged)
        # The first run compiles and warms up what is recorded before the second.
        if self._capture and step.runs and not step.is_captured:
            self._record(step)
        # A copy: the logits lie where the next step writes its own.
        return step.run()[: len(rows)].to(torch.float32, copy=True)

    def _step(self, lanes: int, windows: Sequence[int | None], arranged: Mapping[int | None, Arranged]) -> StaticStep:
        sizes = {window: PlanSizes.holding(lanes, arrays, len(tables)) for window, (arrays, tables) in arranged.items()}
        key = (lanes, *sizes.items())
        if key not in self._steps:
            if len(self._steps) == _MOST_STEPS:
                self._steps.popitem(last=False)
            self._steps[key] = StaticStep(self._model, self._pool, self._backend, lanes, windows, sizes, self._outputs)
        self._steps.move_to_end(key)
        return self._steps[key]

    def _record(self, step: StaticStep) -> None:
        try:
            step.capture(self._memory)
        except RuntimeError as error:  # the model is foreign code, and what CUDA refuses to record is a RuntimeError
            self._capture = False
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            _log.warning("decoding goes on without CUDA graphs, which is slower: one could not be captured: %s", reason)


def _key(window: int | None, name: str) -> str:
    return f"{window} {name}"


def _part(tensors: Mapping[str, Any], window: int | None, sizes: PlanSizes) -> dict[str, Any]:
    """One window's tensors by their own names."""
    return {name: tensors[_key(window, name)] for name in sizes.layout()}
