"""A model, its runner and a pool, driven by hand: what benchmarks need that measure below the engine's loop."""

from __future__ import annotations

import copy
import queue
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from benchmarks.common import Size, write_model_folder
from ewe import LLM, SamplingParams
from ewe.config import ModelConfig
from ewe.config.memory_mark import PlacedPrompt
from ewe.engine.attention.metadata import ForwardRow, IntArray
from ewe.engine.kvcache.pool import KVPool
from ewe.engine.model_executor.model_runner import ModelRunner, layer_shapes
from ewe.engine.models.cpu_linear import CPULinear
from ewe.engine.models.loader import LoadedModel, load_model
from ewe.engine.request import Request
from ewe.engine.sequence import Sequence as EngineSequence
from ewe.types import Generation

Weights = Literal["auto", "int8", "fp8"]
_BLOCK_SIZE = 16


def load_synthetic(size: Size, device: str, weights: Weights = "auto") -> LoadedModel:
    """A model of that size with random weights (in 8 bits, if asked), and its byte-level tokenizer."""
    with tempfile.TemporaryDirectory() as folder:
        name = str(write_model_folder(Path(folder), size))
        config = ModelConfig(name=name, load_format="dummy", dtype=size.dtype, device=device, weights=weights)
        return load_model(config)


def transformers_twin(model: Any) -> Any:
    """The model over the same weights with transformers' own attention (sdpa) and layers, as a peer in one process."""
    twin = copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})
    as_in_transformers(twin)
    return twin


def as_in_transformers(model: Any) -> None:
    """Takes back what the engine changes in a model: its attention, fused layers, and its linear layers on a CPU."""
    model.set_attn_implementation("sdpa")
    if model.device.type == "cuda":
        from ewe.engine.models.fused_layer import unfuse_layers

        unfuse_layers(model)
    for layer in model.modules():
        if isinstance(layer, CPULinear):
            layer.__class__ = nn.Linear  # type: ignore[assignment]


def write_together(
    llm: LLM,
    jobs: Sequence[tuple[list[int] | PlacedPrompt, SamplingParams, Sequence[str] | None]],
    look: Callable[[Sequence[EngineSequence]], object] = lambda sequences: None,
) -> list[Generation]:
    """All answers to (prompt, params, documents) jobs that are submitted at once, in the order of their ends.

    look: called with all sequences when one has ended, in the engine's thread.
    """
    sequences = [llm.client.build(Request(prompt, params, documents)) for prompt, params, documents in jobs]
    ended: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def end(answer: Any) -> None:
        look(sequences)
        ended.put(answer)

    for sequence in sequences:
        llm.client.submit(sequence, end)
    answers = [ended.get() for _ in sequences]
    for sequence in sequences:
        llm.client.forget(sequence.request.id, abort=False)
    failed = next((item for item in answers if isinstance(item, Exception)), None)
    if failed is not None:
        raise failed
    wrong = next((item.error for item in answers if item.finish_reason == "error"), "")
    if wrong:
        raise RuntimeError(wrong)
    return answers


def drift(expected: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How far next tokens depart, from log-probabilities [tokens, vocab]: the KL divergence (nats) of `other` from
    `expected`, and whether the likeliest token is the same (1 or 0), both float32 [tokens].
    """
    divergence = (expected.exp() * (expected - other)).sum(-1)
    return divergence, (expected.argmax(-1) == other.argmax(-1)).float()


class Rig:
    """A loaded model with room for `capacity` tokens of keys and values; units hold at most `unit_tokens`.

    cache_dtype: of keys and values; None: the model's.
    """

    def __init__(
        self, loaded: LoadedModel, unit_tokens: int, capacity: int, cache_dtype: torch.dtype | None = None
    ) -> None:
        self.model, self.tokenizer, self.unit_tokens = loaded.model, loaded.tokenizer, unit_tokens
        self.device = str(self.model.device)
        num_blocks = 1 + -(-capacity // _BLOCK_SIZE)
        dtype = cache_dtype or self.model.dtype
        self.pool = KVPool(layer_shapes(self.model), num_blocks, _BLOCK_SIZE, dtype, self.device)
        self.runner = ModelRunner(self.model, self.pool, "paper")
        self.release_all()

    def release_all(self) -> None:
        """Makes every slot free again."""
        self._next_slot = _BLOCK_SIZE

    def slots(self, count: int) -> IntArray:
        """`count` fresh slots, int64; they stay taken until `release_all`."""
        self._next_slot += count
        return np.arange(self._next_slot - count, self._next_slot, dtype=np.int64)

    def random_tokens(self, count: int) -> list[int]:
        """Token ids that are no special tokens."""
        return torch.randint(3, self.model.config.vocab_size, (count,)).tolist()

    def unit(self, token_ids: Sequence[int], slots: IntArray) -> ForwardRow:
        """The row that encodes a unit, as a refresh does."""
        return ForwardRow(token_ids, 0, slots, wants_logits=False)

    def row(
        self, token_ids: Sequence[int], context: IntArray, units: Sequence[IntArray], all_logits: bool = False
    ) -> ForwardRow:
        """The row that runs the last `token_ids` of a context under `units` of weight 1."""
        position = len(context) - len(token_ids) + (self.unit_tokens if units else 0)
        return ForwardRow(token_ids, position, context, tuple(units), (1.0,) * len(units), all_logits=all_logits)

    def encode(self, token_ids: Sequence[int], slots: IntArray | None = None) -> IntArray:
        """Encodes a unit, into `slots` if given; returns its slots."""
        slots = self.slots(len(token_ids)) if slots is None else slots
        self.runner.forward([self.unit(token_ids, slots)])
        return slots

    def run(
        self, token_ids: Sequence[int], context: IntArray, units: Sequence[IntArray], all_logits: bool = False
    ) -> torch.Tensor:
        """Runs a `row`; float32 logits [1 or tokens, vocab]."""
        return self.runner.forward([self.row(token_ids, context, units, all_logits)]).logits
