"""The parts that look outside the model, as the settings or the caller name them: retriever, verifier, memories.

Owns: which module opens which part, and that only those are imported that are asked for. Nothing here imports torch:
what is wrong is refused before any weights are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ewe.config import Config, RetrievalConfig
from ewe.errors import ConfigError
from ewe.lazy import warm
from ewe.loading import LoadStep, OnLoad, ignore_step
from ewe.protocols import Retriever, Verifier

if TYPE_CHECKING:
    from ewe.longterm.live import LiveMemories
    from ewe.longterm.service import MemoryService
    from ewe.retrieval.source import PassageSource


@dataclass(frozen=True, slots=True)
class Components:
    """The parts that look outside the model; None where there is none."""

    retriever: Retriever | None
    verifier: Verifier | None
    memories: LiveMemories | None = None

    def warm(self, on_load: OnLoad = ignore_step) -> None:
        """Loads the models that retriever and verifier would load with their first request."""
        for name, part in (("retriever", self.retriever), ("verifier", self.verifier)):
            if part is not None:
                on_load(LoadStep(f"warming the {name}"))
                warm(part)

    def close(self) -> None:
        """Ends what runs beside the engine."""
        if self.memories is not None:
            self.memories.close()


def make_components(
    config: Config,
    datastore: str | Path | PassageSource | Retriever | None,
    verifier: str | Verifier | None,
    memories: MemoryService | None = None,
    on_load: OnLoad = ignore_step,
) -> Components:
    """The retriever, verifier and memories that the settings or the caller name; objects are used as they are.

    on_load: hears of the datastore as it is opened, and of passages that are indexed on the way. Raises ConfigError for
    names that are not known, or a verifier by name without a datastore; JudgeError for a judge that cannot be had;
    DatastoreError for passages or a store of memories that cannot be opened.
    """
    source = datastore if datastore is not None else config.datastore
    chosen = verifier if verifier is not None else config.verifier
    _refuse_unusable(chosen, source, config)
    retriever = None if source is None else _open_retriever(source, config.retrieval, on_load)
    checker = _open_verifier(chosen, retriever, config) if isinstance(chosen, str) else chosen
    if memories is None and config.longterm.path is None:
        return Components(retriever, checker)
    from ewe.longterm.open import open_memories

    return Components(retriever, checker, open_memories(config, retriever, checker, memories))


def _refuse_unusable(verifier: Any, source: Any, config: Config) -> None:
    """Refuses a verifier that cannot be had, before passages are read for it."""
    if verifier is None:
        return
    if isinstance(verifier, str):
        from ewe.verification.open import check_verifier

        check_verifier(verifier, source is not None, config.verification, config.model.device)
    elif not isinstance(verifier, Verifier):
        raise ConfigError(f"the verifier must have a verify() method, got {type(verifier).__name__}")
    if config.policy == "ewe" and not config.memory.verification_units:
        raise ConfigError(
            "verification needs a place for its feedback: set memory.verification_units to 1 or more, "
            "or leave the verifier out"
        )


def _open_retriever(source: Any, settings: RetrievalConfig, on_load: OnLoad) -> Retriever:
    from ewe.retrieval.open import open_retriever
    from ewe.retrieval.source import PassageSource

    on_load(LoadStep("opening the datastore"))
    if source == "builtin":
        from ewe.world.builtin import builtin_datastore

        source = builtin_datastore()
    if isinstance(source, str | Path | PassageSource):
        return open_retriever(source, settings, partial(_tell_of_passages, on_load))
    if not isinstance(source, Retriever):
        raise ConfigError(
            f"datastore must be 'builtin', a path, a Datastore or a Retriever, got {type(source).__name__}"
        )
    return source


def _tell_of_passages(on_load: OnLoad, done: int, total: int) -> None:
    on_load(LoadStep("indexing the datastore", done, total, "passages"))


def _open_verifier(name: str, retriever: Retriever | None, config: Config) -> Verifier:
    from ewe.verification.open import open_verifier

    return open_verifier(
        name,
        retriever,
        config.verification,
        device=config.model.device,
        veracity_weighting=config.memory.veracity_weighting != "off",
        assume_complete=config.feedback.closed_world,
    )
