"""What DOCX, PPTX and XLSX have in common: an archive that is checked before it is opened, and its description."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import ZipFile, ZipInfo

from ewe.retrieval.ingest.documents import LARGEST_WHOLE, UnreadableError
from ewe.retrieval.ingest.titles import sound_title

_MOST_PARTS = 20_000
_LARGEST_TREE = 48 << 20  # bytes of XML that is held as a tree, which has some twenty-five times as many
_PIECE = 1 << 20
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # begins files that are locked, and those of the older formats
_DECLARES = b"<!DOCTYPE"
_BEFORE_XML = b"\xef\xbb\xbf\xff\xfe \t\r\n"


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Checks an archive, then makes every fault of the library that reads it an UnreadableError.

    Refused are archives that unpack to too much, and declarations in XML, which could name other files or stand for
    more text than there is memory. Macros are never run, links never followed.
    """
    try:
        with path.open("rb") as raw:
            if raw.read(len(_COMPOUND)) == _COMPOUND:
                raise UnreadableError(f"it is locked or of an older kind: save it as {kind} without a password first")
        with ZipFile(path) as archive:
            _check(archive)
        yield
    except (UnreadableError, OSError):
        raise
    except Exception as error:  # a damaged file can make the libraries fail anywhere, and in any way
        raise UnreadableError(f"it is damaged or no {kind} ({type(error).__name__}: {error})") from error


def description(properties: Any) -> tuple[str, str]:
    """(title, day of the last change) from the core properties of an open file, "" for what is missing or damaged."""
    try:
        changed = properties.modified
        return sound_title(str(properties.title or "")), changed.date().isoformat() if changed else ""
    except Exception:  # a damaged description is no reason to refuse the text
        return "", ""


def _check(archive: ZipFile) -> None:
    """Sizes are those that the archive states: nothing unpacks to more, or unpacking fails."""
    parts = archive.infolist()
    total = sum(part.file_size for part in parts)
    if len(parts) > _MOST_PARTS or total > LARGEST_WHOLE:
        raise UnreadableError(
            f"it unpacks to {total >> 20} MiB in {len(parts):,} parts; at most {LARGEST_WHOLE >> 20} MiB in "
            f"{_MOST_PARTS:,} parts can be read"
        )
    xml = [part for part in parts if _is_xml(archive, part)]
    streamed = _sheets(archive, xml)
    tree = sum(part.file_size for part in xml if part.filename not in streamed)
    if tree > _LARGEST_TREE:
        raise UnreadableError(f"its text unpacks to {tree >> 20} MiB; at most {_LARGEST_TREE >> 20} MiB can be read")


def _is_xml(archive: ZipFile, part: ZipInfo) -> bool:
    """Whether a part may be XML, whatever its name. Raises UnreadableError for one with a declaration."""
    with archive.open(part) as content:
        held = content.read(_PIECE)
        if not held.replace(b"\0", b"").lstrip(_BEFORE_XML).startswith(b"<"):
            return False
        while held:
            if _DECLARES in held.replace(b"\0", b""):  # without zeros UTF-16 reads as ASCII
                raise UnreadableError("it holds a document type declaration, which such files must not have")
            piece = content.read(_PIECE)
            held = held[-2 * len(_DECLARES) :] + piece if piece else b""
    return True


def _sheets(archive: ZipFile, xml: Sequence[ZipInfo]) -> set[str]:
    """Names of the parts that are sheets and nothing else, which are read in a stream."""
    types = [part for part in xml if part.filename == "[Content_Types].xml"]
    if len(types) != 1 or types[0].file_size > _PIECE:
        return set()
    entries = [entry.attrib for entry in ElementTree.fromstring(archive.read(types[0]))]  # noqa: S314 - no declarations
    named = [(entry.get("PartName", "").lstrip("/"), entry.get("ContentType", "")) for entry in entries]
    return {name for name, _ in named} - {name for name, kind in named if not kind.endswith(".worksheet+xml")}
