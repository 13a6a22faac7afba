"""Judges that are models: their folders are checked at once, they are loaded with the first question."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewe.errors import JudgeError
from ewe.known_models import ADAPTER_SETTINGS, ADAPTER_WEIGHTS, KNOWN_MODELS
from ewe.lazy import Lazy
from ewe.registry import JUDGES
from ewe.verification.judges.heads import read_head
from ewe.verification.judges.protocol import Judge, Pair
from ewe.vocabulary import hint

BASE_SETTINGS = "judge.json"
"""What the base judge's folder holds beside its adapter."""

_BASE_MODEL = "smollm2"
_UNNAMED = {"0": "LABEL_0", "1": "LABEL_1"}  # what transformers calls the outputs of a model that does not name them


class LazyJudge:
    """A judge that is loaded when it is first asked, from whatever thread; `judge` raises what loading raises, too."""

    def __init__(self, load: Callable[[], Judge], name: str) -> None:
        self._judge = Lazy(load)
        self.name = name

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities float32 [pairs, 3]: supported, refuted, inconclusive."""
        return self._judge.get().judge(pairs)

    def warm(self) -> None:
        """Loads the judge."""
        self._judge.get()


def builtin_path() -> Path:
    """The folder of the built-in judge; it may be missing from an incomplete installation."""
    return Path(str(files("ewe"))) / "verification" / "judges" / "builtin_model"


def check_builtin(folder: Path) -> None:
    """Raises JudgeError if the built-in judge is not in its folder."""
    if not (folder / "config.json").is_file() or not (folder / "model.safetensors").is_file():
        raise JudgeError(f"the built-in judge is missing from this installation ({folder}); reinstall the package")


def base_adapter_path() -> Path:
    """The folder of the base judge's adapter; it may be missing from an incomplete installation."""
    return Path(str(files("ewe"))) / "verification" / "judges" / "base_adapter"


def base_model_path() -> Path:
    """The folder of the chat model under the base judge; it appears with `ewe model get`."""
    return KNOWN_MODELS[_BASE_MODEL].folder


def check_base(folder: Path, model: Path) -> None:
    """Raises JudgeError if the base judge's adapter, its chat model or the package that merges them is not there."""
    if not all((folder / name).is_file() for name in (ADAPTER_SETTINGS, ADAPTER_WEIGHTS, BASE_SETTINGS)):
        raise JudgeError(f"the base judge is missing from this installation ({folder}); reinstall the package")
    if find_spec("peft") is None:
        raise JudgeError('the base judge needs the package peft: pip install "ewe-engine[adapters]"')
    if not model.is_dir():
        raise JudgeError(f"the judge base needs the model {_BASE_MODEL}: run `ewe model get {_BASE_MODEL}`")


def is_folder(name: str) -> bool:
    """Whether a judge's name is that of a folder, rather than a hub id. Raises JudgeError for one that is not there."""
    folder = Path(name).expanduser()
    if not folder.is_dir() and (folder.is_absolute() or name.startswith((".", "~"))):
        raise JudgeError(f"the judge {name!r} is no folder; {hint(name, JUDGES.names)}")
    return folder.is_dir()


def check_folder(name: str, labels: Mapping[str, str] | None) -> None:
    """Raises JudgeError for a folder that holds no safetensors, or a model whose labels are not understood."""
    folder = Path(name).expanduser()
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_bytes())
        names = {int(index): str(text) for index, text in config.get("id2label", _UNNAMED).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise JudgeError(f"{folder} holds no model that transformers could read: {error}") from error
    check_head(config.get("problem_type"), name)
    read_head(names, name, labels)
    if not any(folder.glob("*.safetensors")):
        raise JudgeError(f"{folder} holds no *.safetensors: a judge's weights are read from nothing else")


def check_head(problem_type: object, name: str) -> None:
    """Raises JudgeError for a model whose labels do not exclude each other."""
    if problem_type == "multi_label_classification":
        raise JudgeError(f"{name} gives labels that do not exclude each other, so it is no judge of claims")
