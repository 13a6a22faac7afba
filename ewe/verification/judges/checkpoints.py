"""The folders of judges that are models: where they lie, what they must hold, what a model's outputs say of a claim."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewe.config.known_models import ADAPTER_SETTINGS, ADAPTER_WEIGHTS, KNOWN_MODELS
from ewe.config.registry import JUDGES
from ewe.config.setting_names import hint
from ewe.errors import JudgeError
from ewe.verification.combination import Thresholds
from ewe.verification.judges.protocol import INCONCLUSIVE, REFUTED, SUPPORTED, ReadingWindow

# Models for natural-language inference and for fact checking name the same three things differently. What only says
# "not supported" may be refuted or open: such a label is no evidence against a claim.
_SPELLINGS = {
    SUPPORTED: """supported supports support entailment entails entailed entail attributable consistent factual
        grounded""",
    REFUTED: "refuted refutes refute contradiction contradicts contradicted contradictory contradict",
    INCONCLUSIVE: """inconclusive neutral notenoughinfo notenoughinformation nei unverifiable notsupported unsupported
        notentailment notentailed nonentailment notattributable inconsistent notconsistent notfactual nonfactual
        notgrounded ungrounded hallucination hallucinated""",
}
_COLUMN_OF_NAME = {name: column for column, names in _SPELLINGS.items() for name in names.split()}
_GIVEN = {"supported": SUPPORTED, "refuted": REFUTED, "inconclusive": INCONCLUSIVE}
_NO_LETTER = re.compile(r"[^a-z]")


@dataclass(frozen=True, slots=True)
class Head:
    """How logits become probabilities of verdicts.

    columns: per logit, the verdict's column. single: the one logit is the log-odds of "supported". temperature divides
    the logits (Guo et al. 2017).
    """

    columns: tuple[int, ...]
    temperature: float = 1.0

    @property
    def single(self) -> bool:
        """Whether one logit stands for supported against everything else."""
        return len(self.columns) == 1

    def probabilities(self, logits: NDArray[np.floating]) -> NDArray[np.float64]:
        """float64 [pairs, 3] from logits [pairs, labels]; labels of one verdict add up, absent verdicts get 0."""
        scaled = np.asarray(logits, dtype=np.float64) / self.temperature
        if self.single:
            scaled = np.concatenate([scaled, np.zeros_like(scaled)], axis=1)
        columns = (SUPPORTED, INCONCLUSIVE) if self.single else self.columns
        shares = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        result = np.zeros((len(shares), 3))
        for index, column in enumerate(columns):
            result[:, column] += shares[:, index]
        return result


def read_head(names: Mapping[int, str], model: str, labels: Mapping[str, str] | None = None) -> Head:
    """The head of a model whose outputs have these names ({index: label}); `labels` maps names to verdicts.

    A label that only denies support ("not_entailment", "hallucinated") counts as inconclusive: it does not tell what
    is refuted from what is open. Raises JudgeError if a label's meaning is not known, if none means supported, or if
    `labels` names labels or verdicts that there are not.
    """
    given = _given(names, model, labels or {})
    meant = {name: _COLUMN_OF_NAME.get(_NO_LETTER.sub("", name.lower())) for name in names.values()}
    columns = [given.get(name, meant[name]) for _, name in sorted(names.items())]
    unknown = [name for (_, name), column in zip(sorted(names.items()), columns, strict=True) if column is None]
    if unknown:
        raise JudgeError(
            f"{model} calls its outputs {', '.join(names[i] for i in sorted(names))}: say what "
            f"{', '.join(unknown)} {'means' if len(unknown) == 1 else 'mean'} with a mapping to supported, refuted or "
            f"inconclusive, such as labels={{{unknown[0]!r}: 'supported'}}"
        )
    if SUPPORTED not in columns:
        raise JudgeError(f"{model} has no output for supported claims ({', '.join(names.values())}), so it is no judge")
    if len(columns) > 1 and len(set(columns)) == 1:
        raise JudgeError(f"{model}: all of its outputs are taken for supported; one must stand for something else")
    return Head(tuple(column for column in columns if column is not None))


def _given(names: Mapping[int, str], model: str, labels: Mapping[str, str]) -> dict[str, int]:
    """The mapping that the caller gave, as columns."""
    strange = [name for name in labels if name not in names.values()]
    if strange:
        raise JudgeError(f"{model} has no output {', '.join(strange)}; it has {', '.join(names.values())}")
    wrong = sorted({verdict for verdict in labels.values() if verdict not in _GIVEN})
    if wrong:
        raise JudgeError(f"{model}: labels map to supported, refuted or inconclusive, not to {', '.join(wrong)}")
    return {name: _GIVEN[verdict] for name, verdict in labels.items()}


JUDGE_SETTINGS = "judge.json"
"""What the folder of a judge that is an adapter holds beside it."""

_ADAPTER_FILES = (ADAPTER_SETTINGS, ADAPTER_WEIGHTS, JUDGE_SETTINGS)
_BASE_MODEL = "smollm2"
_UNNAMED = {"0": "LABEL_0", "1": "LABEL_1"}  # what transformers calls the outputs of a model that does not name them


def builtin_path() -> Path:
    """The folder of the built-in judge; it may be missing from an incomplete installation."""
    return _part_of_the_package("builtin_model")


def check_builtin(folder: Path) -> None:
    """Raises JudgeError if the built-in judge is not in its folder."""
    if not (folder / "config.json").is_file() or not (folder / "model.safetensors").is_file():
        raise JudgeError(f"the built-in judge is missing from this installation ({folder}); reinstall the package")


def base_adapter_path() -> Path:
    """The folder of the base judge's adapter; it may be missing from an incomplete installation."""
    return _part_of_the_package("base_adapter")


def reader_adapter_path() -> Path:
    """The folder of the reading judge's adapter; it may be missing from an incomplete installation."""
    return _part_of_the_package("reader_adapter")


def _part_of_the_package(folder: str) -> Path:
    return Path(str(files("ewe"))) / "verification" / "judges" / folder


def base_model_path() -> Path:
    """The folder of the chat model under the base judge; it appears with `ewe model get`."""
    return KNOWN_MODELS[_BASE_MODEL].folder


def check_base(folder: Path, model: Path) -> None:
    """Raises JudgeError if the base judge's adapter, its chat model or the package that merges them is not there."""
    if not all((folder / name).is_file() for name in _ADAPTER_FILES):
        raise JudgeError(f"the base judge is missing from this installation ({folder}); reinstall the package")
    _check_peft("base")
    if not model.is_dir():
        raise JudgeError(f"the judge base needs the model {_BASE_MODEL}: run `ewe model get {_BASE_MODEL}`")


_MAX_TOKENS = 448


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """judge.json. temperature: divides the logits. max_tokens: of a prompt. window: what is read together, if it is.
    thresholds: what a verdict takes, where that was measured for this judge.
    """

    temperature: float
    max_tokens: int = _MAX_TOKENS
    window: ReadingWindow | None = None
    thresholds: Thresholds | None = None


def read_settings(folder: Path) -> JudgeSettings:
    """The settings of the judge in `folder`; raises JudgeError if they cannot be read."""
    try:
        values: Mapping[str, Any] = json.loads((folder / JUDGE_SETTINGS).read_bytes())
        characters = values.get("max_characters")
        window = None if characters is None else ReadingWindow(int(characters))
        max_tokens = int(values.get("max_tokens", _MAX_TOKENS))
        return JudgeSettings(float(values["temperature"]), max_tokens, window, _thresholds(values))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise JudgeError(f"{folder / JUDGE_SETTINGS} holds no settings of a judge: {error}") from error


def _thresholds(values: Mapping[str, Any]) -> Thresholds | None:
    if "supported" not in values:
        return None
    return Thresholds(float(values["supported"]), float(values["refuted"]), 0.0)


def is_adapter(folder: Path) -> bool:
    """Whether the judge in a folder is an adapter for a chat model."""
    return (folder / ADAPTER_SETTINGS).is_file()


def check_adapter(folder: Path) -> None:
    """Raises JudgeError if a judge's adapter, its settings or the package that merges them is not there."""
    missing = [name for name in _ADAPTER_FILES if not (folder / name).is_file()]
    if missing:
        raise JudgeError(f"{folder} holds no judge: it lacks {', '.join(missing)}")
    _check_peft(str(folder))


def named_model(folder: Path) -> str:
    """The chat model that an adapter is for, as its settings name it. Raises JudgeError where they name none."""
    try:
        name = json.loads((folder / ADAPTER_SETTINGS).read_bytes()).get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError) as error:
        raise JudgeError(f"{folder / ADAPTER_SETTINGS} cannot be read: {error}") from error
    if not name:
        raise JudgeError(f"the adapter in {folder} names no model: set verification.judge_model")
    return KNOWN_MODELS[name].folder.as_posix() if name in KNOWN_MODELS else str(name)


def _check_peft(judge: str) -> None:
    if find_spec("peft") is None:
        raise JudgeError(f'the judge {judge} needs the package peft: pip install "ewe-engine[adapters]"')


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
