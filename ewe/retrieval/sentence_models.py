"""Loading a model of sentence-transformers, safely.

Owns: what may be loaded, from where, the errors of it, and how texts are counted. sentence-transformers is imported
with the first model. Knows `ewe.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ewe.errors import ConfigError

EXTRA = "install it with pip install 'ewe-engine[dense]'"


def load_sentence_model(kind: Literal["SentenceTransformer", "CrossEncoder"], name: str, device: str | None) -> Any:
    """The model of a class of sentence-transformers: `name` is a folder or a hub id.

    Only safetensors are read, and no code of the model's own runs. Raises ConfigError for a package that is missing or
    a model that cannot be loaded.
    """
    try:
        import sentence_transformers
    except ImportError as error:
        raise ConfigError(f"encoders and rerankers need sentence-transformers: {EXTRA}") from error
    path = _model_folder(name)
    settings = {"device": device, "trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
    try:
        return getattr(sentence_transformers, kind)(path, **settings)
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


def _model_folder(name: str) -> str:
    """`name` as sentence-transformers wants it: a folder that is there, or a hub id.

    A folder with weights in pickles only is refused, since reading those can run code.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if folder.is_absolute() or name.startswith((".", "~")):
            raise ConfigError(f"the model {name} is no folder")
        return name
    for pattern in ("pytorch_model*.bin", "*.pt", "*.pkl"):
        for path in folder.rglob(pattern):
            if not any(path.parent.glob("*.safetensors")):
                raise ConfigError(f"{path} may run code when it is read: convert the model to safetensors first")
    return str(folder)
