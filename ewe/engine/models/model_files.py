"""Where the files of a model are, and whether what is needed is among them.

Imports no torch, so that a wrong name is refused at once.
"""

from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from ewe.config import ModelConfig
from ewe.config.known_models import ADAPTER_SETTINGS, ADAPTER_WEIGHTS, KNOWN_MODELS
from ewe.config.setting_names import unknown
from ewe.errors import ConfigError

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt")
_MODELS = ("builtin", *KNOWN_MODELS, "a folder with safetensors", "a GGUF file", "a hub id (owner/name)")
_GGUF, _GGUF_MAGIC = ".gguf", b"GGUF"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What transformers reads a model from: a directory, a config.json or a hub id.

    gguf_file: the name of a file in the directory.
    """

    place: str
    gguf_file: str | None = None

    def __str__(self) -> str:
        return self.place if self.gguf_file is None else str(Path(self.place) / self.gguf_file)


def model_source(config: ModelConfig) -> ModelSource:
    """Where the model of `config` is; a config.json is for load_format "dummy" only.

    Raises ConfigError for missing files, for a name that is none of ours and no owner/name of the hub, and for a GGUF
    file without the package that reads it.
    """
    if config.name in KNOWN_MODELS:
        return ModelSource(str(_known(config.name)))
    builtin = Path(str(files("ewe"))) / "evaluation" / "world" / "model"
    path = builtin if config.name == "builtin" else Path(config.name).expanduser()
    if path.is_file() and path.suffix == ".json" and config.load_format == "dummy":
        return ModelSource(str(path))
    if path.is_file() and path.suffix == _GGUF:
        _check_gguf(path)
        return ModelSource(str(path.parent), path.name)
    if path.is_dir():
        _check_directory(path, config)
        return ModelSource(str(path))
    if config.name == "builtin":
        raise ConfigError(f"the built-in model is missing from this installation ({path}); reinstall the package")
    if path.exists():
        raise ConfigError(
            f"model.name {config.name!r} is a file; give the directory that holds config.json, or a {_GGUF} file"
        )
    if config.name.startswith((".", "/", "~")) or config.name.count("/") > 1:
        raise ConfigError(f"model.name {config.name!r}: no such directory")
    if path.suffix == _GGUF:
        raise ConfigError(f"model.name {config.name!r}: no such file")
    if "/" not in config.name:  # a slip of the pen, most likely; the hub would be asked for half a minute
        raise ConfigError(unknown("model", config.name, _MODELS))
    return ModelSource(config.name)


def _known(name: str) -> Path:
    folder = KNOWN_MODELS[name].folder
    if not folder.is_dir():
        raise ConfigError(f"the model {name} is not there yet: run `ewe model get {name}`")
    return folder


def _check_gguf(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(len(_GGUF_MAGIC)) != _GGUF_MAGIC:
            raise ConfigError(f"{path} is no GGUF file, whatever its name says: it does not begin with GGUF")
    require_gguf(path)


def require_gguf(what: object) -> None:
    """Raises ConfigError unless the package is there that reads GGUF files; what: the file or model that needs it."""
    missing = [name for name in ("gguf", "accelerate") if find_spec(name) is None]
    if missing:
        raise ConfigError(f'{what} needs the package {missing[0]}: pip install "ewe-engine[gguf]"')


def _check_directory(path: Path, config: ModelConfig) -> None:
    if not (path / "config.json").is_file():
        gguf_file = next(iter(sorted(path.glob(f"*{_GGUF}"))), None)
        advice = "a directory saved by transformers" if gguf_file is None else f"the GGUF file itself ({gguf_file})"
        raise ConfigError(f"{path} holds no config.json; model.name must be {advice}")
    if config.load_format == "dummy":
        return
    if not any(path.glob("*.safetensors")):
        pickled = any(path.glob("*.bin")) or any(path.glob("*.pt")) or any(path.glob("*.pth"))
        advice = (
            "convert the pickled weights with save_pretrained" if pickled else 'or set model.load_format to "dummy"'
        )
        raise ConfigError(f"{path} holds no *.safetensors weights; {advice}")
    if not has_tokenizer(path):
        raise ConfigError(f"{path} holds no tokenizer; save one there with tokenizer.save_pretrained")


def adapter_folder(config: ModelConfig) -> Path | None:
    """The folder of the LoRA adapter to merge, None if `config` names none.

    Adapters that this package has are found by their names, under the name of the model that they were made for. Raises
    ConfigError for missing files, weights that are no safetensors, and without the package that merges them.
    """
    return None if config.adapter is None else _adapter_folder(config, "model.adapter", config.adapter)


def adapter_folders(config: ModelConfig) -> dict[str, Path]:
    """The folders of the adapters that requests may name, by these names; raises ConfigError as `adapter_folder`."""
    named = config.adapters or {}
    return {name: _adapter_folder(config, f"model.adapters.{name}", place) for name, place in named.items()}


def _adapter_folder(config: ModelConfig, setting: str, place: str) -> Path:
    shipped = _shipped_adapters(config.name)
    folder = shipped.get(place, Path(place).expanduser())
    if not folder.is_dir():
        known = f"; {config.name} has {', '.join(shipped)}" if shipped else ""
        raise ConfigError(f"{setting} {place!r}: no such directory{known}")
    if not (folder / ADAPTER_SETTINGS).is_file():
        raise ConfigError(f"{folder} holds no {ADAPTER_SETTINGS}; {setting} is a folder saved by peft")
    if not (folder / ADAPTER_WEIGHTS).is_file():
        pickled = (
            " (pickled weights are not read: save it again with a newer peft)" if any(folder.glob("*.bin")) else ""
        )
        raise ConfigError(f"{folder} holds no {ADAPTER_WEIGHTS}{pickled}")
    if config.load_format == "dummy":
        raise ConfigError(f"{setting} needs a model with weights: leave model.load_format at auto")
    if find_spec("peft") is None:
        raise ConfigError(f'{setting} needs the package peft: pip install "ewe-engine[adapters]"')
    return folder


def _shipped_adapters(model: str) -> dict[str, Path]:
    """The adapters for a known model that are part of this package, by name."""
    if model not in KNOWN_MODELS:
        return {}
    folders = sorted((Path(str(files("ewe.engine.models"))) / "adapters").glob(f"{model}-*"))
    return {folder.name.removeprefix(f"{model}-"): folder for folder in folders}


def has_tokenizer(path: Path) -> bool:
    """Whether a directory holds a tokenizer."""
    return any((path / name).is_file() for name in _TOKENIZER_FILES)
