"""Reading XLSX through openpyxl: the rows of each sheet that is shown, in a stream."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Any

from ewe.retrieval.ingest.documents import (
    Block,
    Document,
    Problem,
    ReadOptions,
    SourceFile,
    UnreadableError,
    from_extra,
    whole_file,
)
from ewe.retrieval.ingest.office_package import description, reading
from ewe.retrieval.ingest.row_files import groups
from ewe.retrieval.ingest.row_tables import Layout, cell_text, head_of, headings_of, row_document

_MOST_CELLS = 5_000_000  # of a workbook, empty ones before others too
_SAMPLE = 100  # rows that tell which one names the columns
_PACKED = 8  # characters that a byte of the file stands for, about
_PLAIN = Layout((), has_texts=False)
_Row = tuple[int, list[str]]  # number in the sheet, cells


def blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """Rows of a sheet in groups of about 256 KiB, with what they stand under. Raises UnreadableError.

    Formulas have the values that were last computed; hidden sheets and charts are left out.
    """
    openpyxl = from_extra("XLSX", "openpyxl", "office")
    warnings.filterwarnings("ignore", category=UserWarning, module="openpyxl")  # of what it does not write back
    list(whole_file(file, options))
    number = 1
    with (
        reading(file.path, "XLSX"),
        closing(openpyxl.load_workbook(file.path, read_only=True, data_only=True, keep_links=False)) as book,
    ):
        sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
        named = description(book.properties)[0] or file.path.stem
        cells = _Budget()
        for sheet in sheets:
            title = named if len(sheets) == 1 else f"{named} - {sheet.title}"
            for layout, rows in _parts(cells.within(_rows(sheet)), options):
                for group, _, size in groups((row, sum(map(len, row[1]))) for row in rows):
                    yield Block(file, (sheet.title, title, layout, group), number, size // _PACKED)
                    number += len(group)


def documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """One entry per row; a passage's url names its sheet and row."""
    sheet, title, layout, rows = block.payload
    for number, row in rows:
        url, place = f"{block.file.label}#{sheet}!A{number}", f"{sheet}!{number}"
        width = len(layout.names)
        own = layout if len(row) <= width else _PLAIN
        padded = row + [""] * (width - len(row))
        yield row_document(own, padded if own is layout else row, place, block, options, url, title)


class _Budget:
    """Counts the cells of a workbook."""

    def __init__(self) -> None:
        self._left = _MOST_CELLS

    def within(self, rows: Iterable[tuple[int, Sequence[Any]]]) -> Iterator[tuple[int, Sequence[Any]]]:
        """The rows; raises UnreadableError before a cell too many."""
        for number, row in rows:
            self._left -= max(1, len(row))
            if self._left < 0:
                raise UnreadableError(f"it has more than {_MOST_CELLS:,} cells: the rest is left out")
            yield number, row


def _rows(sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:
    sheet.reset_dimensions()  # what a file states of them would be filled up with empty cells
    return enumerate(sheet.iter_rows(), 1)


def _parts(rows: Iterator[tuple[int, Sequence[Any]]], options: ReadOptions) -> Iterator[tuple[Layout, Iterable[_Row]]]:
    """The rows above the one that names the columns, and those below it."""
    written = ((number, _texts(row), row) for number, row in rows if any(cell.value is not None for cell in row))
    sample = list(islice(written, _SAMPLE))
    before, layout = _head(sample, options)
    yield _PLAIN, [(number, row) for number, row, _ in sample[:before]]
    below = chain(sample[before + bool(layout.names) :], written)
    yield layout, ((number, row) for number, row, _ in below)


def _head(sample: Sequence[tuple[int, list[str], Sequence[Any]]], options: ReadOptions) -> tuple[int, Layout]:
    rows = [row for _, row, _ in sample]
    text = options.columns.get("text", "text").lower()
    if rows and (options.columns or text in (cell.lower() for cell in rows[0])):
        return head_of(rows, options)
    before = next((place for place, row in enumerate(rows) if sum(map(bool, row)) > 1), len(rows))
    width = len(rows[before]) if before < len(rows) else 0
    table = [(row + [""] * width)[:width] for row in rows[before:]]
    is_marked = bool(table) and all(cell.font.b for cell in sample[before][2] if cell.value is not None)
    return before, Layout(tuple(headings_of(table, is_marked)), has_texts=False)


def _texts(row: Sequence[Any]) -> list[str]:
    """The cells as texts, without empty ones at the end."""
    texts = [_text(cell) for cell in row]
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _text(cell: Any) -> str:
    value = cell.value
    if value is None or cell.data_type == "e":  # an error, such as "#REF!"
        return ""
    if isinstance(value, int | float) and "%" in (cell.number_format or ""):
        return f"{value * 100:.15g}%"
    return cell_text(value)
