"""Which device each layer of a model lies on, where the first has no room for all of them.

accelerate moves what a layer is given to the layer's device, and weights from host memory or the disk to the first
device, each for the time of its product.
"""

import atexit
import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from math import inf
from typing import Any

import psutil
import torch
from transformers import AutoModelForCausalLM

from ewe.config.loading import WEIGHTS_LOCK
from ewe.engine.models.compiled import decoder_layers
from ewe.errors import ConfigError, DeviceMemoryError

Place = int | str
"""A GPU by its number, "cpu" or "disk", as accelerate names them."""

_log = logging.getLogger(__name__)
# Of a device's free memory; the rest is for activations and for what the libraries take.
_USABLE = 0.9
# What the pool gets where nobody says how much: of a GPU, or of the host's memory.
_POOL_SHARE = 0.25
_CPU_POOL_GIB = 1.0
_HOST = {"cpu": "in host memory", "disk": "on disk"}
_GIB = 1 << 30


def spreading(model_config: Any, dtype: torch.dtype, device: torch.device, pool_gib: float | None) -> dict[str, Any]:
    """What has transformers spread a checkpoint, as options; empty if `device` has room for all of it.

    device: the first GPU, or the CPU; it has the KV pool. pool_gib: what stays free for the pool; None: a quarter of
    what is free on the GPU, 1 GiB on the CPU. Raises ConfigError without accelerate or for another device, and
    DeviceMemoryError without room.
    """
    if find_spec("accelerate") is None:
        raise ConfigError('model.device_map needs the package accelerate: pip install "ewe-engine[device-map]"')
    if str(device) not in ("cpu", "cuda:0"):
        raise ConfigError(f"model.device_map begins at the first GPU: set model.device to auto instead of {device}")
    with WEIGHTS_LOCK, torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(model_config, dtype=dtype)  # type: ignore[no-untyped-call]
    places = plan_device_map(model, _rooms(device), pool_gib)
    if not places:
        return {}
    folder = tempfile.mkdtemp(prefix="ewe-weights-")  # transformers writes there what a checkpoint keeps in other forms
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"device_map": places, "offload_folder": folder}


def _rooms(device: torch.device) -> dict[Place, float]:
    """Bytes that weights may take in every place; `device` comes first."""
    gpus = range(torch.cuda.device_count()) if device.type == "cuda" else ()
    rooms: dict[Place, float] = {gpu: torch.cuda.mem_get_info(gpu)[0] * _USABLE for gpu in gpus}
    return rooms | {"cpu": psutil.virtual_memory().available * _USABLE, "disk": inf}


def plan_device_map(model: Any, rooms: Mapping[Place, float], pool_gib: float | None = None) -> dict[str, Place]:
    """The place of every part of a model, whose weights need not be there; empty if the first has room for all.

    The first of `rooms` (bytes) has the KV pool and all but the decoder layers. These fill the other GPUs, then what is
    left of the first, then host memory, then the disk. Raises DeviceMemoryError without room.
    """
    of_text = set(model.get_decoder().modules())  # the layers that see images stay together
    layers = [layer for layer in decoder_layers(model) if layer in of_text]
    sizes = [_num_bytes(layer) for layer in layers]
    rest = _num_bytes(model) - sum(sizes)
    first, *others = rooms
    if pool_gib is None:
        pool_gib = _CPU_POOL_GIB if first == "cpu" else rooms[first] * _POOL_SHARE / _GIB
    left = rooms[first] - rest - pool_gib * _GIB
    if sum(sizes) <= left:
        return {}
    largest = max(sizes, default=0)
    if left < largest or not layers:
        raise DeviceMemoryError(
            f"there is no room {_named(first)} for the KV pool, {rest / _GIB:.1f} GiB of embeddings and a layer of "
            f"{largest / _GIB:.1f} GiB: lower cache.memory_gib, or take a smaller model"
        )
    # Weights of the host and the disk pass through the first device.
    order = [*(place for place in others if isinstance(place, int)), first, *_HOST]
    placed = _fill(sizes, {place: left - largest if place == first else rooms[place] for place in order})
    counts = ", ".join(f"{count} {_named(place)}" for place, count in Counter(placed).items())
    _log.warning("the model has no room on one device; of its layers lie %s", counts)
    return _parts(model, "", dict(zip(layers, placed, strict=True)), first)


def _named(place: Place) -> str:
    return f"on GPU {place}" if isinstance(place, int) else _HOST[place]


def _num_bytes(module: torch.nn.Module) -> int:
    return sum(item.nbytes for item in module.parameters())


def _fill(sizes: list[int], rooms: Mapping[Place, float]) -> list[Place]:
    """Where each layer goes: each place takes layers, in order, until one has no room there."""
    order, left, places = iter(rooms), -inf, list[Place]()
    for size in sizes:
        while size > left:
            place = next(order)
            left = rooms[place]
        left -= size
        places.append(place)
    return places


def _parts(module: Any, prefix: str, layers: Mapping[Any, Place], other: Place) -> dict[str, Place]:
    """The largest modules that are a layer or hold none, by name, with their places."""
    places: dict[str, Place] = {}
    for name, child in module.named_children():
        if child in layers or layers.keys().isdisjoint(child.modules()):
            places[prefix + name] = layers.get(child, other)
        else:
            places |= _parts(child, f"{prefix}{name}.", layers, other)
    return places
