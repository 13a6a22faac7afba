"""Real models, which `ewe model get` brings; tests that need one skip where it is missing.

Import with `from real_models import require_model`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from environment import REAL_CACHE

import ewe
from ewe.config.known_models import KNOWN_MODELS


def require_model(name: str) -> str:
    """The name itself, once the tests' own cache knows the model too; skips the test if nobody has brought it."""
    real = Path(os.environ[REAL_CACHE]) / "models" / name
    if not real.is_dir():
        pytest.skip(f"the model {name} is not there: run `ewe model get {name}`")
    here = KNOWN_MODELS[name].folder
    if not here.exists():
        here.parent.mkdir(parents=True, exist_ok=True)
        here.symlink_to(real, target_is_directory=True)
    return name


def model_path() -> Path:
    """The directory of the built-in model, whose weights a checkout may lack."""
    return Path(ewe.__file__).parent / "evaluation" / "world" / "model"
