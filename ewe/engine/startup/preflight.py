"""What the settings ask of this machine, looked at before torch is imported and weights are read."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ewe.config import Config
from ewe.engine.models.model_files import adapter_folder, adapter_folders, model_source
from ewe.errors import PrecomputedError


def preflight(config: Config, has_model: bool = False) -> None:
    """Refuses settings that name a folder that is not there, or a device that cannot be used.

    has_model: whether the model is in memory already. Of the processes that torchrun has started for the parts of a
    model only rank 0 returns; the others work for it, and end with it. Raises ConfigError or PrecomputedError.
    """
    if config.model.tensor_parallel > 1 and "TORCHELASTIC_RUN_ID" in os.environ:
        from ewe.engine.distributed.torchrun import follow_rank_0

        follow_rank_0(config.model)
    for demand in demands(config, has_model):
        demand()


def demands(config: Config, has_model: bool = False) -> list[Callable[[], object]]:
    """What the settings ask of this machine: each raises ConfigError or PrecomputedError where it is not to be had."""
    units = partial(_check_units, config.memory.precomputed)
    if has_model:
        return [units]
    files = [partial(look, config.model) for look in (model_source, adapter_folder, adapter_folders)]
    return [*files, partial(_check_device, config.model.device), units]


def _check_device(device: str) -> None:
    if device not in ("auto", "cpu"):
        from ewe.engine.models.device import usable_device

        usable_device(device)


def _check_units(units: str | None) -> None:
    if units is not None and "://" not in units and not Path(units).expanduser().is_dir():
        raise PrecomputedError(f"memory.precomputed: {units} is no folder; `ewe index precompute` makes one")
