"""Which layer goes where: all of it in order, no place beyond its room, and what cannot be is refused."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from math import inf
from pathlib import Path
from typing import Any

import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from parity.families import CONFIGS
from parity.more_families import MORE
from transformers import AutoModelForCausalLM

from ewe.config import Config, ModelConfig
from ewe.engine.models import device_map
from ewe.engine.models.compiled import decoder_layers
from ewe.engine.models.device_map import Place, plan_device_map, spreading
from ewe.errors import ConfigError, DeviceMemoryError

GIB = 1 << 30


def without_weights(config: Any) -> Any:
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(deepcopy(config), dtype=torch.float32)


@pytest.fixture(scope="module")
def llama() -> Any:
    config = deepcopy(CONFIGS["llama"])
    config.num_hidden_layers = 12
    return without_weights(config)


def sizes_of(model: Any) -> tuple[int, int]:
    """Bytes of a layer, and of what is no layer."""
    layers = decoder_layers(model)
    layer = sum(item.nbytes for item in layers[0].parameters())
    return layer, sum(item.nbytes for item in model.parameters()) - layer * len(layers)


def layers_in(places: Mapping[str, Place]) -> list[Place]:
    return [place for name, place in places.items() if "layers." in name]


@examples(30)
@given(st.lists(st.floats(0, 5), min_size=1, max_size=3), st.floats(0, 5), st.integers(0, 2))
def test_layers_fill_the_other_gpus_then_the_first_then_the_host_then_the_disk(
    llama: Any, gpus: list[float], host: float, pool: int
) -> None:
    layer, rest = sizes_of(llama)
    begin = rest + pool * layer  # what the first GPU has beside layers
    rooms: dict[Place, float] = {gpu: room * layer + begin * (gpu == 0) for gpu, room in enumerate(gpus)}
    if gpus[0] < 1:
        with pytest.raises(DeviceMemoryError, match=r"on GPU 0 .*cache\.memory_gib"):
            plan_device_map(llama, {**rooms, "cpu": host * layer, "disk": inf}, pool * layer / GIB)
        return
    places = plan_device_map(llama, {**rooms, "cpu": host * layer, "disk": inf}, pool * layer / GIB)
    fits = {**{gpu: int(room) for gpu, room in enumerate(gpus)}, 0: int(gpus[0]) - 1, "cpu": int(host), "disk": 12}
    order = [*range(1, len(gpus)), 0, "cpu", "disk"]
    assert layers_in(places) == [place for place in order for _ in range(fits[place])][:12]
    assert {place for name, place in places.items() if "layers." not in name} == {0}


def test_every_weight_has_one_place_and_embeddings_are_on_the_first(llama: Any) -> None:
    layer, rest = sizes_of(llama)
    places = plan_device_map(llama, {"cpu": rest + 3 * layer, "disk": inf}, 0.0)
    owners = [[name for name in places if f"{key}.".startswith(f"{name}.")] for key in llama.state_dict()]
    assert {len(item) for item in owners} == {1}
    assert layers_in(places) == ["cpu"] * 2 + ["disk"] * 10  # one layer passes through
    assert {places["model.embed_tokens"], places["lm_head"], places["model.norm"]} == {"cpu"}


def test_what_fits_is_left_in_one_place(llama: Any) -> None:
    total = sum(item.nbytes for item in llama.parameters())
    assert plan_device_map(llama, {0: total, "cpu": 0.0, "disk": inf}, 0.0) == {}
    assert plan_device_map(llama, {0: total - 1, "cpu": 0.0, "disk": inf}, 0.0)
    # The pool has a quarter of a GPU if nothing else is said, and 1 GiB of the host.
    assert plan_device_map(llama, {0: total * 4 / 3 + 1, "cpu": 0.0, "disk": inf}) == {}
    assert plan_device_map(llama, {0: total * 4 / 3 - 9, "cpu": 0.0, "disk": inf})
    assert plan_device_map(llama, {"cpu": total + GIB, "disk": inf}) == {}
    assert plan_device_map(llama, {"cpu": total + GIB - 1, "disk": inf})


def test_of_a_model_that_sees_images_only_the_layers_of_its_text_leave_the_first_device() -> None:
    model = without_weights(MORE["gemma3/images"]())
    whole = sum(item.nbytes for item in model.parameters())
    layers = [sum(item.nbytes for item in layer.parameters()) for layer in model.model.language_model.layers]
    places = plan_device_map(model, {0: whole - sum(layers) + max(layers), 1: inf, "cpu": 0.0, "disk": inf}, 0.0)
    moved = {f"model.language_model.layers.{number}" for number in range(3)}
    assert {name for name, place in places.items() if place == 1} == moved


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["model.tensor_parallel=2"], "tensor_parallel .* device_map"),
        (["model.weights=int8"], r"device_map .* model\.weights"),
        (["model.compile=true"], r"device_map .* model\.compile"),
        (["model.adapter=a"], r"device_map .* model\.adapter"),
        (["model.adapters={a: b}"], r"device_map .* model\.adapters"),
        (["model.load_format=dummy"], "device_map .* load_format dummy"),
        (["model.name=a.gguf"], "device_map .* GGUF"),
    ],
)
def test_what_it_cannot_be_had_with_is_refused(settings: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Config().override([*settings, "model.device_map=auto"])


def test_another_device_than_the_first_and_a_missing_package_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"model\.device to auto instead of cuda:1"):
        spreading(CONFIGS["llama"], torch.float32, torch.device("cuda", 1), None)
    monkeypatch.setattr(device_map, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"accelerate: pip install .ewe-engine\[device-map\]"):
        spreading(CONFIGS["llama"], torch.float32, torch.device("cpu"), None)


def test_rooms_are_those_of_every_gpu_and_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(device_map._rooms(torch.device("cpu"))) == ["cpu", "disk"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda gpu: (10 * (gpu + 1), 100))
    rooms = device_map._rooms(torch.device("cuda", 0))
    assert list(rooms) == [0, 1, "cpu", "disk"]
    assert (rooms[0], rooms[1]) == (9, 18)


def test_the_setting_is_auto_or_nothing(tmp_path: Path) -> None:
    assert ModelConfig().device_map is None
    with pytest.raises(ConfigError, match=r"model\.device_map"):
        Config().override(["model.device_map=balanced"])
