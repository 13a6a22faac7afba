"""What the rows of a table say: the texts of one of its columns, or each row its cells behind the columns' names."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from ewe.retrieval.ingest.documents import FIELDS, Block, Document, Problem, ReadOptions, UnreadableError
from ewe.retrieval.ingest.fields import document, further_fields
from ewe.retrieval.ingest.table_rows import row_text

_YEAR = re.compile(r"(?:19|20)\d\d")
_LETTER = re.compile(r"[^\W\d_]")
_DIGITS = re.compile(r"\d+")
_SAMPLE = 100  # rows that tell whether a first line names columns


@dataclass(frozen=True, slots=True)
class Layout:
    """names: of the columns, none if no line names them. has_texts: whether one of them holds the passages' texts."""

    names: tuple[str, ...]
    has_texts: bool


def layout_of(names: Iterable[str], options: ReadOptions) -> Layout:
    """The layout of a table with these columns. Raises UnreadableError for missing columns, and for one without texts.

    The name of a field may be written in capitals.
    """
    written = [name.strip() for name in names]
    own = set(FIELDS) - {*written, *options.columns}
    named = options.columns.values()
    known = tuple(name.lower() if name.lower() in own and name not in named else name for name in written)
    text = options.columns.get("text", "text")
    missing = [column for column in options.columns.values() if column not in known]
    if missing or (text not in known and sum(map(bool, known)) < 2):
        lacking = ", ".join(map(repr, dict.fromkeys(missing or [text])))
        raise UnreadableError(
            f"it has no column {lacking}; it has {', '.join(map(repr, known))}: name the right one with "
            "--column FIELD=COLUMN"
        )
    twice = next((column for column in (text, *options.columns.values()) if known.count(column) > 1), None)
    if twice is not None:
        raise UnreadableError(f"it has the column {twice!r} twice: give one of them another name")
    return Layout(known, text in known)


def head_of(rows: Sequence[Sequence[str]], options: ReadOptions) -> tuple[int, Layout]:
    """(rows before the one that names the columns, layout of the rows behind it); raises UnreadableError.

    Lines of one cell may stand before it. Names hold letters, or are years, and are no values of the same column; the
    layout has no names where no row has them.
    """
    text = options.columns.get("text", "text").lower()
    first = next((n for n, row in enumerate(rows) if any(row)), 0)
    has_texts = bool(rows) and text in (name.strip().lower() for name in rows[first])
    before = first if has_texts else next((n for n, row in enumerate(rows) if sum(map(bool, row)) > 1), first)
    names, below = list(rows[before]), rows[before + 1 : before + 1 + _SAMPLE]
    layout = layout_of(names, options)
    if layout.has_texts or options.columns or _are_names(names, [row for row in below if row != names]):
        return before, layout
    return before, Layout((), has_texts=False)


def row_document(
    layout: Layout,
    row: Sequence[Any],
    number: int | str,
    block: Block,
    options: ReadOptions,
    url: str = "",
    title: str = "",
) -> Document | Problem | None:
    """The document of one row, a problem with it, or None if it is empty.

    Where no column holds texts, all cells are text, and fields those only that the options name; title: the file's
    name unless given.
    """
    if layout.names and len(row) != len(layout.names):
        problem = f"the row has {len(row)} fields, the header {len(layout.names)}"
        return Problem(f"{block.file.label}:{number}", problem)
    values = dict(zip(layout.names, row, strict=False))
    if layout.has_texts:
        return document(values, number, block, options)
    cells = [cell_text(value) for value in row]
    own: Mapping[str, Any] = {field: values.get(column) for field, column in options.columns.items()}
    fields = {"title": title or block.file.path.stem, "url": url, **own}
    text = row_text(layout.names or [""] * len(row), cells)
    read = document({**fields, "text": text}, number, block, ReadOptions(source=options.source))
    if not isinstance(read, Document):
        return read
    try:
        return replace(read, metadata=further_fields(values, {"", *options.columns.values()}))
    except ValueError as error:
        return Problem(f"{block.file.label}:{number}", str(error))


def headings_of(rows: Sequence[Sequence[str]], is_marked: bool = False) -> Sequence[str]:
    """The first row where it names the columns, else none; is_marked: whether it looks different from the others.

    Without such a mark it may begin a list of names with their values, where it has two cells and no numbers under
    the first.
    """
    if not rows or len({len(row) for row in rows}) > 1 or sum(map(bool, rows[0])) < 2:
        return ()
    names, below = rows[0], rows[1:]
    has_numbers = bool(below) and all(_DIGITS.search(row[0]) for row in below)
    if not (is_marked or len(names) > 2 or (has_numbers and not _DIGITS.search(names[0]))):
        return ()
    return names if _are_names(names, below[:_SAMPLE]) else ()


def cell_text(value: Any) -> str:
    """A value as a reader writes it: a day without a time of day, a number without the digits that no one typed."""
    if value is None or isinstance(value, bytes) or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, datetime) and value.time() == datetime.min.time():
        value = value.date()
    if isinstance(value, datetime | date):
        return value.isoformat(*([" "] if isinstance(value, datetime) else []))
    return " ".join(str(value).split())


def _are_names(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    columns = ([row[place] for row in rows if place < len(row) and row[place]] for place in range(len(names)))
    return all(_is_name(name.strip(), cells) for name, cells in zip(names, columns, strict=True) if name.strip())


def _is_name(name: str, cells: Sequence[str]) -> bool:
    """Whether a text heads its column: a value of it would look like the others."""
    if _YEAR.fullmatch(name):
        return not cells or not all(map(_YEAR.fullmatch, cells))
    has_digits = _DIGITS.search(name) is not None
    alike = {_shape(cell) if has_digits else cell.strip() for cell in cells}
    return _LETTER.search(name) is not None and (_shape(name) if has_digits else name) not in alike


def _shape(text: str) -> str:
    return _DIGITS.sub("0", text.strip())
