"""The retriever and verifier of an engine from what settings and callers name, and what is on then.

Owns: what the names mean, and when "auto" checks. Knows retrieval, verification and the built-in world.
"""

from __future__ import annotations

from collections.abc import Sized
from pathlib import Path

from ewe.config import Config, RetrievalConfig
from ewe.errors import ConfigError
from ewe.protocols import Retriever, Verifier
from ewe.retrieval.open import open_retriever, open_source
from ewe.retrieval.source import PassageSource, Progress
from ewe.summary import DatastoreSummary, EngineSummary, public_name
from ewe.verification.claim_verifier import ClaimVerifier
from ewe.verification.open import open_verifier
from ewe.vocabulary import AUTO, DATASTORES, NONE, VERIFIERS
from ewe.world.builtin import builtin_datastore

_UNASKED = "claims"  # the verifier that "auto" stands for


def open_datastore(
    source: str | Path | PassageSource | Retriever | None, settings: RetrievalConfig, progress: Progress | None = None
) -> tuple[Retriever | None, DatastoreSummary | None]:
    """The retriever over a datastore by name, path or object, and what it is; None twice for none.

    Raises ConfigError for an object that is neither, DatastoreError for a source that cannot be read.
    """
    if source is None or source == NONE:
        return None, None
    if not isinstance(source, str | Path | PassageSource):
        if not isinstance(source, Retriever):
            known = ", ".join((*DATASTORES, "a Datastore"))
            raise ConfigError(f"the datastore must be one of {known}, or a Retriever, got {type(source).__name__}")
        size = len(source) if isinstance(source, Sized) else None
        return source, DatastoreSummary(type(source).__name__, size, getattr(source, "description", ""))
    opened = builtin_datastore() if source == "builtin" else open_source(source)
    retriever = open_retriever(opened, settings, progress)
    name = public_name(str(source)) if isinstance(source, str | Path) else type(source).__name__
    return retriever, DatastoreSummary(name, len(opened), retriever.description)


def choose_verifier(config: Config, retriever: Retriever | None, named: str | Verifier) -> Verifier | None:
    """The verifier of this name, or the object itself; None for "none", and for "auto" where none can do its work.

    Raises ConfigError for anything else, or a name without a retriever.
    """
    if named == AUTO:
        can_check = retriever is not None and config.policy == "ewe" and config.memory.verification_units > 0
        named = _UNASKED if can_check else NONE
    if named == NONE:
        return None
    if isinstance(named, str):
        return _open(named, config, retriever)
    if not isinstance(named, Verifier):
        raise ConfigError(
            f"the verifier must be one of {', '.join(VERIFIERS)}, or have a verify() method, got {type(named).__name__}"
        )
    return named


def open_checker(config: Config, retriever: Retriever) -> Verifier:
    """What checks finished texts: the verifier of the settings, "claims" where they name none. Raises as above."""
    return _open(_UNASKED if config.verifier in (AUTO, NONE) else config.verifier, config, retriever)


def summarise(
    config: Config,
    datastore: DatastoreSummary | None,
    named: str | Verifier,
    chosen: Verifier | None,
    longterm_memory: bool,
) -> EngineSummary:
    """What is on, with the verifier as it was named and as it was chosen."""
    name = NONE if chosen is None else _UNASKED if named == AUTO else named
    if config.policy != "ewe":
        unchecked = f"policy {config.policy} checks nothing"
    elif chosen is not None:
        unchecked = ""
    elif datastore is None:
        unchecked = "there is no datastore"
    else:
        unchecked = "verifier none" if named == NONE else "memory.verification_units is 0"
    return EngineSummary(
        policy=config.policy,
        datastore=datastore,
        verifier=name if isinstance(name, str) else type(name).__name__,
        judge=public_name(config.verification.judge) if isinstance(chosen, ClaimVerifier) else None,
        unchecked=unchecked,
        longterm_memory=longterm_memory,
    )


def _open(name: str, config: Config, retriever: Retriever | None) -> Verifier:
    return open_verifier(
        name,
        retriever,
        config.verification,
        device=config.model.device,
        veracity_weighting=config.memory.veracity_weighting != "off",
        assume_complete=config.feedback.closed_world,
    )
