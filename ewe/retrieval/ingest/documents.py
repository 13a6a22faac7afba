"""What readers hand on: blocks of a file, the documents in them, and what could not be read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

LONGEST_ROW = 64 << 20
"""Bytes of one row or line; a longer one is refused, as it is read whole."""
LARGEST_WHOLE = 256 << 20
"""Bytes of one HTML, PDF or Office file, also unpacked; a larger one is refused, as it is read whole."""

_DISTRIBUTIONS = {"docx": "python-docx", "pptx": "python-pptx"}
FIELDS = ("id", "text", "title", "source", "url", "date", "veracity")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to read: `label` is its path as the user wrote it, the beginning of its passages' ids."""

    path: Path
    label: str
    kind: str


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are read.

    columns: field of a passage -> column of a table or key of a JSON object; fields that are not named are looked for
    under their own name. encoding: of text files; None finds UTF-8, and UTF-16 and UTF-32 by their mark. source: the
    source of documents that name none; None takes the file's label.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a file, cut so that it can be worked on alone.

    payload is the reader's own. first: number of the first row or part in it, from 1. size: about how many bytes of
    the file it stands for.
    """

    file: SourceFile
    payload: Any
    first: int
    size: int


@dataclass(frozen=True, slots=True)
class Mark:
    """From code point `start` on, text stands under this title and at this address; "" leaves the document's own."""

    start: int
    title: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One text before it is cut into passages; marks are in the order of their starts. veracity None: not stated.

    metadata: further fields by name, as JSON has them; every passage gets them.
    """

    id: str
    text: str
    title: str = ""
    source: str = ""
    url: str = ""
    date: str = ""
    veracity: float | None = None
    marks: tuple[Mark, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read, and why; `where` is a file, or a file and a row."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class UnreadableError(Exception):
    """Raised inside readers when the rest of a file cannot be read; the message becomes a `Problem`."""


def whole_file(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """The whole file as one block, which whoever works on it reads. Raises UnreadableError if it is too large."""
    size = file.path.stat().st_size
    if size > LARGEST_WHOLE:
        raise UnreadableError(f"it has {size >> 20} MiB; {file.kind} of at most {LARGEST_WHOLE >> 20} MiB can be read")
    yield Block(file, None, 1, size)


def from_extra(kind: str, package: str, extra: str = "documents") -> Any:
    """A package that reads a kind of file, imported when such a file is met. Raises UnreadableError without it."""
    try:
        return import_module(package)
    except ImportError as error:
        name = _DISTRIBUTIONS.get(package, package.partition(".")[0])
        raise UnreadableError(f"reading {kind} needs {name}: pip install 'ewe-engine[{extra}]'") from error
