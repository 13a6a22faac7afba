"""Fields of documents from rows of tables and JSON objects; the table of veracities by source."""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import yaml

from ewe.errors import DatastoreError
from ewe.retrieval.datastore import is_unicode
from ewe.retrieval.ingest.documents import FIELDS, Block, Document, Mark, Problem, ReadOptions, UnreadableError
from ewe.retrieval.ingest.files import decode


def parse_columns(assignments: Iterable[str]) -> dict[str, str]:
    """FIELD=COLUMN arguments as a mapping. Raises DatastoreError naming the argument and the known fields."""
    columns = {}
    for assignment in assignments:
        name, equals, column = assignment.partition("=")
        if not equals or not column or name not in FIELDS:
            raise DatastoreError(f"{assignment!r} is not of the form FIELD=COLUMN; fields: {', '.join(FIELDS)}")
        columns[name] = column
    return columns


def document(
    values: Mapping[str, Any], number: int | str, block: Block, options: ReadOptions
) -> Document | Problem | None:
    """The document of one row, a problem with it, or None if its text is empty."""
    where = f"{block.file.label}:{number}"
    try:
        chosen = {name: values.get(options.columns.get(name, name)) for name in FIELDS}
        text = _text_of(chosen.pop("text"), options.columns.get("text", "text"), values)
        if not text.strip():
            return None
        veracity = _veracity(chosen.pop("veracity"))
        texts = {name: _plain(value, name) for name, value in chosen.items()}
        metadata = further_fields(values, {options.columns.get(name, name) for name in FIELDS})
    except ValueError as error:
        return Problem(where, str(error))
    return Document(
        id=texts["id"] or where,
        text=text,
        title=texts["title"],
        source=texts["source"] or options.source or block.file.label,
        url=texts["url"],
        date=texts["date"],
        veracity=veracity,
        metadata=metadata,
    )


def whole_document(
    values: Mapping[str, Any], block: Block, options: ReadOptions, marks: Iterable[Mark] = ()
) -> Document | Problem | None:
    """The document of a block that is no row: its fields have their own names. marks: where its sections begin."""
    read = document(values, block.first, block, ReadOptions(source=options.source))
    return replace(read, marks=tuple(marks)) if isinstance(read, Document) else read


def further_fields(values: Mapping[str, Any], fields: Set[str]) -> dict[str, Any]:
    """What is none of these fields, empty values left out; dates and the like as texts. Raises ValueError."""
    rest = {key: value for key, value in values.items() if key not in fields and value not in (None, "", [], {})}
    text = json.dumps(rest, ensure_ascii=False, default=str)
    if not is_unicode(text):
        raise ValueError("a further field holds half of a surrogate pair")
    metadata: dict[str, Any] = json.loads(text)
    return metadata


def _text_of(value: Any, column: str, values: Mapping[str, Any]) -> str:
    if value is None:
        if column in values:
            return ""
        raise ValueError(f"it has no {column!r}; it has {', '.join(map(repr, values)) or 'nothing'}")
    if not isinstance(value, str):
        raise ValueError(f"{column} must be a text, found {type(value).__name__}")
    return _unicode(value, column)


def _plain(value: Any, name: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bool | list | dict | bytes):
        raise ValueError(f"{name} must be a text or a number, found {type(value).__name__}")
    return _unicode(str(value), name).strip()


def _veracity(value: Any) -> float | None:
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"veracity must be a number, found {value!r}") from None
    if math.isnan(number):
        return None
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"veracity must lie in [0, 1], found {number}")
    return number


def _unicode(value: str, name: str) -> str:
    if not is_unicode(value):
        raise ValueError(f"{name} holds half of a surrogate pair")
    return value


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
            veracity = _veracity(value)
            if veracity is None:
                raise ValueError("veracity is missing")
        except ValueError as error:
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
