"""What can be said of settings before torch is imported and weights are read: are the model and its place there?"""

from __future__ import annotations

from pathlib import Path

from ewe.config import Config
from ewe.engine.model_files import adapter_folder, model_source
from ewe.errors import PrecomputedError


def preflight(config: Config, has_model: bool = False) -> None:
    """Refuses settings that name a folder that is not there, or a device that cannot be used.

    has_model: whether the model is in memory already. torch is imported only for a device other than "auto" and "cpu".
    Raises ConfigError or PrecomputedError.
    """
    if not has_model:
        model_source(config.model)
        adapter_folder(config.model)
        if config.model.device not in ("auto", "cpu"):
            from ewe.engine.device import usable_device

            usable_device(config.model.device)
    units = config.memory.precomputed
    if units is not None and not Path(units).expanduser().is_dir():
        raise PrecomputedError(f"memory.precomputed: {units} is no folder; `ewe index precompute` makes one")
