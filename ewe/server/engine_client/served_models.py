"""What clients may call the model, and the sentence encoder and the reranker behind it."""

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import numpy as np

from ewe.config import RetrievalConfig
from ewe.config.lazy import warm
from ewe.errors import ConfigError
from ewe.retrieval.encoders import Encoder, SentenceEncoder
from ewe.retrieval.open_retriever import models_of
from ewe.retrieval.reranker import CrossEncoderScorer
from ewe.server.http.error_responses import RefusedError, shortened


class ModelNames:
    """The names of one model. given: its hub id or folder; served: what it is called instead (none: as it is given).

    adapters: names that stand for the model with an adapter. listed: the model's own names that everybody is told, the
    first of them where a request names none. Raises ConfigError for an adapter with a name of the model.
    """

    def __init__(self, given: str, served: Sequence[str] = (), adapters: Collection[str] = ()) -> None:
        folder = Path(given).expanduser()
        is_folder = folder.is_dir()
        last = (folder.resolve() if is_folder else folder).name
        names = (last,) if is_folder else tuple(dict.fromkeys((given, last)))
        self.listed: tuple[str, ...] = tuple(dict.fromkeys(served)) or names
        self.adapters = tuple(adapters)
        own = frozenset(self.listed if served else (*self.listed, given))
        if taken := own.intersection(adapters):
            raise ConfigError(f"model.adapters: the model itself is called {min(taken)!r}: name the adapter otherwise")
        self._accepted = own.union(adapters)

    def __contains__(self, name: str) -> bool:
        return name in self._accepted

    def adapter(self, name: str | None) -> str:
        """The adapter that a name stands for; empty for the model itself."""
        return name if name is not None and name in self.adapters else ""


def no_model(name: str, names: ModelNames) -> RefusedError:
    """The refusal of a name that is none of these."""
    here = " or ".join(map(repr, (*names.listed, *names.adapters)))
    return RefusedError(
        404, f"there is no model {shortened(name)!r} here; {here} is", param="model", code="model_not_found"
    )


_MISSING = "this server has no {}: set retrieval.{} to a folder or hub id"
_T = TypeVar("_T")
SentenceTask = Literal["embed", "rerank"]

_log = logging.getLogger("ewe.server")


class ReadingModel(Protocol):
    """A model that reads texts."""

    @property
    def name(self) -> str:
        """What it is called: a folder or hub id."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """The tokens that it reads of a text or a pair, which is cut there; None: all."""
        ...

    def count_tokens(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[int]:
        """The tokens of each text or pair of texts, before anything is cut."""
        ...


class ServedEncoder(Encoder, ReadingModel, Protocol):
    """A sentence encoder that says how much it reads."""


class ServedReranker(ReadingModel, Protocol):
    """A reranker that says how much it reads."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 [pairs] in [0, 1]."""
        ...


class SentenceModels(Protocol):
    """The sentence encoder and the reranker of one engine."""

    @property
    def listed(self) -> Mapping[str, SentenceTask]:
        """What each does by the name that everybody is told; nothing is loaded for it."""
        ...

    def encoder(self) -> ServedEncoder:
        """The encoder; raises RefusedError where there is none, or one that cannot be loaded."""
        ...

    def reranker(self) -> ServedReranker:
        """The reranker; raises RefusedError where there is none, or one that cannot be loaded."""
        ...


class OwnSentenceModels:
    """Those of an engine in this process. retriever: the datastore's, None without one."""

    def __init__(self, settings: RetrievalConfig, retriever: object | None) -> None:
        self._settings = settings
        self._encoder, self._reranker = models_of(retriever)
        self._loading = threading.Lock()

    @property
    def listed(self) -> dict[str, SentenceTask]:
        """What each does by the name that everybody is told; nothing is loaded for it."""
        models: tuple[tuple[SentenceEncoder | CrossEncoderScorer | None, str | None, SentenceTask], ...] = (
            (self._encoder, self._settings.encoder, "embed"),
            (self._reranker, self._settings.reranker, "rerank"),
        )
        named = ((named if model is None else model.name, task) for model, named, task in models)
        return {ModelNames(name).listed[0]: task for name, task in named if name is not None}

    def encoder(self) -> SentenceEncoder:
        """The encoder; raises RefusedError where there is none, or one that cannot be loaded."""
        settings = self._settings
        with self._loading:
            if self._encoder is None:
                if settings.encoder is None:
                    message = _MISSING.format("sentence encoder", "encoder") + ", or retrieval.retriever to hybrid"
                    raise RefusedError(404, message, code="no_encoder")
                prefixes = settings.query_prefix, settings.passage_prefix
                self._encoder = _loaded(partial(SentenceEncoder, settings.encoder, *prefixes))
            return self._encoder

    def reranker(self) -> CrossEncoderScorer:
        """The reranker; raises RefusedError where there is none, or one that cannot be loaded."""
        with self._loading:
            if self._reranker is None:
                if self._settings.reranker is None:
                    raise RefusedError(404, _MISSING.format("reranker", "reranker"), code="no_reranker")
                self._reranker = _loaded(partial(CrossEncoderScorer, self._settings.reranker))
            return self._reranker


def name_of(model: ReadingModel, requested: str | None, served: ModelNames) -> str:
    """What an answer calls the model: the name asked for, which may be the served model's too.

    Raises RefusedError for a name that is neither's.
    """
    names = ModelNames(model.name)
    if requested is None or requested in names or requested in served:
        return requested or names.listed[0]
    raise no_model(requested, names)


def counted(model: ReadingModel, field: str, counts: Sequence[int], may_cut: bool) -> int:
    """The tokens that the model reads of texts of so many; raises RefusedError for one that would be cut unasked."""
    most = model.max_tokens
    longest = max(range(len(counts)), key=lambda place: counts[place])
    if most is not None and counts[longest] > most and not may_cut:
        message = (
            f"{field}.{longest}: this has {counts[longest]} tokens, and the model reads {most}: shorten it, or send "
            "truncate_prompt_tokens -1 to have it cut"
        )
        raise RefusedError(400, message, param=f"{field}.{longest}", code="context_length_exceeded")
    return sum(counts if most is None else (min(count, most) for count in counts))


def _loaded(load: Callable[[], _T]) -> _T:
    try:
        model = load()
        warm(model)
        return model
    except ConfigError as error:
        _log.error("a model of retrieval cannot be loaded", extra={"fields": {"error": str(error)}})
        message = "this model cannot be loaded; the server's log says why"
        raise RefusedError(500, message, code="internal_error", may_retry=False) from error
