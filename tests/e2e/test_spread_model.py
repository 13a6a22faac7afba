"""Engines of whose model a part lies elsewhere than the KV pool, against the same in one place."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from e2e.test_llm_builtin import Strict
from e2e.test_precomputed_units import PASSAGES, assert_like, settings_of
from e2e.test_tensor_parallel import BUILTIN, answer, assert_same_answers, needs_builtin, saved, write
from parity.families import CONFIGS
from parity.more_families import MORE, save_checkpoint
from parity.paged import PagedModel
from parity.test_units import CAPACITY, CASES, PROMPT, UNITS
from tolerances import LOGPROBS

from ewe import LLM, SamplingParams
from ewe.cli import eval_qa, model
from ewe.config import ModelConfig, resolve_config
from ewe.engine.models import device_map
from ewe.engine.models.loader import load_model
from ewe.engine.startup.precompute import precompute
from ewe.errors import ConfigError
from ewe.evaluation import factuality_run
from ewe.evaluation.factuality import Found
from ewe.evaluation.world.builtin import load_world

AUTO = "model.device_map=auto"


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host lacks a byte for all weights, so that two layers are read from the disk whenever they run."""
    plan = device_map.plan_device_map

    def tight(model: Any, rooms: Any, pool_gib: float | None = None) -> Any:
        return plan(model, {"cpu": sum(item.nbytes for item in model.parameters()) - 1, "disk": inf}, 0.0)

    monkeypatch.setattr(device_map, "plan_device_map", tight)


def num_on_disk(model: Any) -> int:
    return sum(item.is_meta for item in model.parameters())


@needs_builtin
@pytest.mark.slow
def test_layers_on_a_disk_write_what_layers_in_memory_do(on_disk: None) -> None:
    with LLM(config=BUILTIN, verifier=Strict()) as llm:
        expected = write(llm)
    with LLM(config=BUILTIN.override([AUTO]), verifier=Strict()) as llm:
        engine = llm.client.engine
        model = engine.loaded.model
        away = num_on_disk(model)
        assert away > 0
        assert model.device.type == "cpu"
        assert engine.budget is not None
        assert engine.budget.weights == sum(
            item.nbytes for item in (*model.parameters(), *model.buffers()) if not item.is_meta
        )
        assert_same_answers(write(llm), expected)
        assert num_on_disk(model) == away


@needs_builtin
def test_a_model_that_fits_is_loaded_as_ever() -> None:
    loaded, plain = (load_model(ModelConfig(device="cpu", device_map=item)).model for item in (None, "auto"))
    assert [type(module) for module in loaded.modules()] == [type(module) for module in plain.modules()]
    assert not any(hasattr(module, "_hf_hook") for module in loaded.modules())


@pytest.mark.parametrize("policy", ["nest", "dragin"])
@pytest.mark.slow
@needs_builtin
def test_policies_that_look_inside_the_model(on_disk: None, policy: str) -> None:
    config = resolve_config("builtin", None).override([f"policy={policy}", "verifier=none"])
    prompt = load_world().prompts(kinds=("life",))[0].text
    found = []
    for chosen in (config, config.override([AUTO])):
        with LLM(config=chosen) as llm:
            found += llm.generate(prompt, SamplingParams(max_tokens=20))
    assert_like(*found)
    assert found[0].stats.tokens_copied == found[1].stats.tokens_copied


@pytest.mark.slow
@pytest.mark.parametrize("cache_dtype", ["auto", "fp8_e4m3"])
def test_units_from_files_are_those_of_the_same_weights_elsewhere(
    on_disk: None, tmp_path: Path, cache_dtype: str
) -> None:
    model, out = saved("llama", tmp_path), tmp_path / "units"
    config = settings_of().override([f"cache.dtype={cache_dtype}", AUTO])
    precompute(load_model(ModelConfig(name=model, device_map="auto")), config, PASSAGES[1:], out)
    config = config.override([f"memory.precomputed={out}"])
    found, expected = (
        answer(model, "The sea", config),
        answer(model, "The sea", config.override(["model.device_map=null"])),
    )
    assert_like(found, expected)
    assert (found.stats.units_loaded, found.stats.units_encoded) == (2, 1)
    assert (expected.stats.units_loaded, expected.stats.units_encoded) == (2, 1)


def logits(model: Any) -> torch.Tensor:
    merge, weights = CASES["weighted"]
    paged = PagedModel(model, merge)
    return paged.logits(paged.context(CAPACITY, paged.encode(UNITS), weights), PROMPT)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in ("llama", "mixtral"))) for name in (*CONFIGS, *MORE)],
)
def test_every_family(on_disk: None, tmp_path: Path, name: str) -> None:
    save_checkpoint(CONFIGS[name] if name in CONFIGS else MORE[name](), tmp_path)
    plain, spread = (load_model(ModelConfig(name=str(tmp_path), device_map=item)).model for item in (None, "auto"))
    assert num_on_disk(spread) > 0
    torch.testing.assert_close(logits(spread), logits(plain), atol=LOGPROBS, rtol=0)


@needs_builtin
def test_evaluations_leave_free_for_the_pool_what_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    config = resolve_config("builtin", None).override([AUTO, "cache.memory_gib=0.375"])

    def tell(model: Any, rooms: Any, pool_gib: float | None = None) -> Any:
        raise ConfigError(f"asked for {pool_gib}")

    monkeypatch.setattr(device_map, "plan_device_map", tell)
    job = Mock(systems=[Mock(settings=[])], parts=[Mock(items=[Mock(id="1")])], config=config)
    with pytest.raises(ConfigError, match=r"asked for 0\.375"):
        factuality_run.write(job, Found(), print)
    job.missing.return_value = 1
    with pytest.raises(ConfigError, match=r"asked for 0\.375"):
        eval_qa._ask(job, config, None, Mock(records=[]))
    with pytest.raises(ConfigError, match=r"asked for 0\.375"):
        model._diagnose(config, Mock())
