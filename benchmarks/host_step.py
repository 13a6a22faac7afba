"""How long the host takes for a decoding step, on a stand-in for a device that answers at once.

The engine plans, fills the buffers of a captured step, "replays" it, and takes the tokens of the step before into their
texts, as it does on a GPU; only the graph is left out, whose tokens are drawn at random here. Every row has units that
all rows share and its own context, and somebody who reads its stream. So this is what a step takes at least, however
fast the device is. Times are of one core's processor, and differ between machines; calls of functions do not.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.common import Sections, build_tokenizer, parse_arguments, text_of
from ewe.assembly import wire
from ewe.components import Components
from ewe.config import Config
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.attention.metadata import ForwardRow
from ewe.engine.attention.triton_backend import TritonBackend
from ewe.engine.engine_loop import RareCollections
from ewe.engine.kvcache.pool import KVPool, LayerShape
from ewe.engine.model_executor.model_runner import ForwardResult
from ewe.engine.model_executor.static_decode import StaticDecoder
from ewe.engine.model_executor.static_step import StaticStep
from ewe.engine.models.loader import LoadedModel
from ewe.engine.request import Request
from ewe.engine.sampling.sampler import SamplingRow
from ewe.engine.startup.running_engine import Engine
from ewe.types.sampling_params import SamplingParams

_ROWS = (1, 64, 128, 256)
VOCABULARY = 32000
_BLOCK = 16
# What an H100 asks for with Llama-3.1-8B's eight key heads.
_TARGET_PIECES = 99
_MULTIPROCESSORS = 132
_NOTHING = Components(None, None)


class InstantGraph:
    """Stands for a captured step: its tokens are there at once. drawn: as `StaticStep` has it."""

    def __init__(self, drawn: torch.Tensor, lowest: int) -> None:
        self._drawn, self._lowest = drawn.numpy(), lowest
        self._random = np.random.default_rng(0)

    def replay(self) -> None:
        """Draws words; their log-probabilities are all those of certain tokens."""
        self._drawn[:, 0] = self._random.integers(self._lowest, VOCABULARY, len(self._drawn))


class InstantDecoder(StaticDecoder):
    """Steps over static buffers whose model is left out; lowest: the first id that is a word."""

    def __init__(self, pool: KVPool, backend: TritonBackend, units: int, lowest: int) -> None:
        layers: list[Any] = [argparse.Namespace(window=None)]
        super().__init__(nn.Identity(), layers, pool, "paper", backend, capture=False, units=units)
        self._lowest = lowest

    def _made(self, lanes: int, longer: int = 0) -> StaticStep:
        step = super()._made(lanes, longer)
        step._outputs[lanes] = torch.zeros(lanes, 1)
        step._graph = InstantGraph(step.drawn, self._lowest)  # type: ignore[assignment]
        return step


class InstantRunner:
    """What the engine runs its passes with; those that are no plain decoding (prompts, units) yield one token each."""

    def __init__(self, decoder: InstantDecoder) -> None:
        self._decoder = decoder

    def forward(self, rows: Sequence[ForwardRow], draws: Sequence[SamplingRow] | None = None) -> ForwardResult:
        """As ModelRunner does with captured steps."""
        found = self._decoder.forward(rows, draws) if all(len(row.token_ids) == 1 for row in rows) else None
        if found is not None:
            return ForwardResult(found[0], [None] * len(rows), found[1])
        wanted = sum(row.wants_logits for row in rows)
        return ForwardResult(torch.zeros(wanted, VOCABULARY), [None] * len(rows))

    def text_attention(self, slots: Any, prompt: int) -> Any:
        """Nobody asks for it."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is held."""


def engine_config(rows: int, units: int, unit_tokens: int) -> Config:
    """Settings of an engine for so many rows, with units of so many tokens."""
    return Config.model_validate(
        {
            "policy": "ewe",
            "memory": {"retrieval_units": units, "verification_units": 0, "unit_tokens": unit_tokens},
            "cache": {"block_size": _BLOCK},
            "scheduler": {"max_num_seqs": rows, "max_num_batched_tokens": 8192, "async_scheduling": True},
        }
    )


def stand_in_engine(
    config: Config,
    capacity: int,
    on_finish: Callable[[Any, Any], None] = lambda sequence, generation: None,
    components: Components = _NOTHING,
) -> Engine:
    """An engine whose units all rows share, with room for `capacity` tokens."""
    blocks = capacity // _BLOCK + config.scheduler.places + 2
    pool = KVPool([LayerShape(1, 1, 1)], blocks, _BLOCK, torch.float32, "cpu")
    backend = TritonBackend(pool.device, _BLOCK, num_kv_heads=8)
    backend.target_pieces, backend._multiprocessors = _TARGET_PIECES, _MULTIPROCESSORS
    tokenizer = build_tokenizer(VOCABULARY)
    loaded = LoadedModel(None, tokenizer, 1 << 14, frozenset({tokenizer.eos_token_id}), VOCABULARY)
    first_word = len(tokenizer.all_special_ids) + 256
    runner = InstantRunner(InstantDecoder(pool, backend, config.memory.num_units, lowest=first_word))
    return wire(config, components, on_finish, loaded, pool, runner)


def calls_of(step: Callable[[], object]) -> int:
    """How many functions a step calls, Python's and those in C: unlike its time the same on every machine."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(None)
    return count


def measure(rows: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of processor time per step, the median over steps in which all rows decode; calls per row."""
    units, unit_tokens, context, steps = (2, 32, 32, 8) if arguments.smoke else (8, 256, 512, 64 * arguments.repeats)
    capacity = units * unit_tokens + rows * (context + steps + 64)
    engine = stand_in_engine(engine_config(rows, units, unit_tokens), capacity)
    documents = [text_of(unit_tokens, number) for number in range(units)]
    events: list[StreamEvent] = []
    for number in range(rows):
        params = SamplingParams(max_tokens=steps + 32, temperature=1.0, top_p=0.9, seed=number, ignore_eos=True)
        prompt = text_of(context, number)
        request = Request(prompt, params, documents, listener=events.append)
        engine.core.active.add(engine.input_processor.build(str(number), request))
    sequences = list(engine.core.active.sequences)
    while any(not sequence.output_text.ids for sequence in sequences):
        engine.core.step()
    times = []
    with RareCollections().while_running():  # as the engine's own loop has it
        for _ in range(steps):
            begin = time.thread_time()
            engine.core.step()
            times.append(time.thread_time() - begin)
    assert all(len(sequence.output_text) >= steps for sequence in sequences), "not every row has decoded in every step"
    median = statistics.median(times) * 1e3
    return {
        f"rows_{rows}_ms": round(median, 3),
        f"rows_{rows}_fastest_ms": round(min(times) * 1e3, 3),
        f"rows_{rows}_calls_per_row": round(calls_of(engine.core.step) / rows, 1),
    }


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, _add_options)
    arguments.device = "cpu"
    sections = Sections("host_step", arguments, {"policy": "ewe", "rows": arguments.rows})
    for rows in arguments.rows if not arguments.smoke else arguments.rows[:1]:
        sections.take(f"{rows} rows", partial(measure, rows, arguments))
    sections.close()


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, nargs="+", default=list(_ROWS), help="answers at once")


if __name__ == "__main__":
    main()
