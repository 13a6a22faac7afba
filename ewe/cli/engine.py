"""From options to settings to an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from rich.console import Console
from rich.text import Text

from ewe.config import Config, resolve_config
from ewe.errors import ConfigError

if TYPE_CHECKING:
    from ewe.engine.models.loader import LoadedModel
    from ewe.llm import LLM


def settings_of(
    model: str | None = None,
    file: Path | None = None,
    assignments: Sequence[str] | None = None,
    *,
    adapter: str | None = None,
    datastore: str | None = None,
    verifier: str | None = None,
) -> Config:
    """The settings of a file, changed by --adapter, --datastore and --verifier, then by --set.

    Without a file the built-in model brings its own settings, any other model the defaults. Raises ConfigError.
    """
    named = as_assignments({"model.adapter": adapter, "datastore": datastore, "verifier": verifier})
    return resolve_config(model, file).override([*named, *(assignments or ())])


def as_assignments(named: Mapping[str, object]) -> list[str]:
    """`key=value` for every option that was given; numbers and lists stay what they are, the rest is text."""
    given = {key: value for key, value in named.items() if value is not None}
    plain = {key: value if isinstance(value, int | list) else str(value) for key, value in given.items()}
    # As YAML, because assignments are read as YAML: a file called "1e5" or "no" stays a text.
    return [f"{key}={yaml.safe_dump(value)}" for key, value in plain.items()]


@contextmanager
def server_packages(command: str) -> Iterator[None]:
    """Around imports of the server: raises ConfigError, which says what to install, where a package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "ewe":
            raise
        raise ConfigError(f"`{command}` needs {error.name}: pip install 'ewe-engine[serve]'") from error


def open_model(config: Config) -> LoadedModel:
    """The model alone; while it loads, a terminal says how far it is."""
    from ewe.engine.models.loader import load_model

    name = config.model.name
    with Console(stderr=True).status(Text(f"{name} ...")) as status:
        return load_model(
            config.model, lambda step: status.update(Text(f"{name}: {step} ...")), pool_gib=config.cache.memory_gib
        )


def open_llm(config: Config, loaded: LoadedModel | None = None) -> LLM:
    """The engine with its model loaded, if it is not; while it loads, a terminal says how far it is."""

    from ewe.llm import LLM

    console = Console(stderr=True)
    with console.status(Text(f"{config.model.name} ...")) as status:
        llm = LLM(
            config=config, loaded=loaded, on_load=lambda step: status.update(Text(f"{config.model.name}: {step} ..."))
        )
    if console.is_terminal:
        budget = llm.client.engine.budget
        lines = [str(llm.client.components.summary), *([f"memory: {budget.summary()}"] if budget is not None else [])]
        for line in lines:
            console.print(line, style="bright_black", markup=False, highlight=False)
    return llm
