"""Long-term memory from the settings of an engine: the service, and the memories of a running engine on top of it."""

from pathlib import Path

from ewe.config import Config, LongTermConfig
from ewe.errors import ConfigError, DatastoreError
from ewe.longterm.recall import MemoryRules
from ewe.longterm.request_memories import RequestMemories
from ewe.longterm.reviews import BackgroundReviews
from ewe.longterm.scoring.forms import FirstOfTextA, FirstVeracity, averaged, bayesian_as_written, first_of_text_b
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.protocols import Retriever, Verifier
from ewe.registry import SCORERS
from ewe.retrieval.encoders import SentenceEncoder, builtin_encoder_path
from ewe.verification.claim_verifier import ClaimVerifier
from ewe.verification.judges.cached import CachedJudge
from ewe.verification.judges.load import load_judge
from ewe.verification.judges.protocol import Judge


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
    return open_service(settings.path, settings, judge, trusted=trusted, encoder=config.retrieval.encoder)


def open_service(
    path: str | Path,
    settings: LongTermConfig,
    judge: Judge,
    *,
    trusted: Retriever | None = None,
    encoder: str | None = None,
) -> MemoryService:
    """The service over the store in a folder or behind a URL, open for writing; made, empty, where there is none.

    judge, trusted: as `MemoryService` takes them. encoder: a sentence encoder (None: the built-in one
    if it is installed); vectors are made in a thread, which `MemoryService.close` ends. Raises DatastoreError for the
    store (another process writes to it, say), ConfigError for an encoder that cannot be had or made other vectors.
    """
    store = open_or_create(path)
    try:
        # Meaning is searched, too, where there is an encoder without a download.
        wanted = encoder is not None or builtin_encoder_path() is not None or store.embeddings.exist
        chosen = SentenceEncoder(encoder) if wanted else None
        return MemoryService(
            store,
            judge=judge,
            trusted=trusted,
            encoder=chosen,
            in_background=True,
            rules=rules_of(settings.scorer, judge, trusted),
        )
    except BaseException:
        store.close()
        raise


def open_or_create(path: str | Path) -> MemoryStore:
    """The store in a folder or behind a URL, open for writing; an empty one where there is none.

    Raises DatastoreError.
    """
    if not MemoryStore.exists(path):
        try:
            return MemoryStore.create(path)
        except DatastoreError:
            if not MemoryStore.exists(path):  # else another process made it a moment ago
                raise
    return MemoryStore.open(path, read_only=False)


def rules_of(scorer: str, judge: Judge | None, trusted: Retriever | None = None) -> MemoryRules:
    """The rules of a scorer (`longterm.scorer`): what is believed at first, and what evidence does to it."""
    made = SCORERS.make(scorer, judge=judge)
    if scorer == "verimem-a":
        return MemoryRules(made, first=FirstOfTextA(trusted), update=averaged)
    if scorer == "verimem-b":
        return MemoryRules(made, first=first_of_text_b, update=bayesian_as_written)
    # Only the default scorer weighs contradictions when memories are read; for the others they count on write.
    return MemoryRules(made, first=FirstVeracity(contradictions=scorer != "default"))


def _judge(config: Config, verifier: Verifier | None) -> Judge:
    """What finds contradictions between memories: the judge of claims, also where nobody checks sentences by it."""
    if isinstance(verifier, ClaimVerifier):
        return verifier.judge
    settings = config.verification
    return CachedJudge(
        load_judge(settings.judge, device=config.model.device, labels=settings.judge_labels, model=settings.judge_model)
    )
