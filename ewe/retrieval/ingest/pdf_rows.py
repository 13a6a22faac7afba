"""Rows of tables in the text of a PDF's page, whose cells come one by one, in lines of their own or of several.

A row is what stands on one line of the page, in columns with gaps between them, and comes in one piece in the page's
text. So the lines of pages with two columns of prose are no rows: their text comes column by column.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from ewe.retrieval.ingest.row_tables import headings_of
from ewe.retrieval.ingest.table_rows import row_text

ROW = "\x02"
"""Begins a line that is a row."""
_CELL = re.compile(r"\S+(?: \S+)*")
_LEAST_ROWS = 3
_ALIGNED = 0.8  # share of a column's cells that begin, or end, at the same place
_MOST_LINES = 2000  # of a page: comparing takes time in the square of them

_Cells = list[re.Match[str]]


def with_rows(page: str, layout: str) -> str:
    """The text of a page with each row of a table in a line of its own, its cells behind their columns' headings.

    layout: the same page as lines whose characters stand where they are printed.
    """
    lines = page.split("\n")
    if len(lines) > _MOST_LINES:
        return page
    packed = ["".join(line.split()) for line in lines]
    kept, place = [], 0
    for cells, row in _rows(layout):
        found = _find(packed, "".join("".join(cells).split()), place)
        if found is not None:
            start, end = found
            kept += [*lines[place:start], *([ROW + row] if row else [])]
            place = end
    return "\n".join([*kept, *lines[place:]])


def _find(packed: Sequence[str], key: str, place: int) -> tuple[int, int] | None:
    """Where lines that are this text without spaces begin and end, from `place` on."""
    for start in range(place, len(packed)):
        if packed[start] and key.startswith(packed[start]):
            end, rest = start, key
            while end < len(packed) and rest and rest.startswith(packed[end]):
                rest = rest[len(packed[end]) :]
                end += 1
            if not rest:
                return start, end
    return None


def _rows(layout: str) -> Iterator[tuple[list[str], str]]:
    """(cells, text) of each row of each table; no text for a row of headings."""
    lines = [list(_CELL.finditer(line.replace("\t", " "))) for line in layout.split("\n")]
    for is_table, group in groupby(filter(None, lines), key=lambda cells: len(cells) > 1):
        block = list(group)
        width = Counter(map(len, block)).most_common(1)[0][0]
        full = [cells for cells in block if len(cells) == width]
        if not is_table or len(full) < _LEAST_ROWS or not _are_aligned(full):
            continue
        headings = headings_of([_texts(cells) for cells in full]) if len(block[0]) == width else ()
        for cells in block:
            texts = _texts(cells)
            is_heading = bool(headings) and texts == list(headings)
            yield texts, "" if is_heading else row_text(headings, texts)


def _texts(cells: _Cells) -> list[str]:
    return [cell[0] for cell in cells]


def _are_aligned(rows: Sequence[_Cells]) -> bool:
    return all(
        max(_share([cell.start() for cell in column]), _share([cell.end() for cell in column])) >= _ALIGNED
        for column in zip(*rows, strict=True)
    )


def _share(places: Sequence[int]) -> float:
    """Share of the places that are the commonest one, or next to it."""
    common = Counter(places).most_common(1)[0][0]
    return sum(abs(place - common) <= 1 for place in places) / len(places)
