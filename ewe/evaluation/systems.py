"""The systems that a table compares: policies by name, and sweeps over settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from ewe.config.config_files import load_yaml
from ewe.config.registry import POLICIES
from ewe.config.setting_names import unknown
from ewe.errors import ConfigError

_SWEEPS = Path(str(files("ewe.evaluation"))) / "sweeps"
_SWEEP_KEYS = {"axis", "settings", "series", "points"}


@dataclass(frozen=True, slots=True)
class System:
    """One row of a table: `key=value` settings on top of the shared ones; series, x: its place in a sweep's plot."""

    name: str
    settings: tuple[str, ...]
    series: str = ""
    x: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Systems that differ in one respect; axis: what x means, in words."""

    axis: str
    systems: tuple[System, ...]


def systems_of(policies: Sequence[str]) -> tuple[System, ...]:
    """One system per policy; raises ConfigError for a name that is no policy, or for none."""
    for name in policies:
        POLICIES.check(name)
    if not policies:
        raise ConfigError("name at least one policy")
    return tuple(System(name, (f"policy={name}",)) for name in dict.fromkeys(policies))


def shipped_sweeps() -> dict[str, Path]:
    """The sweeps that come with the package by name: those of the paper's tables and figures, and others."""
    return {path.stem: path for path in sorted(_SWEEPS.glob("*.yaml"))}


def find_sweep(name: str) -> Path:
    """The file of a sweep by its name in the package ("figure-3") or its path; raises ConfigError for neither."""
    shipped, path = shipped_sweeps(), Path(name).expanduser()
    if name in shipped:
        return shipped[name]
    if not path.is_file():
        raise ConfigError(f"--sweep: {unknown('sweep', name, list(shipped))}, and there is no such file")
    return path


def read_sweep(path: Path) -> Sweep:
    """The systems of a YAML file: every point of `points` in every line of `series`, under the shared `settings`.

    points, series (which counts most): name -> {group.key: value}. Raises ConfigError naming what is wrong.
    """
    values = load_yaml(path)
    surplus = sorted(map(str, set(values) - _SWEEP_KEYS))
    if surplus:
        raise ConfigError(f"{path}: {unknown('key', surplus[0], sorted(_SWEEP_KEYS))}")
    if not isinstance(values.get("points"), dict) or not values["points"]:
        raise ConfigError(f"{path}: `points` must name at least one point, each with its settings")
    shared = _assignments(values.get("settings"), f"{path}: settings")
    series = values.get("series") or {"": None}
    if not isinstance(series, dict):
        raise ConfigError(f"{path}: `series` must map names to settings")
    systems = [
        System(
            " ".join(filter(None, (str(line), str(point)))),
            (*shared, *_assignments(of_point, f"{path}: {point}"), *_assignments(of_line, f"{path}: {line}")),
            str(line),
            str(point),
        )
        for line, of_line in series.items()
        for point, of_point in values["points"].items()
    ]
    return Sweep(str(values.get("axis", "")), tuple(systems))


def _assignments(settings: Any, place: str) -> tuple[str, ...]:
    """Settings as `key=value`, values as YAML, for so they are read."""
    if not isinstance(settings or {}, Mapping):
        raise ConfigError(f"{place} must map group.key to a value")
    return tuple(f"{key}={yaml.safe_dump(value, default_flow_style=True)}" for key, value in (settings or {}).items())
