"""Long-term memory from the settings of an engine: the memories of a running engine over the default service."""

from pathlib import Path

from ewe.config import Config
from ewe.errors import ConfigError
from ewe.longterm.default_memory import default_memory
from ewe.longterm.request_memories import RequestMemories
from ewe.longterm.reviews import BackgroundReviews
from ewe.longterm.service import MemoryService
from ewe.types.protocols import Retriever, Verifier
from ewe.verification.claim_verifier import ClaimVerifier
from ewe.verification.judges.cached import CachedJudge
from ewe.verification.judges.load import load_configured_judge
from ewe.verification.judges.protocol import Judge


def place_of(given: object) -> str | Path:
    """Where the store of a service lies that an engine was given; raises ConfigError for anything else."""
    if not isinstance(given, MemoryService):
        raise ConfigError(f"longterm must be a folder or a MemoryService, got {type(given).__name__}")
    return given.store.path


def open_memories(
    config: Config, trusted: Retriever | None, verifier: Verifier | None, service: MemoryService | None = None
) -> RequestMemories:
    """The memories of the service that was given, which stays the caller's, or of the store in `longterm.path`.

    trusted: passages that memories are checked and reviewed by. verifier: whose judge judges memories too. Raises
    ConfigError, or DatastoreError for the store.
    """
    settings, owns_store = config.longterm, service is None
    if service is None:
        service = _configured(config, trusted, verifier)
    reviews = None
    if settings.review_every is not None:
        reviews = BackgroundReviews(service.reviewer(), every_s=settings.review_every)
    return RequestMemories(
        service, settings, reviews=reviews, owns_store=owns_store, patience_s=config.feedback.timeout
    )


def _configured(config: Config, trusted: Retriever | None, verifier: Verifier | None) -> MemoryService:
    """The service over the store in `longterm.path`."""
    settings = config.longterm
    assert settings.path is not None
    if settings.review_every is not None and trusted is None:
        raise ConfigError("longterm.review_every: memories are reviewed by the passages of a datastore: set one")
    judge = _judge(config, verifier)
    return default_memory(settings.path, settings, judge=judge, trusted=trusted, encoder=config.retrieval.encoder)


def _judge(config: Config, verifier: Verifier | None) -> Judge:
    """What finds contradictions between memories: the judge of claims, also where nobody checks sentences by it."""
    if isinstance(verifier, ClaimVerifier):
        return verifier.judge
    return CachedJudge(load_configured_judge(config.judging, config.model.device))
