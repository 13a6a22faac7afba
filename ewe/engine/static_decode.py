"""Decoding steps over tensors that stay where they are, replayed as captured CUDA graphs.

Without capturing, the same steps run call by call (tests do so on a CPU).

A step has a lane per row and lanes that pad it: those write no key, see no key, and their logits are cut off.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from ewe_kernels.tiles import next_power_of_two

from ewe.attention.decode_arrays import DecodeArrays, Int32Array
from ewe.attention.merge import Merge
from ewe.attention.metadata import FlatBatch, ForwardRow, place_rows
from ewe.attention.packed import Packed, Shape
from ewe.attention.placeholders import fill_in
from ewe.attention.probe import AttentionLayer
from ewe.attention.registry import StepMetadata, run_flat
from ewe.attention.static_plan import PlanSizes, fill_plan
from ewe.attention.triton_backend import TritonBackend
from ewe.engine.graphs import capture
from ewe.kvcache.pool import KVPool

_log = logging.getLogger(__name__)
# Up to here lanes come in powers of two: the weights are read either way. Beyond, they come in steps of this many.
_LANE_STEP = 32
_NOWHERE = -1
_ATTEMPTS = 2

Arranged = tuple[DecodeArrays, Int32Array]
Windows = Sequence[int | None]


def lanes_for(num_rows: int) -> int:
    """The padded batch size for so many rows."""
    if num_rows <= _LANE_STEP:
        return next_power_of_two(num_rows)
    return -(-num_rows // _LANE_STEP) * _LANE_STEP


class StaticStep:
    """One step of fixed sizes: `fill` it, then `run` it; at first it is all padding.

    windows: each layer's sliding window; sizes: of the plan for each distinct one. outputs: logits [lanes, vocab] by
    lanes, of all steps together, so that no graph keeps its own.
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
        each: tuple[Shape, Any] = ((sizes.rows,), np.int64)
        layout = {"token_ids": each, "positions": each, "write_slots": each}
        items = [(window, name, item) for window in dict.fromkeys(windows) for name, item in sizes.layout().items()]
        layout |= {_key(window, name): item for window, name, item in items if name != "tables"}
        layout |= {_key(window, name): item for window, name, item in items if name == "tables"}
        self._last = list(layout)[-1]
        self._packed = Packed(layout, pool.device)
        self._packed.host["write_slots"][:] = _NOWHERE
        self._packed.upload()
        self.sizes = sizes
        plans = {window: sizes.plan(_part(self._packed.device, window, sizes)) for window in dict.fromkeys(windows)}
        self._step = StepMetadata(
            [plans[window] for window in windows],
            pool,
            backend,
            self._packed.device["write_slots"],
        )
        self._model, self._outputs = model, outputs
        self._graph: torch.cuda.CUDAGraph | None = None
        self.runs = 0

    def fill(self, batch: FlatBatch, arranged: Mapping[int | None, Arranged]) -> bool:
        """Takes a step's tokens and plans; what is left of the lanes does nothing. False if it has no room for them."""
        if not all(self.sizes.hold(arrays, len(tables)) for arrays, tables in arranged.values()):
            return False
        self._packed.wait()
        host, count = self._packed.host, len(batch.rows)
        for name, values, padding in (
            ("token_ids", batch.token_ids, 0),
            ("positions", batch.positions, 0),
            ("write_slots", batch.write_slots, _NOWHERE),
        ):
            host[name][:count] = values
            host[name][count:] = padding
        num_blocks = 0
        for window, (arrays, tables) in arranged.items():
            fill_plan(_part(host, window, self.sizes), arrays, tables)
            num_blocks = len(tables)
        self._packed.upload(self._last, num_blocks)
        fill_in(self._packed.device["token_ids"], batch.rows)
        return True

    def run(self) -> torch.Tensor:
        """Logits [lanes, vocab] of what was filled in, in the model's precision; valid until any step runs again."""
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
        logits = run_flat(self._model, tensors["token_ids"], tensors["positions"], 0, self._step)
        if lanes not in self._outputs:
            self._outputs[lanes] = torch.empty_like(logits)
        self._outputs[lanes].copy_(logits)


class StaticDecoder:
    """Runs steps in which every row has one token; graphs: whether to record them as CUDA graphs.

    units: how many each row may hold; a step with more, or over more blocks than the pool has, is left to others.
    """

    def __init__(
        self,
        model: Any,
        layers: Sequence[AttentionLayer],
        pool: KVPool,
        merge: Merge,
        backend: TritonBackend,
        capture: bool,
        units: int = 16,
    ) -> None:
        self._model, self._pool, self._merge, self._backend = model, pool, merge, backend
        # A window is kept where it hides nothing, so that there is one step per number of lanes.
        self._windows = [layer.window for layer in layers]
        self._capture, self._units = capture, units
        self._memory = torch.cuda.graph_pool_handle() if capture else None
        self._steps: dict[int, StaticStep] = {}
        self._outputs: dict[int, torch.Tensor] = {}
        self.num_failed = 0

    @property
    def num_graphs(self) -> int:
        """Graphs that have been captured."""
        return sum(step.is_captured for step in self._steps.values())

    def prepare(self, most_rows: int, on_graph: Callable[[int, int], object] = lambda done, total: None) -> None:
        """Makes, and captures, the steps of up to so many rows, so that none is captured later.

        on_graph: told how many are done, of how many. The largest come first: the others then find their memory.
        """
        wanted = sorted({lanes_for(number) for number in range(1, most_rows + 1)}, reverse=True)
        for done, lanes in enumerate(wanted):
            on_graph(done, len(wanted))
            self._step(lanes)
        on_graph(len(wanted), len(wanted))

    def close(self) -> None:
        """Frees the graphs and their memory; nothing can be run from then on."""
        self._steps, self._outputs, self._capture = {}, {}, False

    def takes(self, rows: Sequence[ForwardRow]) -> bool:
        """Whether the rows are a step of decoding."""
        return all(len(row.token_ids) == 1 and (row.wants_logits or row.all_logits) for row in rows)

    def forward(self, rows: Sequence[ForwardRow]) -> torch.Tensor | None:
        """Logits float32 [rows, vocab] of rows that `takes` accepts, whose keys and values are in the pool afterwards.

        None if they do not fit into a step of fixed size: nothing has been computed then.
        """
        step = self._step(lanes_for(len(rows)))
        batch = place_rows(rows, self._merge, keep_order=True)
        most_states = step.sizes.states
        windows = dict.fromkeys(self._windows)
        if not step.fill(batch, {window: self._backend.arrange(batch, window, most_states) for window in windows}):
            return None
        # A copy: the logits lie where the next step writes its own.
        return step.run()[: len(rows)].to(torch.float32, copy=True)

    def _step(self, lanes: int) -> StaticStep:
        if lanes not in self._steps:
            sizes = PlanSizes.of(lanes, self._units, self._backend.wanted_pieces, self._pool.num_blocks)
            step = StaticStep(self._model, self._pool, self._backend, self._windows, sizes, self._outputs)
            self._steps[lanes] = step
            for _ in range(_ATTEMPTS if self._capture else 0):
                if not step.is_captured:
                    self._record(step)
            if self._capture and not step.is_captured:
                self._capture = False
                _log.warning("decoding goes on without further CUDA graphs, which is slower")
        return self._steps[lanes]

    def _record(self, step: StaticStep) -> None:
        step.run()  # compiles and warms up
        try:
            step.capture(self._memory)
        except RuntimeError as error:  # the model is foreign code, and what CUDA refuses to record is a RuntimeError
            self.num_failed += 1
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            _log.warning("a CUDA graph could not be captured: %s", reason)


def _key(window: int | None, name: str) -> str:
    return f"{window} {name}"


def _part(tensors: Mapping[str, Any], window: int | None, sizes: PlanSizes) -> dict[str, Any]:
    """One window's tensors by their own names."""
    return {name: tensors[_key(window, name)] for name in sizes.layout()}
