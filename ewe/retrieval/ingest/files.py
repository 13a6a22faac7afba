"""Which files the user means."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ewe.errors import DatastoreError
from ewe.retrieval.ingest.documents import SourceFile

KINDS = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def find_files(sources: Sequence[str], leave_out: Path) -> tuple[list[SourceFile], list[str]]:
    """The files that paths, folders and patterns stand for, each once, and the paths of those of unknown kind.

    Folders are searched in depth, in the order of names, without hidden files and links to folders; `leave_out` is the
    folder of the datastore itself. Raises DatastoreError for what does not exist, a pattern that fits nothing, and a
    file of unknown kind that was named itself.
    """
    found: dict[Path, SourceFile] = {}
    unknown: dict[Path, str] = {}
    for source in sources:
        for path, named in _expand(source, leave_out.resolve()):
            kind = KINDS.get(path.suffix.lower())
            if kind is None and named:
                raise DatastoreError(f"{path}: unknown kind of file; known are {', '.join(KINDS)}")
            if kind is None:
                unknown.setdefault(path.resolve(), str(path))
            else:
                found.setdefault(path.resolve(), SourceFile(path.resolve(), str(path), kind))
    if not found:
        raise DatastoreError(f"no readable file in {', '.join(sources)}; known are {', '.join(KINDS)}")
    return list(found.values()), list(unknown.values())


def _expand(source: str, leave_out: Path) -> Iterator[tuple[Path, bool]]:
    """(file, whether the user named it) for one argument."""
    path = Path(source)
    if path.is_dir():
        yield from ((file, False) for file in _walk(path, leave_out))
    elif path.exists():
        yield path, True
    elif glob.has_magic(source):
        matches = sorted(glob.glob(source, recursive=True))
        if not matches:
            raise DatastoreError(f"no file fits the pattern {source!r}")
        for match in map(Path, matches):
            if match.is_dir():
                yield from ((file, False) for file in _walk(match, leave_out))
            else:
                yield match, False
    else:
        raise DatastoreError(f"{source} does not exist")


def _walk(folder: Path, leave_out: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and Path(place, name).resolve() != leave_out
        )
        yield from (Path(place, name) for name in sorted(files) if not name.startswith("."))


def _refuse(error: OSError) -> None:
    raise DatastoreError(f"{error.filename}: {error.strerror}") from error
