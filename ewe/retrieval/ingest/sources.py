"""How far each source can be believed, as a file says."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from ewe.errors import DatastoreError
from ewe.retrieval.ingest.documents import UnreadableError
from ewe.retrieval.ingest.encodings import decode
from ewe.retrieval.ingest.rows import check_veracity


def read_sources(path: Path) -> dict[str, float]:
    """Veracity in [0, 1] by source; the source "*" stands for all that are not named.

    YAML: one "source: veracity" per line. CSV: the columns source and veracity. Raises DatastoreError naming the file
    and the source for anything else.
    """
    try:
        text = decode(path.read_bytes(), None)
    except (OSError, UnreadableError) as error:
        raise DatastoreError(f"the table of sources {path} cannot be read: {error}") from error
    table: dict[str, float] = {}
    for source, value in _csv(path, text) if path.suffix.lower() in (".csv", ".tsv") else _yaml(path, text):
        try:
            veracity = check_veracity(value)
        except DatastoreError as error:
            raise DatastoreError(f"{path}: source {source!r}: {error}") from error
        if table.setdefault(source, veracity) != veracity:
            raise DatastoreError(f"{path}: source {source!r} stands there twice, with different values")
    return table


def _yaml(path: Path, text: str) -> Iterable[tuple[str, Any]]:
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DatastoreError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise DatastoreError(f"{path} must hold lines of the form 'source: veracity'")
    return [(str(source), value) for source, value in values.items()]


def _csv(path: Path, text: str) -> Iterable[tuple[str, Any]]:
    rows = csv.DictReader(io.StringIO(text), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    if not {"source", "veracity"} <= set(rows.fieldnames or ()):
        raise DatastoreError(f"{path} must have the columns source and veracity, it has {rows.fieldnames}")
    try:
        return [(row["source"], row["veracity"]) for row in rows]
    except csv.Error as error:
        raise DatastoreError(f"{path}: line {rows.line_num} is no CSV ({error})") from error
