"""Which files the user means, and from their bytes to text."""

import codecs
import glob
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from ewe.errors import DatastoreError
from ewe.retrieval.ingest.documents import SourceFile, UnreadableError

KINDS = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".eml": "eml",
    ".docx": "docx",
    ".pptx": "pptx",
    ".xlsx": "xlsx",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


@dataclass(slots=True)
class Found:
    """What paths, folders and patterns stand for, each once.

    unknown: paths of files of unknown kind; links: paths of links in folders that lead to a folder or to nothing.
    """

    files: list[SourceFile]
    unknown: list[str]
    links: list[str]


def find_files(sources: Sequence[str], leave_out: Path) -> Found:
    """The files that paths, folders and patterns stand for.

    Folders are searched in depth, in the order of names, without hidden files; links to folders in them are not
    followed, so that no file is read twice. `leave_out` is the folder of the datastore itself. Raises DatastoreError
    for what does not exist, a pattern that fits nothing, and a file of unknown kind that was named itself.
    """
    files: dict[Path, SourceFile] = {}
    unknown: dict[Path, str] = {}
    links: dict[str, None] = {}
    for source in sources:
        for path, named in _expand(source, leave_out.resolve()):
            kind = KINDS.get(path.suffix.lower())
            if path.is_symlink() and not path.is_file():
                links[str(path)] = None
            elif kind is None and named:
                raise DatastoreError(f"{path}: unknown kind of file; known are {', '.join(KINDS)}")
            elif kind is None:
                unknown.setdefault(path.resolve(), str(path))
            else:
                files.setdefault(path.resolve(), SourceFile(path.resolve(), str(path), kind))
    if not files:
        raise DatastoreError(f"no readable file in {', '.join(sources)}; known are {', '.join(KINDS)}")
    return Found(list(files.values()), list(unknown.values()), list(links))


def place_of(source: str) -> Path:
    """The file or folder that a path names, or the folder that a pattern begins in."""
    parts = Path(source).parts
    named = parts if Path(source).exists() else takewhile(lambda part: not glob.has_magic(part), parts)
    return Path(*named).resolve()


def _expand(source: str, leave_out: Path) -> Iterator[tuple[Path, bool]]:
    """(file, whether the user named it) for one argument."""
    is_named = Path(source).exists()
    if not is_named and not glob.has_magic(source):
        raise DatastoreError(f"{source} does not exist")
    matches = [source] if is_named else sorted(glob.glob(source, recursive=True))
    if not matches:
        raise DatastoreError(f"no file fits the pattern {source!r}")
    for match in map(Path, matches):
        if match.is_dir():
            yield from ((file, False) for file in _walk(match, leave_out))
        else:
            yield match, is_named


def _walk(folder: Path, leave_out: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and Path(place, name).resolve() != leave_out
        )
        links = [name for name in folders if Path(place, name).is_symlink()]
        yield from (Path(place, name) for name in sorted([*files, *links]) if not name.startswith("."))


def _refuse(error: OSError) -> None:
    raise DatastoreError(f"{error.filename}: {error.strerror}") from error


_MARKS = (  # UTF-32 before UTF-16, whose mark it begins with
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 8192
_PIECE = 1 << 20
# Control characters that text does not hold; tab, line ends, form feed, escape and the end-of-file mark may occur.
_BINARY = re.compile("[\x00-\x08\x0e-\x19\x1c-\x1f]")


def check_encoding(name: str | None) -> None:
    """Raises DatastoreError for an encoding that Python does not know."""
    if name is not None:
        try:
            codecs.lookup(name)
        except LookupError as error:
            raise DatastoreError(f"unknown encoding {name!r}: try utf-8, utf-16, latin-1 or cp1252") from error


def check_text(sample: str) -> None:
    """Raises UnreadableError if a piece of decoded text looks like binary data."""
    match = _BINARY.search(sample)
    if match and (match.group() == "\x00" or len(_BINARY.findall(sample)) > len(sample) // 100):
        raise UnreadableError("it is no text (binary data)")


def decode(data: bytes, stated: str | None) -> str:
    """The text of a whole file: what is valid UTF-8 is UTF-8, whatever is stated.

    Raises UnreadableError for binary data and for bytes that its encoding cannot hold.
    """
    encoding = _checked_encoding(data[:_SAMPLE], None if _may_be_utf8(stated) and _is_utf8([data]) else stated)
    try:
        text = data.decode(encoding)
    except UnicodeError as error:
        raise _undecodable(encoding, error) from error
    check_text(text[:_SAMPLE])
    return text


@contextmanager
def open_text(path: Path, stated: str | None) -> Iterator[io.TextIOWrapper]:
    """A text file to stream, line ends as they are. Raises UnreadableError as `decode` does, while it is read."""
    with path.open("rb") as raw:
        if _may_be_utf8(stated) and _is_utf8(iter(lambda: raw.read(_PIECE), b"")):
            stated = None
        raw.seek(0)
        encoding = _checked_encoding(raw.read(_SAMPLE), stated)
        raw.seek(0)
        try:
            with io.TextIOWrapper(raw, encoding=encoding, newline="") as text:
                yield text
        except UnicodeError as error:
            raise _undecodable(encoding, error) from error


def decode_line(line: bytes, stated: str | None) -> str:
    """A line as `decode` reads a file. Raises UnicodeError."""
    return line.decode("utf-8" if _may_be_utf8(stated) and _is_utf8([line]) else stated or "utf-8")


def _may_be_utf8(stated: str | None) -> bool:
    """Whether files that are valid UTF-8 are read as such although another encoding is stated: one that has ASCII."""
    if stated is None:
        return False
    try:
        return bytes(range(128)).decode(stated) == bytes(range(128)).decode("ascii")
    except UnicodeError:
        return False


def _is_utf8(pieces: Iterable[bytes]) -> bool:
    """Texts in other encodings hardly ever are valid UTF-8 by accident."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in pieces:
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _checked_encoding(head: bytes, stated: str | None) -> str:
    """The encoding of a file that begins with `head`: its mark's, else the stated one, else UTF-8.

    Zero bytes tell binary data, unless characters are that wide.
    """
    encoding = next((name for mark, name in _MARKS if head.startswith(mark)), stated or "utf-8")
    if b"\x00" in head and not codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
        raise UnreadableError("it is no text (binary data), or UTF-16 without its mark: name it with --encoding")
    return encoding


def _undecodable(encoding: str, error: UnicodeError) -> UnreadableError:
    why = f"{error.reason} at byte {error.start}" if isinstance(error, UnicodeDecodeError) else str(error)
    return UnreadableError(f"it is not {encoding.upper()} ({why}): name its encoding with --encoding")
