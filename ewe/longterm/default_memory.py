"""Long-term memory as it is unless somebody says otherwise: the one place where store, search and rules are chosen.

`ewe.Memory`, engine, server, commands and evaluations take it from here. The defaults stand in `LongTermConfig`.
"""

import time
from pathlib import Path

from ewe.config import LongTermConfig
from ewe.config.registry import SCORERS
from ewe.config.setting_names import NONE
from ewe.errors import DatastoreError
from ewe.longterm.evidence import Clock
from ewe.longterm.recall import MemoryRules
from ewe.longterm.scoring.forms import (
    FirstOfTextA,
    FirstVeracity,
    averaged,
    bayesian_as_written,
    first_of_text_b,
    first_trust,
    trust_after,
)
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.retrieval.encoders import Encoder, SentenceEncoder, builtin_encoder_path
from ewe.types.protocols import Retriever
from ewe.verification.judges.protocol import Judge

DEFAULTS = LongTermConfig()


def default_memory(
    place: MemoryStore | str | Path,
    settings: LongTermConfig = DEFAULTS,
    *,
    judge: Judge | None = None,
    trusted: Retriever | None = None,
    encoder: str | None = None,
    rules: MemoryRules | None = None,
    clock: Clock = time.time,
) -> MemoryService:
    """The service over a store, or over that in a folder or behind a URL, which is made, empty, where there is none.

    judge, trusted, clock: as `MemoryService` takes them. encoder: a sentence encoder, "none" for words alone (None: the
    built-in one if it is installed); vectors are made in a thread, which `MemoryService.close` ends. rules: in place of
    the settings' scorer. Raises DatastoreError for the store (another process writes to it, say), ConfigError for an
    encoder that cannot be had or made other vectors.
    """
    store = place if isinstance(place, MemoryStore) else open_or_create(place)
    try:
        return MemoryService(
            store,
            judge=judge,
            trusted=trusted,
            encoder=_encoder(store, encoder),
            in_background=True,
            rules=rules or default_rules(settings, judge, trusted),
            clock=clock,
        )
    except BaseException:
        if store is not place:
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


def default_rules(
    settings: LongTermConfig = DEFAULTS, judge: Judge | None = None, trusted: Retriever | None = None
) -> MemoryRules:
    """The rules of `longterm.scorer`: what is believed at first, what evidence does to it, what the judge compares."""
    scorer, turns = settings.scorer, settings.judge_turns
    made = SCORERS.make(scorer, judge=judge)
    if scorer == "verimem-a":
        return MemoryRules(made, first=FirstOfTextA(trusted), update=averaged, judge_turns=turns, unjudged=True)
    if scorer == "verimem-b":
        return MemoryRules(made, first=first_of_text_b, update=bayesian_as_written, judge_turns=turns)
    if scorer == "mark":
        return MemoryRules(made, first=first_trust, update=trust_after, judge_turns=turns)
    # Only the default scorer weighs contradictions when memories are read; for the others they count on write.
    return MemoryRules(made, first=FirstVeracity(contradictions=scorer != "default"), judge_turns=turns)


def _encoder(store: MemoryStore, name: str | None) -> Encoder | None:
    """Meaning is searched, too, where there is an encoder without a download, or the store has vectors."""
    if name == NONE:
        return None
    is_needed = name is not None or builtin_encoder_path() is not None or store.embeddings.exist
    return SentenceEncoder(name) if is_needed else None
