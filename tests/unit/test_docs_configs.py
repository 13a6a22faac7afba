"""Every file in configs/ and every sweep loads, and says at its top what it is for."""

from pathlib import Path

import pytest

from ewe.config import Config
from ewe.evaluation.systems import read_sweep, shipped_sweeps

SWEEPS = shipped_sweeps().values()
CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
OWN = Path(__file__).parents[2] / "ewe" / "evaluation" / "world" / "builtin.yaml"
POLICIES = {"ewe", "rag", "flare", "plain"}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_config_loads_and_opens_with_a_purpose(path: Path) -> None:
    Config.from_yaml(path)
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_every_sweep_makes_settings_and_opens_with_a_purpose(path: Path) -> None:
    assert path.read_text().startswith("# ")
    base = Config.from_yaml(OWN)
    assert len({base.override(system.settings) for system in read_sweep(path).systems}) > 1


def test_every_policy_has_a_setup() -> None:
    assert {Config.from_yaml(path).policy for path in CONFIGS} == POLICIES


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_builtin_model_gets_the_units_it_was_trained_with(path: Path) -> None:
    config, own = Config.from_yaml(path), Config.from_yaml(OWN)
    if config.model.name == "builtin":
        assert config.memory.unit_tokens == own.memory.unit_tokens
        assert config.memory.unit_template == own.memory.unit_template
    if config.datastore == config.verifier == "builtin":
        assert config.feedback.closed_world == own.feedback.closed_world


def test_builtin_is_what_the_builtin_model_brings() -> None:
    assert Config.from_yaml(OWN) == Config.from_yaml(OWN.parents[3] / "configs" / "builtin.yaml")


def test_a_bare_off_in_yaml_means_off() -> None:
    assert Config().override(["memory.veracity_weighting=off"]).memory.veracity_weighting == "off"
