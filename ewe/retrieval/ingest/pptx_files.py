"""Reading PPTX through python-pptx: what its slides show, each under its title."""

import re
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import Any

from ewe.retrieval.ingest.documents import Block, Document, Mark, Problem, ReadOptions, from_extra
from ewe.retrieval.ingest.fields import whole_document
from ewe.retrieval.ingest.office_package import description, reading
from ewe.retrieval.ingest.row_tables import headings_of
from ewe.retrieval.ingest.table_rows import rows_text

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_ON_EVERY_SLIDE = ("dt", "ftr", "sldNum", "hdr")
_EXPONENT = re.compile(r"[-+−]?\d")


def documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """The document of the file; a passage's url names its slide. Raises UnreadableError.

    Hidden slides, notes, charts, and what stands on every slide are left out.
    """
    pptx = from_extra("PPTX", "pptx", "office")
    text, marks = StringIO(), []
    with reading(block.file.path, "PPTX"):
        opened = pptx.Presentation(str(block.file.path))
        title, date = description(opened.core_properties)
        title = title or block.file.path.stem
        read = set()  # a presentation may name a slide any number of times
        for number, slide in enumerate(opened.slides, 1):
            if slide.element.get("show") in ("0", "false") or slide.part.partname in read:
                continue
            read.add(slide.part.partname)
            heading = slide.shapes.title
            name = _line(heading.text_frame) if heading is not None else ""
            shown = f"{title} - {name}" if name and name != title else title
            marks.append(Mark(text.tell(), shown, f"{block.file.label}#slide={number}"))
            text.writelines(_paragraphs(shape for shape in slide.shapes if shape != heading))
    values = {"id": block.file.label, "text": text.getvalue(), "title": title, "date": date}
    yield whole_document(values, block, options, marks)


def _paragraphs(shapes: Iterable[Any]) -> Iterator[str]:
    for shape in shapes:
        if shape.is_placeholder and shape.element.ph.get("type") in _ON_EVERY_SLIDE:
            continue
        if hasattr(shape, "shapes"):  # a group
            yield from _paragraphs(shape.shapes)
        elif shape.has_text_frame:
            texts = (_text(paragraph) for paragraph in shape.text_frame.paragraphs)
            yield from (f"{text}\n\n" for text in texts if text)
        elif getattr(shape, "has_table", False):
            yield _table(shape.table)


def _table(table: Any) -> str:
    """A paragraph for each row, its cells behind their columns' headings where the table has such."""
    rows = [list(row.cells) for row in table.rows]
    cells = [[_line(cell.text_frame) for cell in row] for row in rows]
    spans = any(cell.is_merge_origin or cell.is_spanned for row in rows for cell in row)
    return rows_text(() if spans else headings_of(cells, table.first_row), cells)


def _line(frame: Any) -> str:
    return " ".join(" ".join(_text(paragraph) for paragraph in frame.paragraphs).split())


def _text(paragraph: Any) -> str:
    return "".join(map(_piece, paragraph._p)).strip()


def _piece(element: Any) -> str:
    """The text of a run, a field or the end of a line; a raised number is no part of the one before it."""
    if element.tag == f"{_A}br":
        return "\n"
    text = element.findtext(f"{_A}t") or ""
    properties = element.find(f"{_A}rPr")
    is_raised = properties is not None and properties.get("baseline", "0")[:1] not in "-0"
    return f"^{text}" if is_raised and _EXPONENT.match(text) else text
