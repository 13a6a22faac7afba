"""Where the files of a model are, and whether what is needed is among them.

Owns: the names that `model.name` may have, and the refusal of a directory that cannot be loaded. Imports no torch, so
that a wrong name is refused at once.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ewe.config import ModelConfig
from ewe.errors import ConfigError

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt")


def model_source(config: ModelConfig) -> str:
    """The directory, config.json (dummy only) or hub id to read from; raises ConfigError for missing files."""
    builtin = Path(str(files("ewe"))) / "world" / "model"
    path = builtin if config.name == "builtin" else Path(config.name).expanduser()
    if path.is_file() and path.suffix == ".json" and config.load_format == "dummy":
        return str(path)
    if path.is_dir():
        _check_directory(path, config)
        return str(path)
    if config.name == "builtin":
        raise ConfigError(f"the built-in model is missing from this installation ({path}); reinstall the package")
    if path.exists():
        raise ConfigError(f"model.name {config.name!r} is a file; give the directory that holds config.json")
    if config.name.startswith((".", "/", "~")) or config.name.count("/") > 1:
        raise ConfigError(f"model.name {config.name!r}: no such directory")
    return config.name


def _check_directory(path: Path, config: ModelConfig) -> None:
    if not (path / "config.json").is_file():
        raise ConfigError(f"{path} holds no config.json; model.name must be a directory saved by transformers")
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


def has_tokenizer(path: Path) -> bool:
    """Whether a directory holds a tokenizer."""
    return any((path / name).is_file() for name in _TOKENIZER_FILES)
