"""Tables as text whose rows can be read one by one: each cell behind the heading of its column."""

from collections.abc import Sequence


def table_text(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A paragraph for each row ("Ticket: Adults; Price: 12"); the headings alone where there is no row."""
    return "".join(f"{row_text(headings, row)}\n\n" for row in rows) or f"{' '.join(headings)}\n\n"


def rows_text(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """As `table_text` where the first row holds the headings; without headings the cells that are not empty."""
    if headings:
        return table_text(headings, rows[1:])
    return "".join(f"{' '.join(filter(None, row))}\n\n" for row in rows if any(row))


def row_text(headings: Sequence[str], cells: Sequence[str]) -> str:
    """The cells behind their headings; without them where not every cell has a column of its own."""
    if len(headings) != len(cells):
        return " ".join(cells)
    named = (f"{heading}: {cell}" if heading else cell for heading, cell in zip(headings, cells, strict=True) if cell)
    return "; ".join(named)


class Columns:
    """The columns of a table that is read cell by cell, whose headings are a first row of nothing but headings.

    Cells that span several columns or rows leave no telling which column one is in: then none has a heading.
    """

    def __init__(self) -> None:
        self._headings: list[str] = []
        self._starts: list[int] = []  # where the cells of the row begin, in the parts of the page
        self._has_headings_only = True
        self._is_regular = True
        self._num_rows = 0

    def cell(self, is_heading: bool, is_plain: bool, place: int) -> str:
        """What stands before a cell; is_plain: whether it spans nothing; place: how many parts the page has so far."""
        column = len(self._starts)
        self._starts.append(place)
        self._has_headings_only &= is_heading
        self._is_regular &= is_plain
        if not self._is_regular or column >= len(self._headings):
            return " "
        return f"{'; ' if column else ''}{self._headings[column]}: "

    def end_row(self, parts: Sequence[str]) -> None:
        """Ends a row; parts: those of the page."""
        if self._starts and not self._num_rows and self._has_headings_only and len(self._starts) > 1:
            ends = [*self._starts[1:], len(parts)]
            self._headings = ["".join(parts[start:end]).strip() for start, end in zip(self._starts, ends, strict=True)]
        self._num_rows += bool(self._starts)
        self._starts, self._has_headings_only = [], True
