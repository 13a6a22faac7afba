"""Reading DOCX through python-docx: what its reader sees, each section under its heading."""

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

from ewe.retrieval.ingest.documents import Block, Document, Mark, Problem, ReadOptions, from_extra
from ewe.retrieval.ingest.fields import whole_document
from ewe.retrieval.ingest.office_package import description, reading
from ewe.retrieval.ingest.row_tables import headings_of
from ewe.retrieval.ingest.table_rows import rows_text

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_BLOCKS = {f"{_W}{name}" for name in ("body", "sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag")}
# What was deleted, what is drawn once more for older programs, and texts in frames, which follow their paragraph.
_LEFT_OUT = {f"{_W}{name}" for name in ("del", "moveFrom", "pPr", "txbxContent", "instrText")} | {
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
}
_SIGNS = {f"{_W}tab": " ", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
_HEADING = re.compile(r"(?:heading [1-4]|title)\Z", re.IGNORECASE)
_EXPONENT = re.compile(r"[-+−]?\d")
_OFF = ("0", "false", "off")
_DEEPEST = 10  # styles that a style is based on


def documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """The document of the file. Raises UnreadableError. Headers, footers, notes and comments are left out."""
    docx = from_extra("DOCX", "docx", "office")
    with reading(block.file.path, "DOCX"):
        opened = docx.Document(str(block.file.path))
        text = _Text({style.style_id for style in opened.styles if _is_heading(style)})
        text.add(opened.element.body)
        title, date = description(opened.core_properties)
    marks = text.marks
    title = (marks[0].title if marks and not marks[0].start else title) or block.file.path.stem
    sections = [Mark(mark.start, title if mark.title == title else f"{title} - {mark.title}") for mark in marks]
    values = {"id": block.file.label, "text": text.written.getvalue(), "title": title, "date": date}
    yield whole_document(values, block, options, sections)


def _is_heading(style: Any) -> bool:
    """Whether it is a heading's style, or based on one: companies have headings of their own."""
    for _ in range(_DEEPEST):
        if style is None or not hasattr(style, "base_style"):
            return False
        if _HEADING.match(style.name or ""):
            return True
        style = style.base_style
    return False


class _Text:
    """The text so far, and a mark where each heading's section begins."""

    def __init__(self, headings: set[str]) -> None:
        self.written, self.marks = StringIO(), list[Mark]()
        self._headings = headings

    def add(self, parent: Any) -> None:
        """What stands in a body, a frame or a form's field; a table of contents says nothing of its own."""
        for element in parent:
            if element.tag == f"{_W}p":
                self._paragraph(element)
            elif element.tag == f"{_W}tbl":
                self.written.write(_table(element))
            elif element.tag in _BLOCKS and element.find(f"{_W}sdtPr/{_W}docPartObj") is None:
                self.add(element)

    def _paragraph(self, paragraph: Any) -> None:
        text = _inline(paragraph).strip()
        style = paragraph.find(f"{_W}pPr/{_W}pStyle")
        if text and style is not None and style.get(f"{_W}val") in self._headings:
            self.marks.append(Mark(self.written.tell(), " ".join(text.split())))
        elif text:
            self.written.write(f"{text}\n\n")
        for frame in _outermost(paragraph, f"{_W}txbxContent"):
            self.add(frame)


def _table(table: Any) -> str:
    """A paragraph for each row, its cells behind their columns' headings where the table has such."""
    rows = [(row, row.findall(f"{_W}tc")) for row in table.iter(f"{_W}tr") if row.getparent() is table]
    cells = [[_cell(cell) for cell in row_cells] for _, row_cells in rows]
    spans = any(_spans(cell) for _, row_cells in rows for cell in row_cells)
    return rows_text(() if spans or not rows else headings_of(cells, _is_marked(rows[0][0])), cells)


def _cell(cell: Any) -> str:
    return " ".join(" ".join(_inline(paragraph) for paragraph in cell.iter(f"{_W}p")).split())


def _spans(cell: Any) -> bool:
    return any(cell.find(f"{_W}tcPr/{_W}{name}") is not None for name in ("gridSpan", "vMerge", "hMerge"))


def _is_marked(row: Any) -> bool:
    """Whether a row is repeated on every page, or written in bold."""
    is_repeated = row.find(f"{_W}trPr/{_W}tblHeader") is not None
    runs = [run for run in row.iter(f"{_W}r") if run.find(f"{_W}t") is not None]
    return is_repeated or (bool(runs) and all(_has(run, "b") for run in runs))


def _inline(paragraph: Any) -> str:
    """The text of a paragraph as it is shown, without what was deleted or is hidden."""
    return "".join(_pieces(paragraph))


def _pieces(parent: Any) -> Iterator[str]:
    for element in parent:
        if element.tag in _LEFT_OUT or (element.tag == f"{_W}r" and _has(element, "vanish")):
            continue
        if element.tag == f"{_W}t":
            text = element.text or ""
            yield f"^{text}" if _is_raised(parent) and _EXPONENT.match(text) else text
        elif element.tag in _SIGNS:
            yield _SIGNS[element.tag]
        else:
            yield from _pieces(element)


def _is_raised(run: Any) -> bool:
    align = run.find(f"{_W}rPr/{_W}vertAlign")
    return align is not None and align.get(f"{_W}val") == "superscript"


def _has(run: Any, name: str) -> bool:
    switch = run.find(f"{_W}rPr/{_W}{name}")
    return switch is not None and switch.get(f"{_W}val") not in _OFF


def _outermost(parent: Any, tag: str) -> Iterator[Any]:
    for element in parent:
        if element.tag == tag:
            yield element
        elif element.tag not in _LEFT_OUT:
            yield from _outermost(element, tag)
