"""From the name of a datastore, or an object that is one, to what finds passages in it."""

from __future__ import annotations

from collections.abc import Sized
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from ewe.config import RetrievalConfig
from ewe.config.loading import LoadStep, OnLoad, ignore_step
from ewe.config.registry import BUILTIN_DATASTORE
from ewe.config.setting_names import DATASTORES, NONE
from ewe.engine.startup.engine_summary import DatastoreSummary, public_name
from ewe.errors import ConfigError
from ewe.types.protocols import Retriever

if TYPE_CHECKING:
    from ewe.retrieval.source import PassageSource


def is_given(source: Any) -> bool:
    """Whether there is a datastore at all."""
    return source is not None and not (isinstance(source, str) and source == NONE)


def open_datastore(
    source: str | Path | PassageSource | Retriever | None, settings: RetrievalConfig, on_load: OnLoad = ignore_step
) -> tuple[Retriever | None, DatastoreSummary | None]:
    """The retriever over a datastore by name, path or object, and what it is; None twice for none.

    Raises ConfigError for an object that is neither or settings that it hears nothing of, DatastoreError for a source
    that cannot be read.
    """
    if not is_given(source):
        return None, None
    on_load(LoadStep("opening the datastore"))
    from ewe.retrieval.open_retriever import open_retriever
    from ewe.retrieval.source import PassageSource
    from ewe.retrieval.vector_stores.connect import connect, is_address

    if not isinstance(source, str | Path | PassageSource):
        if not isinstance(source, Retriever):
            known = ", ".join((*DATASTORES, "a Datastore"))
            raise ConfigError(f"the datastore must be one of {known}, or a Retriever, got {type(source).__name__}")
        _refuse_unheard(source, settings)
        size = len(source) if isinstance(source, Sized) else None
        return source, DatastoreSummary(type(source).__name__, size, getattr(source, "description", ""))
    opened = connect(source) if is_address(source) else open_passages(source)

    def tell(done: int, total: int) -> None:
        on_load(LoadStep("indexing the datastore", done, total, "passages"))

    retriever = open_retriever(opened, settings, tell)
    name = public_name(str(source)) if isinstance(source, str | Path) else type(source).__name__
    return retriever, DatastoreSummary(name, len(opened), retriever.description)


def _refuse_unheard(retriever: Retriever, settings: RetrievalConfig) -> None:
    """Raises ConfigError for settings that would change what is found, but of which a given retriever hears nothing."""
    unset = RetrievalConfig()
    names = "filters", "reranker", "sources", "half_life_days", "agreement"
    unheard = [f"retrieval.{name}" for name in names if getattr(settings, name) != getattr(unset, name)]
    if unheard:
        raise ConfigError(
            f"{', '.join(unheard)}: the {type(retriever).__name__} that was given is used as it is: unset them and "
            "have it do that itself, or give a Datastore"
        )


def open_passages(source: str | Path | PassageSource) -> PassageSource:
    """The passages of a datastore by name, path or object; raises DatastoreError for a source that cannot be read."""
    if source == "builtin":
        builtin: PassageSource = resolve_name(BUILTIN_DATASTORE)()
        return builtin
    from ewe.retrieval.open_retriever import open_source

    return open_source(source)
