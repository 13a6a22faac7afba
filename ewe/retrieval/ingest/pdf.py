"""Reading PDF through pypdf."""

import logging
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from ewe.retrieval.ingest.documents import Block, Document, Mark, Problem, ReadOptions, UnreadableError, from_extra
from ewe.retrieval.ingest.fields import whole_document
from ewe.retrieval.ingest.pdf_rows import ROW, with_rows
from ewe.retrieval.ingest.running_lines import without_running_lines
from ewe.retrieval.ingest.titles import sound_title

_DIVIDED = re.compile(r"[a-z]-\Z")
_FULL = 2 / 3  # Share of a page's longest line from which on a line may go on in the next one.
_MOST_DRAWN = 20_000_000  # operations: some minutes
_MOST_FOR_ROWS = 100_000  # on a page: more are a map or a drawing
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
        extracted = list(_texts(reader.pages))
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

    A row of a table is one of its own. A word that is divided at the end of a line is put together.
    """
    lines = [" ".join(line.split()) for line in page.split("\n")]
    full = _FULL * max(map(len, lines))
    parts = []
    for line, following in pairwise([*lines, ""]):
        begins_small = following[:1].islower()
        if line.startswith(ROW) or following.startswith(ROW):
            parts.append(f"{line.lstrip(ROW)}\n\n" if line else "")
        elif begins_small and _DIVIDED.search(line):
            parts.append(line[:-1])
        elif following and (len(line) >= full or begins_small):
            parts.append(f"{line} ")
        else:
            parts.append(f"{line}\n\n" if line else "")
    return "".join(parts).strip()


def _texts(pages: Iterable[Any]) -> Iterator[str]:
    """The text of each page; raises UnreadableError where pages, or forms in forms, draw too much."""
    drawn = 0

    def count(*_: Any) -> None:
        nonlocal drawn
        drawn += 1
        if drawn > _MOST_DRAWN:
            raise UnreadableError(f"its pages draw more than {_MOST_DRAWN:,} things: split it first")

    for page in pages:
        before = drawn
        text = _unified(page.extract_text(visitor_operand_before=count))
        yield with_rows(text, _layout(page) if drawn - before <= _MOST_FOR_ROWS else "")


def _layout(page: Any) -> str:
    """The page's lines with their characters where they are printed; "" if its fonts do not allow that."""
    try:
        return _unified(page.extract_text(extraction_mode="layout", layout_mode_space_vertically=False))
    except Exception:  # it needs more of the fonts than the text alone
        return ""


def _values(reader: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"title": "", "date": ""}
    try:
        values["title"] = sound_title(str(reader.metadata.title or ""))
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
