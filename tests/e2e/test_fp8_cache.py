"""Whole engines whose keys and values are in fp8: answers, memory, precomputed units."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from e2e.test_precomputed_units import PASSAGES, answer, assert_alone, assert_like, settings_of, tiny
from parity.families import FAMILIES
from real_models import model_path
from typer.testing import CliRunner

from ewe import LLM, SamplingParams
from ewe.cli.main import app
from ewe.config import Config, resolve_config
from ewe.engine.model_executor.model_runner import layer_shapes
from ewe.engine.startup.budget import plan_memory
from ewe.engine.startup.precompute import precompute
from ewe.engine.units.unit_files import SHARDS
from ewe.errors import ConfigError, PrecomputedError
from ewe.evaluation.world.builtin import builtin_datastore

IN_FP8 = ["cache.dtype=fp8_e4m3"]


def fp8_settings(precomputed: Path | None = None, **memory: Any) -> Config:
    return settings_of(precomputed, **memory).override(IN_FP8)


# What families differ in is tested with fp8 in tests/parity/test_fp8_models.py, with loaded units in
# test_precomputed_units.py; both at once here.
@pytest.mark.parametrize(
    "family",
    [pytest.param(name, marks=[] if name in ("llama", "gemma3") else pytest.mark.slow) for name in FAMILIES],
)
def test_loaded_units_give_the_same_bits_and_the_same_answer(tmp_path: Path, family: str) -> None:
    out = tmp_path / "units"
    report = precompute(tiny(family), fp8_settings(), PASSAGES, out)
    assert report.encoded == 3
    encoded, expected = answer(tiny(family), fp8_settings())
    generation, kv = answer(tiny(family), fp8_settings(out))
    assert (generation.stats.units_loaded, encoded.stats.units_encoded) == (3, 3)
    assert kv.keys() == expected.keys()
    assert all(tensor.dtype == torch.uint8 for tensor in kv.values())
    assert_alone(tiny(family), fp8_settings(), kv)
    assert report.num_bytes == sum(tensor.nbytes for tensor in kv.values())
    # What shares a pass may round to the neighbour among 8-bit floats, a sixteenth away.
    assert_like(generation, encoded, atol=5e-3)


def test_units_of_another_cache_dtype_are_refused(tmp_path: Path) -> None:
    for name, made, used, said in (
        ("plain", settings_of(), fp8_settings, "cache.dtype is 'auto' there and 'fp8_e4m3' here"),
        ("small", fp8_settings(), settings_of, "cache.dtype is 'fp8_e4m3' there and 'auto' here"),
    ):
        precompute(tiny("llama"), made, PASSAGES, tmp_path / name)
        with pytest.raises(PrecomputedError, match=said):
            LLM("tiny", config=used(tmp_path / name), loaded=tiny("llama"))
        with pytest.raises(PrecomputedError, match=said):
            precompute(tiny("llama"), used(), PASSAGES, tmp_path / name)


def test_a_shard_of_another_cache_dtype_is_refused_by_its_name(tmp_path: Path) -> None:
    for name, config in (("plain", settings_of()), ("small", fp8_settings())):
        precompute(tiny("llama"), config, PASSAGES, tmp_path / name)
    [shard] = (tmp_path / "plain").glob(SHARDS)
    shard.replace(tmp_path / "small" / shard.name)
    with pytest.raises(PrecomputedError, match=rf"{shard.name} belongs to another"):
        LLM("tiny", config=fp8_settings(tmp_path / "small"), loaded=tiny("llama"))


def test_the_budget_counts_the_scales() -> None:
    loaded = tiny("llama")
    shapes = layer_shapes(loaded.model)
    heads, width = shapes[0].num_kv_heads, shapes[0].key_dim
    budget = plan_memory(fp8_settings(), loaded, shapes)
    assert budget.block_bytes == len(shapes) * budget.block_size * 2 * heads * (width + 4)
    with LLM("tiny", config=fp8_settings(), loaded=loaded) as llm:
        pool = llm.client.engine.pool
        taken = sum(item.nbytes for item in (*pool.keys, *pool.values, *pool.key_scales, *pool.value_scales))
    assert taken == budget.pool


def test_an_unknown_cache_dtype_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"cache\.dtype"):
        Config.from_mapping({"cache": {"dtype": "fp8"}})


@pytest.mark.slow
@pytest.mark.skipif(
    not (model_path() / "model.safetensors").is_file(), reason="the built-in model has no weights in this checkout"
)
def test_the_command_and_the_builtin_model(tmp_path: Path) -> None:
    store, out = tmp_path / "store.jsonl", tmp_path / "units"
    passages = builtin_datastore().passages[:8]
    store.write_text("".join(f"{json.dumps(asdict(passage))}\n" for passage in passages))
    done = CliRunner().invoke(app, ["index", "precompute", str(store), "--out", str(out), "--set", *IN_FP8])
    assert done.exit_code == 0, done.output
    assert "8 units encoded: " in done.output
    found = []
    for precomputed in ("null", str(out)):
        config = resolve_config("builtin", None).override(
            [f"datastore={store}", "verifier=builtin", f"memory.precomputed={precomputed}", *IN_FP8]
        )
        with LLM(config=config) as llm:
            [generation] = llm.generate("Tell me about " + passages[0].title, SamplingParams(max_tokens=40))
            llm.check_integrity()
        found.append(generation)
    encoded, loaded = found
    assert loaded.token_ids == encoded.token_ids
    assert encoded.stats.units_loaded == 0 < loaded.stats.units_loaded
