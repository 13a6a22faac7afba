"""What a memory unit costs that is loaded instead of encoded.

Measured per unit, from the request for it to its keys and values in the KV pool: encoding it; loading it from files
that are not in memory, from the system's page cache, and (on a GPU) from pinned host memory. The model's shape decides:
loading moves 2 x layers x key heads x head size numbers per token, encoding computes with every weight.

--shape 70b runs 8 of the 80 layers, since the whole does not fit on one GPU; both sides are then a tenth.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks import plots
from benchmarks.common import GPU, SIZES, SMOKE, Size, parse_arguments, pick_size, report, seconds
from benchmarks.rig import Rig, load_synthetic
from benchmarks.shapes import LLAMA
from ewe.config import MemoryConfig, ModelConfig
from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.model_executor.fingerprint import identity_of
from ewe.engine.models.loader import LoadedModel, load_model
from ewe.engine.units.precomputed import Load, PrecomputedUnits
from ewe.engine.units.unit_cache import UnitCache
from ewe.engine.units.unit_files import SHARDS, UnitIdentity
from ewe.engine.units.unit_writer import UnitWriter

# As many layers of the 80 as one GPU has room for.
_EIGHT_LAYERS = replace(GPU, name="70b", model={**LLAMA["70b"], "num_hidden_layers": 8})
_BUILTIN = replace(SMOKE, name="builtin", units=8, unit_tokens=96)
_SHAPES = {**SIZES, "70b": _EIGHT_LAYERS, "builtin": _BUILTIN}
_FILES_ONLY = 0  # bytes of host memory


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    names = ("encode", "load_from_disk", "load_from_page_cache", "load_from_host_memory")
    figures = {name.replace("_", " "): document["figures"].get(f"{name}_ms") for name in names}
    times = {name: value for name, value in figures.items() if value is not None}
    unit = f"{document['settings']['unit_tokens']} tokens, {document['figures']['unit_mib']} MiB"
    return [plots.Panel(f"One memory unit ({unit}): encoded or loaded", "", "milliseconds per unit", {"": times})]


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, _add_options)
    size = pick_size(arguments, _SHAPES)
    loaded = _load(size, arguments.device)
    rig = Rig(loaded, size.unit_tokens, size.units * size.unit_tokens)
    texts = [tuple(rig.random_tokens(size.unit_tokens)) for _ in range(size.units)]
    identity = identity_of(loaded, MemoryConfig(unit_tokens=size.unit_tokens))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        with UnitWriter(folder, identity) as writer:
            for tokens in texts:
                writer.add(tokens, rig.pool.read_slots(rig.encode(tokens)))
        rig.release_all()
        slots = rig.slots(size.unit_tokens)
        repeats, device = arguments.repeats, arguments.device
        times = {"encode": seconds(lambda: [rig.encode(tokens, slots) for tokens in texts], device, repeats)}
        times |= _loading(Loader(rig, folder, identity, texts), device, repeats)
    unit_bytes = size.unit_tokens * identity.elements_per_token * loaded.model.dtype.itemsize
    per_unit = {f"{name}_ms": round(1000 * value / len(texts), 3) for name, value in times.items()}
    ratios = {f"encode_over_{n}": round(times["encode"] / value, 2) for n, value in times.items() if n != "encode"}
    settings = {"model": size.name, "dtype": size.dtype, "units": size.units, "unit_tokens": size.unit_tokens}
    settings |= {"layers": len(identity.layers), "layers_of_the_model": _layers_of_the_model(size, identity)}
    figures = {"unit_mib": round(unit_bytes / (1 << 20), 2)} | per_unit | ratios
    plots.draw(arguments.plot, panels, report("precomputed_units", arguments, settings, figures))


class Loader:
    """Loads units as the engine does, into a cache that forgets them at once."""

    def __init__(self, rig: Rig, folder: Path, identity: UnitIdentity, texts: list[tuple[int, ...]]) -> None:
        self._rig, self._folder, self._identity, self._texts = rig, folder, identity, texts
        self._cache = UnitCache(BlockManager(rig.pool.num_blocks, rig.pool.block_size), keep_unused=False)
        self._changed = threading.Event()

    def open(self, host_bytes: int) -> PrecomputedUnits:
        """The folder with its files mapped anew."""
        return PrecomputedUnits(self._folder, self._identity, self._rig.pool, host_bytes, self._changed.set)

    def load_all(self, units: PrecomputedUnits) -> None:
        """Every unit once, one after the other."""
        for tokens in self._texts:
            unit = self._cache.acquire(tokens)
            while (state := units.load(unit)) is Load.READING:
                self._changed.wait()
                self._changed.clear()
            assert state is Load.DONE
            self._cache.release(unit)

    def load_cold(self) -> None:
        """Every unit once, from files of which nothing is in memory as far as the system obeys."""
        for shard in self._folder.glob(SHARDS):
            handle = os.open(shard, os.O_RDONLY)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)
        units = self.open(_FILES_ONLY)
        self.load_all(units)
        units.close()


def _loading(loader: Loader, device: str, repeats: int) -> dict[str, float]:
    """Seconds for all units, by where they come from."""
    warm = loader.open(_FILES_ONLY)
    found: dict[str, Callable[[], None]] = {
        "load_from_disk": loader.load_cold,
        "load_from_page_cache": lambda: loader.load_all(warm),
    }
    if device.startswith("cuda"):
        pinned = loader.open(1 << 40)
        found["load_from_host_memory"] = lambda: loader.load_all(pinned)
    return {name: seconds(function, device, repeats) for name, function in found.items()}


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shape", choices=list(_SHAPES), help="the model's shape; 100m on a CPU, 8b on a GPU")
    plots.add_option(parser)
    parser.add_argument("--folder", type=Path, help="where the units are written; the system's temporary folder")


def _load(size: Size, device: str) -> LoadedModel:
    if size.name == "builtin":
        return load_model(ModelConfig(device=device, dtype=size.dtype))
    return load_synthetic(size, device)


def _layers_of_the_model(size: Size, identity: UnitIdentity) -> int:
    return int(LLAMA["70b"]["num_hidden_layers"]) if size is _EIGHT_LAYERS else len(identity.layers)


if __name__ == "__main__":
    main()
