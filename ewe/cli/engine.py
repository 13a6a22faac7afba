"""From options to settings to an engine.

Owns: how the command line's options become one `Config`. Knows `ewe.config` and `LLM`, both imported when called.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from ewe import LLM
    from ewe.config import Config


def settings_of(
    file: Path | None,
    assignments: Sequence[str] | None,
    model: str | None = None,
    datastore: str | None = None,
    verifier: str | None = None,
) -> Config:
    """The settings of a file, changed by --model, --datastore and --verifier, then by --set. Raises ConfigError."""
    from ewe.config import Config

    named = {"model.name": model, "datastore": datastore, "verifier": verifier}
    # As YAML, because assignments are read as YAML: a folder called "1e5" or "no" stays a text.
    first = [f"{key}={yaml.safe_dump(value).strip()}" for key, value in named.items() if value is not None]
    config = Config.from_yaml(file) if file else Config()
    return config.override([*first, *(assignments or ())])


def builtin_settings(assignments: Sequence[str]) -> Config:
    """The settings that the built-in world and model come with, changed by --set. Raises ConfigError."""
    from ewe.config import Config
    from ewe.world.builtin import settings_path

    return Config.from_yaml(settings_path()).override(assignments)


def open_llm(config: Config) -> LLM:
    """The engine with its model loaded."""
    from ewe import LLM

    return LLM(config=config)
