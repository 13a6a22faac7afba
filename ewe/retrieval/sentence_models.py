"""Loading a model of sentence-transformers, safely."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from ewe.errors import ConfigError
from ewe.lazy import Lazy

EXTRA = "install it with pip install 'ewe-engine[dense]'"
Kind = Literal["SentenceTransformer", "CrossEncoder"]


class SentenceModel(Lazy[Any]):
    """A model of a class of sentence-transformers, loaded when first needed: `name` is a folder or a hub id.

    A folder is checked at once; a hub id is loaded at once, for nothing else tells whether it is there. Only
    safetensors are read, and no code of the model's own runs. Raises ConfigError for a package that is missing or a
    model that cannot be loaded, be it now or by `get`.
    """

    def __init__(self, kind: Kind, name: str, device: str | None) -> None:
        if find_spec("sentence_transformers") is None:
            raise ConfigError(f"encoders and rerankers need sentence-transformers: {EXTRA}")
        self.folder = _model_folder(name)
        super().__init__(partial(_load, kind, name, self.folder, device))
        if self.folder is None:
            self.get()

    def config(self) -> dict[str, Any]:
        """The `config.json` in its folder; empty for a hub id, and for a model that has none."""
        path = self.folder / "config.json" if self.folder is not None else None
        if path is None or not path.is_file():
            return {}
        try:
            values = json.loads(path.read_bytes())
        except ValueError as error:
            raise ConfigError(f"{path} is no JSON: {error}") from error
        return values if isinstance(values, dict) else {}

    def digest(self) -> str:
        """A digest of all that the folder's vectors depend on; empty for a hub id."""
        if self.folder is None:
            return ""
        hasher = hashlib.sha256()
        for path in sorted(item for item in self.folder.rglob("*") if item.suffix in (".json", ".safetensors", ".txt")):
            with path.open("rb") as file:
                hasher.update(hashlib.file_digest(file, "sha256").digest())
        return hasher.hexdigest()


def _load(kind: Kind, name: str, folder: Path | None, device: str | None) -> Any:
    import sentence_transformers

    settings = {"device": device, "trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
    try:
        return getattr(sentence_transformers, kind)(name if folder is None else str(folder), **settings)
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        raise ConfigError(f"cannot load the model {name!r}: {error}") from error


def count_tokens(model: Any, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[int]:
    """The tokens of each text or pair of texts, the model's own marks included, before anything is cut."""
    if not texts:
        return []
    encoded = model.tokenizer(list(texts), truncation=False, padding=False, verbose=False)
    return [len(ids) for ids in encoded["input_ids"]]


def clean(text: str) -> str:
    """The text without halves of surrogate pairs, which a model may write and which stop a tokenizer."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _model_folder(name: str) -> Path | None:
    """The folder of this name, None for a hub id.

    A folder with weights in pickles only is refused, since reading those can run code.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if folder.is_absolute() or name.startswith((".", "~")):
            raise ConfigError(f"the model {name} is no folder")
        return None
    for pattern in ("pytorch_model*.bin", "*.pt", "*.pkl"):
        for path in folder.rglob(pattern):
            if not any(path.parent.glob("*.safetensors")):
                raise ConfigError(f"{path} may run code when it is read: convert the model to safetensors first")
    if not any(folder.rglob("*.safetensors")):
        raise ConfigError(f"{folder} holds no *.safetensors: name the folder of a model, or a hub id")
    return folder
