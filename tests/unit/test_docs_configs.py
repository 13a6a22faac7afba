"""Every file in configs/ and every sweep loads, and says at its top what it is for."""

from pathlib import Path

import pytest

from ewe.config import Config
from ewe.errors import ConfigError
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


def test_the_papers_loop_has_none_of_what_the_engine_adds() -> None:
    config = Config.from_yaml(CONFIGS[0].with_name("paper.yaml"))
    memory, feedback = config.memory, config.feedback
    assert config.policy == "ewe"
    assert (memory.placement, memory.merge, memory.question_passages) == ("bare", "paper", "units")
    assert (feedback.retrieve_every, feedback.verify_every, feedback.rewrite_when) == (1, 8, "unsupported")
    assert (feedback.on_exhausted, feedback.on_repeat, feedback.wordings) == ("keep_best", "keep", 1)


def test_builtin_is_what_the_builtin_model_brings() -> None:
    assert Config.from_yaml(OWN) == Config.from_yaml(OWN.parents[3] / "configs" / "builtin.yaml")


@pytest.mark.parametrize(
    "assignments",
    [
        ["memory.veracity_weighting=linear", "memory.question_passages=prompt"],
        ["longterm.path=some", "memory.question_passages=prompt"],
    ],
)
def test_passages_in_the_prompt_beside_weights_are_refused(assignments: list[str]) -> None:
    for one in assignments:
        Config().override([one])
    with pytest.raises(ConfigError, match="a prompt knows no weights"):
        Config().override(assignments)
    Config().override([*assignments, "memory.question_passages=auto"])


def test_a_bare_off_in_yaml_means_off() -> None:
    assert Config().override(["memory.veracity_weighting=off"]).memory.veracity_weighting == "off"
