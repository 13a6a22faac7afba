"""The service of long-term memory from the settings of an engine.

Owns: which scorer stands behind a name, and that a store which is not there is made. Knows every scorer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ewe.config import LongTermConfig
from ewe.longterm.scoring.default import DefaultScorer
from ewe.longterm.scoring.first import FirstVeracity
from ewe.longterm.scoring.protocol import MemoryScorer
from ewe.longterm.scoring.scorers import MARKScorer, MMAScorer, NoScorer, VeriMemScorer
from ewe.longterm.service import MemoryRules, MemoryService
from ewe.longterm.store import MemoryStore
from ewe.longterm.store.database import FILE_NAME
from ewe.protocols import Retriever
from ewe.retrieval.encoders import SentenceEncoder
from ewe.verification.judges.protocol import Judge


def open_service(
    path: str | Path,
    settings: LongTermConfig,
    judge: Judge,
    *,
    trusted: Retriever | None = None,
    encoder: str | None = None,
) -> MemoryService:
    """The service over the store in a folder, open for writing; a folder without a store gets an empty one.

    trusted: passages that memories below the threshold are checked by. encoder: a sentence encoder (None: the built-in
    one), used if the store's memories have vectors. Raises DatastoreError for the store (another process writes to it,
    say), ConfigError for an encoder that cannot be had or did not make its vectors.
    """
    folder = Path(path)
    store = MemoryStore.open(folder, read_only=False) if (folder / FILE_NAME).exists() else MemoryStore.create(folder)
    try:
        chosen = SentenceEncoder(encoder) if store.stats()["encoder"] is not None else None
        # Only the default scorer weighs contradictions when memories are read; for the others they count on write.
        first = FirstVeracity(contradictions=settings.scorer != "default")
        rules = MemoryRules(scorer=_SCORERS[settings.scorer](judge), first=first)
        return MemoryService(store, judge=judge, trusted=trusted, encoder=chosen, rules=rules)
    except BaseException:
        store.close()
        raise


_SCORERS: dict[str, Callable[[Judge], MemoryScorer]] = {
    "default": lambda judge: DefaultScorer(),
    "verimem": lambda judge: VeriMemScorer(),
    "mma": lambda judge: MMAScorer(judge=judge),
    "mark": lambda judge: MARKScorer(),
    "none": lambda judge: NoScorer(),
}
