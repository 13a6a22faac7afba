"""Encoding passages into a folder of units, and opening such a folder for an engine."""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ewe.config import Config
from ewe.config.cache_folder import cache_folder
from ewe.engine.kvcache.pool import KVPool
from ewe.engine.model_executor.fingerprint import identity_of
from ewe.engine.model_executor.model_runner import ForwardRow, ModelRunner, layer_shapes
from ewe.engine.models.loader import LoadedModel
from ewe.engine.startup.budget import cache_dtype
from ewe.engine.units.disk_cache import DiskCache
from ewe.engine.units.precomputed import PrecomputedUnits
from ewe.engine.units.unit_files import read_manifest, unit_key
from ewe.engine.units.unit_folder import LocalFolder, UnitFolder, open_folder
from ewe.engine.units.unit_text import UnitTokenizer
from ewe.engine.units.unit_writer import UnitWriter
from ewe.errors import ConfigError, InvalidRequestError, PrecomputedError
from ewe.types import Passage

_GIB = 1 << 30

Progress = Callable[[int, int], None]  # (units done, units in all)


@dataclass(frozen=True, slots=True)
class PrecomputeReport:
    """What came of it: units encoded now, units that were there, ids of passages without text; bytes of all units."""

    encoded: int
    existing: int
    skipped: tuple[str, ...]
    num_bytes: int


def precompute(
    loaded: LoadedModel,
    config: Config,
    passages: Iterable[Passage],
    out: str | Path,
    progress: Progress | None = None,
    prefix: str = "",
) -> PrecomputeReport:
    """Writes the KV of the passages' units to the folder or URL `out`; goes on where an earlier run was ended.

    prefix: what stands before the memory in the prompts that the units are for; empty for bare units. Each unit is
    encoded in a pass of its own, so that its KV does not depend on its neighbours. Raises ConfigError for a model
    without a tokenizer, PrecomputedError as `UnitWriter` does and if the disk is too small.
    """
    if loaded.tokenizer is None:
        raise ConfigError("this model has no tokenizer, so it can hold no units")
    prefix_ids = tuple(loaded.tokenizer(prefix, add_special_tokens=False)["input_ids"]) if prefix else ()
    texts, skipped = _unit_texts(loaded, config, passages, in_prompt=bool(prefix_ids))
    identity = identity_of(loaded, config.memory, config.cache.dtype, prefix_ids)
    dtype = cache_dtype(config.cache, loaded.model.dtype)
    unit_bytes = KVPool.bytes_per_token(layer_shapes(loaded.model), dtype)
    with UnitWriter(out, identity) as writer:
        missing = [tokens for tokens in texts if unit_key(tokens) not in writer.keys]
        _check_disk(open_folder(out), unit_bytes * sum(map(len, missing)), len(missing))
        encoder = _UnitEncoder(loaded, config, prefix_ids)
        existing = len(texts) - len(missing)
        for done, tokens in enumerate(missing, existing + 1):
            writer.add(tokens, encoder.encode(tokens))
            if progress is not None:
                progress(done, len(texts))
    return PrecomputeReport(len(missing), existing, tuple(skipped), unit_bytes * sum(map(len, texts)))


def open_precomputed(
    config: Config, loaded: LoadedModel, pool: KVPool, changed: Callable[[], None]
) -> PrecomputedUnits | None:
    """The units of the folder that the settings name, None if they name none; raises PrecomputedError.

    changed: see PrecomputedUnits.
    """
    if config.memory.precomputed is None:
        return None
    if loaded.tokenizer is None:
        raise ConfigError("this model has no tokenizer, so it can hold no units: unset memory.precomputed")
    folder = open_folder(config.memory.precomputed)
    prefix = read_manifest(folder).prefix
    if config.memory.placement != "auto" and bool(prefix) != (config.memory.placement == "in_prompt"):
        made_for = f"units after {loaded.tokenizer.decode(prefix)!r}" if prefix else "bare units"
        raise PrecomputedError(
            f"{folder} holds {made_for}, and memory.placement is {config.memory.placement}: set it to auto, or "
            "precompute units for it into another folder"
        )
    # Without a GPU the files' pages, which the system caches, are host memory already.
    host_bytes = int(config.cache.host_gib * _GIB) if pool.device.type == "cuda" else 0
    identity = identity_of(loaded, config.memory, config.cache.dtype, prefix)
    is_local = isinstance(folder, LocalFolder)
    cache = None if is_local else DiskCache(cache_folder() / "units", int(config.cache.disk_gib * _GIB))
    return PrecomputedUnits(config.memory.precomputed, identity, pool, host_bytes, changed, cache)


class _UnitEncoder:
    """Encodes one unit at a time after a prefix, in a pool that holds the prefix and one unit."""

    def __init__(self, loaded: LoadedModel, config: Config, prefix_ids: tuple[int, ...]) -> None:
        size = config.cache.block_size
        before = -(-len(prefix_ids) // size) * size
        num_blocks = 1 + before // size + -(-config.memory.unit_tokens // size)
        model = loaded.model
        dtype = cache_dtype(config.cache, model.dtype)
        self._pool = KVPool(layer_shapes(model), num_blocks, size, dtype, model.device)
        self._runner = ModelRunner(model, self._pool, config.memory.merge, cuda_graphs=False)
        self._slots = np.arange(size + before, size + before + config.memory.unit_tokens, dtype=np.int64)
        self._prefix = np.arange(size, size + len(prefix_ids), dtype=np.int64) if prefix_ids else None
        if self._prefix is not None:
            self._runner.forward([ForwardRow(prefix_ids, 0, self._prefix, wants_logits=False)])

    def encode(self, token_ids: tuple[int, ...]) -> torch.Tensor:
        """The unit's KV as `KVPool.read_slots` gives it."""
        slots = self._slots[: len(token_ids)]
        start = 0 if self._prefix is None else len(self._prefix)
        self._runner.forward([ForwardRow(token_ids, start, slots, wants_logits=False, prefix_slots=self._prefix)])
        return self._pool.read_slots(slots)


def _unit_texts(
    loaded: LoadedModel, config: Config, passages: Iterable[Passage], in_prompt: bool
) -> tuple[list[tuple[int, ...]], list[str]]:
    """The token ids of the passages' units, each content once, and the ids of passages that no unit can hold."""
    tokenizer = UnitTokenizer(loaded.tokenizer, config.memory.unit_tokens, config.memory.unit_template)
    tokenizer = tokenizer.in_prompt if in_prompt else tokenizer
    texts: dict[tuple[int, ...], None] = {}
    skipped = []
    for passage in passages:
        try:
            texts[tokenizer.encode(passage).token_ids] = None
        except InvalidRequestError:
            skipped.append(passage.id)
    return list(texts), skipped


def _check_disk(folder: UnitFolder, num_bytes: int, num_units: int) -> None:
    if not isinstance(folder, LocalFolder):
        return
    free = shutil.disk_usage(folder.path).free
    if num_bytes > free:
        raise PrecomputedError(
            f"{num_units} units take {num_bytes / _GIB:.1f} GiB, and {folder} has {free / _GIB:.1f} GiB "
            "free: choose another --out, or fewer passages with --queries and --top"
        )
