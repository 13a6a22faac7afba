"""Which static step a pass takes, and the capturing of all of them at start-up."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from ewe_kernels.tiles import next_power_of_two

from ewe.engine.attention.merge import Merge
from ewe.engine.attention.metadata import ForwardRow, place_rows
from ewe.engine.attention.probe import AttentionLayer
from ewe.engine.attention.static_plan import PlanSizes
from ewe.engine.attention.triton_backend import TritonBackend
from ewe.engine.kvcache.pool import KVPool
from ewe.engine.model_executor.static_step import StaticStep
from ewe.engine.sampling.sampler import SamplingRow

_log = logging.getLogger(__name__)
# Up to here lanes come in powers of two: the weights are read either way. Beyond, they come in steps of this many.
_LANE_STEP = 32
_ATTEMPTS = 2
# The same for tokens of units and prompts, from the least to the most that steps hold. What pads hundreds of tokens is
# arithmetic; and beyond the most, arithmetic takes longer than launches.
_LONGER_STEP = 256
_LEAST_LONGER, _MOST_LONGER = 64, 2048


def lanes_for(num_rows: int) -> int:
    """The padded batch size for so many rows."""
    return _padded(num_rows, _LANE_STEP)


def buckets_for(most_tokens: int) -> list[int]:
    """Numbers of tokens of units and prompts that steps have room for, where passes hold up to so many tokens."""
    most = max(min(most_tokens, _MOST_LONGER), _LEAST_LONGER)
    return sorted({min(_padded(number, _LONGER_STEP), most) for number in range(_LEAST_LONGER, most + 1)})


def _padded(number: int, step: int) -> int:
    """The least power of two that is not under `number`; over `step` its least multiple."""
    return next_power_of_two(number) if number <= step else -(-number // step) * step


class StaticDecoder:
    """Runs steps of decoding and, from `prepare` on, those with units and prompts among them.

    capture: whether to record them as CUDA graphs. units: how many each row may hold; a step with more, or over more
    blocks than the pool has, is left to others.
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
        self._mixed: list[StaticStep] = []
        self._outputs: dict[int, torch.Tensor] = {}
        self._drawn = torch.zeros(0, 2, dtype=torch.int64, device=pool.device)
        self.num_failed = 0

    @property
    def num_graphs(self) -> int:
        """Graphs that have been captured."""
        return sum(step.is_captured for step in (*self._steps.values(), *self._mixed))

    def prepare(
        self,
        most_rows: int,
        most_tokens: int,
        on_graph: Callable[[int, int], object] = lambda done, total: None,
    ) -> None:
        """Makes, and captures, the steps of up to so many rows and tokens, so that none is captured later.

        on_graph: told how many are done, of how many. The largest come first: the others then find their memory.
        """
        capture = self._capture
        all_lanes = sorted({lanes_for(number) for number in range(1, most_rows + 1)}, reverse=True)
        buckets = buckets_for(most_tokens)[::-1]
        total = len(all_lanes) + len(buckets)
        for done, lanes in enumerate(all_lanes):
            on_graph(done, total)
            self._step(lanes)
        for done, longer in enumerate(buckets, len(all_lanes)):
            on_graph(done, total)
            # A model whose decoding cannot be captured would be tried in vain.
            step = self._made(all_lanes[0], longer) if self._capture == capture else None
            if step is not None and step.is_captured == capture:
                self._mixed.insert(0, step)
        on_graph(total, total)

    def close(self) -> None:
        """Frees the graphs and their memory; nothing can be run from then on."""
        self._steps, self._mixed, self._outputs, self._capture = {}, [], {}, False

    def forward(
        self, rows: Sequence[ForwardRow], draws: Sequence[SamplingRow] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None] | None:
        """Logits and drawn tokens, as `ForwardResult` has them; the keys and values are in the pool afterwards.

        None if the rows do not fit into a step of fixed size: nothing has been computed then.
        """
        step = self._step_for(rows)
        if step is None:
            return None
        batch = place_rows(rows, self._merge, keep_order=not step.sizes.runs)
        most_states = step.sizes.states
        windows = dict.fromkeys(self._windows)
        arranged = {window: self._backend.arrange(batch, window, most_states) for window in windows}
        if not step.fill(batch, arranged, draws or ()):
            return None
        logits = step.run()[: len(batch.logit_tokens)]
        # The next step writes its logits to the same place; without draws they may be needed until then.
        return (logits, step.drawn[: len(draws)]) if draws else (logits.clone(), None)

    def _step_for(self, rows: Sequence[ForwardRow]) -> StaticStep | None:
        """The smallest step with room for these tokens, if there is one."""
        lengths = [len(row.token_ids) for row in rows]
        silent = [row for row in rows if not (row.wants_logits or row.all_logits)]
        if max(lengths) == 1 and not silent:
            return self._step(lanes_for(len(rows)))
        tokens, runs = sum(lengths), sum(length > 1 for length in lengths)
        return next((step for step in self._mixed if tokens <= step.sizes.tokens and runs < step.sizes.runs), None)

    def _step(self, lanes: int) -> StaticStep:
        if lanes not in self._steps:
            self._steps[lanes] = self._made(lanes)
            if self._capture and not self._steps[lanes].is_captured:
                self._capture = False
                _log.warning("decoding goes on without further CUDA graphs, which is slower")
        return self._steps[lanes]

    def _made(self, lanes: int, longer: int = 0) -> StaticStep:
        sizes = PlanSizes.of(lanes, self._units, self._backend.target_pieces, self._pool.num_blocks, longer)
        if len(self._drawn) < lanes:
            self._drawn = self._drawn.new_zeros(lanes, 2)
        step = StaticStep(self._model, self._pool, self._backend, self._windows, sizes, self._outputs, self._drawn)
        for _ in range(_ATTEMPTS if self._capture else 0):
            if not step.is_captured:
                self._record(step)
        return step

    def _record(self, step: StaticStep) -> None:
        try:
            step.run()  # compiles and warms up
            step.capture(self._memory)
        except RuntimeError as error:  # the model is foreign code, and what CUDA refuses to record is a RuntimeError
            if isinstance(error, torch.OutOfMemoryError) and not step.sizes.runs:
                raise  # no room to decode: who made the engine names the budget
            self.num_failed += 1
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            _log.warning("a CUDA graph could not be captured: %s", reason)
