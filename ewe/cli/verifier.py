"""From options to a verifier and what it checks against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from ewe.errors import DatastoreError, InvalidRequestError

if TYPE_CHECKING:
    from ewe.protocols import Verifier
    from ewe.types import Passage

_NOTHING = "nothing to check against: give --datastore or --documents"


@dataclass(frozen=True, slots=True)
class OpenedVerifier:
    """A verifier; against: where its evidence comes from, in words."""

    verifier: Verifier
    against: str


def open_verifier(
    file: Path | None,
    assignments: Sequence[str] | None,
    datastore: str | None,
    documents: Sequence[str] | None,
    judge: str | None,
) -> OpenedVerifier:
    """The verifier of a configuration file, changed by the options.

    Raises ConfigError for settings, DatastoreError for evidence, JudgeError for a judge that cannot be had, and
    InvalidRequestError if there is nothing, or too much, to check against.
    """
    from rich.console import Console

    from ewe.components import open_checker, open_datastore
    from ewe.config import Config
    from ewe.retrieval.datastore import Datastore

    if datastore and documents:
        raise InvalidRequestError("give --datastore or --documents, not both: add documents to a datastore instead")
    # As YAML, because assignments are read as YAML: a model called "1e5" or "no" stays a text.
    chosen = [f"verification.judge={yaml.safe_dump(judge)}"] if judge is not None else []
    config = (Config.from_yaml(file) if file else Config()).override([*chosen, *(assignments or ())])
    source = Datastore(read_evidence(documents)) if documents else datastore or config.datastore
    if source is None:
        raise InvalidRequestError(_NOTHING)
    with Console(stderr=True).status("opening evidence and judge ..."):
        retriever, summary = open_datastore(source, config.retrieval)
        if retriever is None or summary is None:
            raise InvalidRequestError(_NOTHING)
        verifier = open_checker(config, retriever)
    named = ", ".join(documents) if documents else str(source)
    return OpenedVerifier(verifier, f"{named}, searched by {summary.search}")


def read_evidence(sources: Sequence[str]) -> list[Passage]:
    """The passages of documents, folders and patterns, cut as `ewe index build` cuts them; equal ones once.

    Raises DatastoreError naming the file for what does not exist or cannot be read, or if there is no text at all.
    """
    from ewe.retrieval.ingest.chunker import ChunkRules
    from ewe.retrieval.ingest.documents import Problem, ReadOptions
    from ewe.retrieval.ingest.files import find_files
    from ewe.retrieval.ingest.readers import read_blocks
    from ewe.retrieval.ingest.work import Worker, WorkRules

    reading = ReadOptions()
    worker = Worker(WorkRules(reading, ChunkRules(), dedup="off"))
    passages: list[Passage] = []
    for file in find_files(sources, leave_out=Path())[0]:
        for block in read_blocks(file, reading):
            outcome = None if isinstance(block, Problem) else worker(block)
            problems = [block] if outcome is None else outcome.problems
            if problems:
                raise DatastoreError(f"cannot read the document {problems[0]}")
            passages += [item.passage for item in outcome.prepared] if outcome else []
    if not passages:
        raise DatastoreError(f"there is no text in {', '.join(sources)}")
    return passages
