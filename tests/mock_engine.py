"""An engine without weights, whose "model" proves that every KV slot it is given is the right one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ewe.assembly import wire
from ewe.components import Components
from ewe.config import Config
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.kvcache.pool import KVPool, LayerShape
from ewe.engine.model_executor.model_runner import ForwardResult, ForwardRow
from ewe.engine.models.loader import LoadedModel
from ewe.engine.request import Request
from ewe.engine.sequence import Sequence as EngineSequence
from ewe.engine.startup.running_engine import Engine
from ewe.engine.units.unit_text import UnitText
from ewe.errors import InvalidRequestError
from ewe.types import Generation
from ewe.types.sampling_params import SamplingParams

EOS = 0
# One token per character that the mock model may write.
ALPHABET = "\x00 abcdefghij.ABCDEFGHIJ0123456789,\n:klmnopqrstuvwxyz"


class CharTokenizer:
    """One token per character; id 0 is EOS and decodes to nothing."""

    bos_token_id = None
    eos_token_id = EOS
    chat_template = None
    all_special_ids = (EOS,)
    is_fast = False
    name_or_path = "characters"

    def __call__(self, text: str, add_special_tokens: bool = True, **options: Any) -> dict[str, list[int]]:
        return {"input_ids": [max(ALPHABET.find(char), 1) for char in text]}

    def decode(self, ids: Sequence[int], **options: Any) -> str:
        return "".join(ALPHABET[i] for i in ids if i != EOS)


class CharUnits:
    """Unit texts for the character tokenizer (the real unit tokenizer is tested on its own)."""

    def __init__(self, unit_tokens: int) -> None:
        self._unit_tokens = unit_tokens
        self.in_prompt = self

    def encode(self, passage: Any) -> Any:
        if not passage.text.strip():
            raise InvalidRequestError(f"passage {passage.id!r} has no text")
        ids = CharTokenizer()(passage.text)["input_ids"]
        return UnitText(tuple(ids[: self._unit_tokens]), passage.text, len(ids) > self._unit_tokens)

    def prompt_text(self, passage: Any) -> str:
        return str(self.encode(passage).text)


def with_read_token(row: ForwardRow) -> ForwardRow:
    """The row with its last token, though the engine has not read it."""
    if row.placeholder is None:
        return row
    token = int(row.placeholder.ids[row.placeholder.index])
    return replace(row, token_ids=[*row.token_ids[:-1], token], placeholder=None)


class MockRunner:
    """A "model" whose next token is a hash of all it can see: units with weights, context tokens, positions.

    It keeps token ids in the pool as its KV and reads them back through the slots of the rows, so one wrong slot
    anywhere (paging, copy on write, swap, rewind) changes the text. `script` may replace the hash: it is given the
    context's characters and the units' texts, and returns the next character, whose logit rises by `strength` (20: it
    is certain, 6: usually drawn at temperature 1).
    """

    def __init__(self, pool: KVPool, script: Callable[[str, tuple[str, ...]], str] | None = None) -> None:
        self.pool = pool
        self.keys, self.values = self._layer(pool)
        self.script = script
        self.strength = 20.0
        self.rows_run: list[list[ForwardRow]] = []
        self.fail_next: Exception | None = None
        self.nan_if: Callable[[str], bool] = lambda context: False

    def close(self) -> None:
        pass

    def _layer(self, pool: KVPool) -> tuple[Any, Any]:
        """What it writes and reads: the only layer's keys and values, as arrays, which are quick with a few numbers."""
        return pool.keys[0].numpy(), pool.values[0].numpy()

    def _begin(self, rows: Sequence[ForwardRow]) -> list[ForwardRow]:
        """The rows of a pass with every token known, noted; or the failure that was asked for."""
        if self.fail_next is not None:
            error, self.fail_next = self.fail_next, None
            raise error
        known = [with_read_token(row) for row in rows]
        self.rows_run.append(known)
        return known

    def forward(self, rows: Sequence[ForwardRow], draws: object = None) -> ForwardResult:
        rows = self._begin(rows)
        for row in rows:
            own = row.context_slots[len(row.context_slots) - len(row.token_ids) :]
            self.keys[own, 0, 0] = row.token_ids
            self.values[own, 0, 0] = np.arange(row.start_position, row.start_position + len(row.token_ids))
        logits = [self._logits(row) for row in rows if row.wants_logits]
        return ForwardResult(torch.stack(logits) if logits else torch.empty(0, len(ALPHABET)), [None] * len(rows))

    def _read(self, slots: Any) -> tuple[list[int], list[int]]:
        return self.keys[slots, 0, 0].astype(int).tolist(), self.values[slots, 0, 0].astype(int).tolist()

    def _logits(self, row: ForwardRow) -> torch.Tensor:
        ids, positions = self._read(row.context_slots)
        memory = [self._read(slots) for slots in row.memory_slots]
        units = memory[len(memory) - len(row.unit_slots) :]
        context = "".join(ALPHABET[i] for i in ids)
        assert positions == list(range(positions[0], positions[0] + len(positions))), "the context has a hole"
        if self.nan_if(context):
            return torch.full((len(ALPHABET),), float("nan"))
        seen = repr((ids, positions, memory, row.unit_weights)).encode()
        generator = torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(seen).digest()[:7], "big"))
        logits = torch.randn(len(ALPHABET), generator=generator)
        if self.script is not None:
            texts = tuple("".join(ALPHABET[i] for i in unit_ids) for unit_ids, _ in units)
            logits[ALPHABET.index(self.script(context, texts))] += self.strength
        return logits


class Bench:
    """A mock engine stepped by hand: `run` answers prompts, then checks that no block was lost."""

    runner_type = MockRunner
    pool_dtype = torch.float32

    def __init__(
        self,
        config: Config,
        retriever: Any = None,
        verifier: Any = None,
        script: Callable[[str, tuple[str, ...]], str] | None = None,
        num_blocks: int = 400,
        max_model_len: int = 2000,
        memories: Any = None,
    ) -> None:
        pool = KVPool([LayerShape(1, 1, 1)], num_blocks, config.cache.block_size, self.pool_dtype, "cpu")
        self.runner = self.runner_type(pool, script)
        loaded = LoadedModel(None, None, max_model_len, frozenset({EOS}), len(ALPHABET))
        self.finished: dict[tuple[str, int], Generation] = {}
        self.engine: Engine = wire(
            config,
            Components(retriever, verifier, memories),
            self._on_finish,
            loaded,
            pool,
            self.runner,  # type: ignore[arg-type]
        )
        self.core = self.engine.core
        self.engine.input_processor.tokenizer = CharTokenizer()
        self.engine.memory_manager.unit_tokenizer = CharUnits(config.memory.unit_tokens)  # type: ignore[assignment]

    def _on_finish(self, sequence: EngineSequence, generation: Generation) -> None:
        self.finished[sequence.request.id, sequence.index] = generation

    def add(
        self,
        name: str,
        prompt: str,
        params: SamplingParams | None = None,
        documents: Any = None,
        listener: Callable[[StreamEvent], None] | None = None,
        **given: Any,
    ) -> EngineSequence:
        """given: further fields of the request."""
        asked = Request(prompt, params or SamplingParams(), documents, listener=listener, **given)
        sequence = self.engine.input_processor.build(name, asked)
        self.core.active.add(sequence)
        return sequence

    def run(self, max_steps: int = 20_000) -> dict[tuple[str, int], Generation]:
        for _ in range(max_steps):
            if not self.core.step():
                break
        else:
            raise AssertionError("the engine did not come to an end")
        self.check()
        return self.finished

    def check(self) -> None:
        """Every block is accounted for, at any moment between steps."""
        holders = [sequence.table.blocks for sequence in self.core.active.sequences]
        self.engine.block_manager.check_integrity([*holders, *self.engine.memory_manager.cache.holders()])
        if not self.core.active.sequences:
            cache = self.engine.memory_manager.cache
            assert all(unit.references == 0 for unit in cache._units.values()), "a unit is still held"
