"""Reading PDF through pypdf."""

import logging
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ewe.retrieval.ingest.documents import Block, Document, Mark, Problem, ReadOptions, UnreadableError, from_extra
from ewe.retrieval.ingest.fields import whole_document
from ewe.retrieval.ingest.running_lines import without_running_lines

_DIVIDED = re.compile(r"[a-z]-\Z")
_FULL = 2 / 3  # Share of a page's longest line from which on a line may go on in the next one.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """The document of the file; a passage's url names the page it begins on. Raises UnreadableError."""
    pypdf = from_extra("PDF", "pypdf")
    # It warns of every small fault on standard error; what cannot be read is reported by us.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(block.file.path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("it is encrypted: save it without a password first")
        extracted = [_unified(page.extract_text()) for page in reader.pages]
        values = _values(reader)
    except UnreadableError:
        raise
    except Exception as error:  # a damaged file can make pypdf fail anywhere, and in any way
        raise UnreadableError(f"it is damaged or no PDF ({type(error).__name__}: {error})") from error
    pages = [_running(page) for page in without_running_lines(extracted)]
    if not any(pages):
        raise UnreadableError("it holds no text, only pictures perhaps: run text recognition on it first")
    values |= {"id": block.file.label, "text": "\n".join(pages), "title": values["title"] or block.file.path.stem}
    yield whole_document(values, block, options, _page_marks(pages, block.file.label))


def _running(page: str) -> str:
    """A page's lines as paragraphs: one ends with a line that stops early, unless the next line begins small.

    A word that is divided at the end of a line is put together.
    """
    lines = [" ".join(line.split()) for line in page.split("\n")]
    full = _FULL * max(map(len, lines))
    parts = []
    for line, following in pairwise([*lines, ""]):
        begins_small = following[:1].islower()
        if begins_small and _DIVIDED.search(line):
            parts.append(line[:-1])
        elif following and (len(line) >= full or begins_small):
            parts.append(f"{line} ")
        else:
            parts.append(f"{line}\n\n" if line else "")
    return "".join(parts).strip()


def _values(reader: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"title": "", "date": ""}
    try:
        values["title"] = str(reader.metadata.title or "").strip()
        values["date"] = reader.metadata.creation_date.date()
    except Exception:  # noqa: S110 - a damaged description is no reason to refuse the text
        pass
    return values


def _page_marks(pages: list[str], label: str) -> Iterator[Mark]:
    start = 0
    for number, page in enumerate(pages, 1):
        yield Mark(start, url=f"{label}#page={number}")
        start += len(page) + 1


def _unified(page: str) -> str:
    page = page.encode("utf-8", "replace").decode("utf-8")  # fonts can map glyphs to half of a surrogate pair
    return _CONTROL.sub("", page.replace("\r\n", "\n").replace("\r", "\n"))
