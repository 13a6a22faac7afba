"""Reading CSV: rows of texts that commas, semicolons, tabs or bars part."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import StringIO
from itertools import islice

from ewe.retrieval.ingest.documents import (
    LONGEST_ROW,
    Block,
    Document,
    Problem,
    ReadOptions,
    SourceFile,
    UnreadableError,
)
from ewe.retrieval.ingest.files import check_text, open_text
from ewe.retrieval.ingest.row_files import groups
from ewe.retrieval.ingest.row_tables import Layout, head_of, row_document

_SAMPLE, _SAMPLE_ROWS = 1 << 16, 100  # characters and rows that tell what parts the cells, and which row names them
_MARKS = ",;\t|"
_TEXT_COMMA = re.compile(r",(?= )|(?<=\d),(?=\d)")
_STATED = re.compile(r'"?sep=(.)"?\r?\n')  # the first line that Excel writes and reads


def csv_blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """Rows with their layout in groups of about 256 KiB.

    Raises UnreadableError for bad quotes, rows that are too long, missing columns, and cells parted in several ways.
    """
    csv.field_size_limit(LONGEST_ROW)
    with open_text(file.path, options.encoding) as text:
        sample = text.read(_SAMPLE)
        text.seek(0)
        check_text(sample)
        stated = _STATED.match(sample)
        if stated:
            text.readline()
        mark = stated[1] if stated else "\t" if file.path.suffix.lower() == ".tsv" else _mark(sample, options)
        rows = csv.reader(text, delimiter=mark, strict=True)
        try:
            yield from _blocks(file, rows, *head_of(_sampled(sample[stated.end() if stated else 0 :], mark), options))
        except csv.Error as error:
            raise UnreadableError(f"line {rows.line_num} is no CSV ({error})") from error


def csv_documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """One entry per row that is not blank."""
    layout, rows = block.payload
    for number, row in enumerate(rows, block.first):
        if row:
            yield row_document(layout, row, number, block, options)


def _blocks(file: SourceFile, rows: Iterator[list[str]], before: int, layout: Layout) -> Iterator[Block]:
    """The rows before the one that names the columns, and those behind it; it has no number itself."""
    above = list(islice(rows, before))
    if above:
        yield Block(file, (Layout((), has_texts=False), above), 1, sum(map(_length, above)))
    if layout.names:
        next(rows, None)
    for group, first, size in groups((row, _length(row)) for row in rows):
        yield Block(file, (layout, group), before + first, size)


def _length(row: Sequence[str]) -> int:
    return sum(map(len, row)) + len(row)


def _mark(sample: str, options: ReadOptions) -> str:
    """What parts the cells: it makes a column of texts, or else the most rows of equally many cells.

    Raises UnreadableError where two signs do so equally well.
    """
    text = options.columns.get("text", "text").lower()
    equal = {}
    for mark in _MARKS:
        rows = [row for row in _sampled(sample, mark) if row]
        if rows and len(rows[0]) > 1 and text in (name.strip().lower() for name in rows[0]):
            return mark
        counts = Counter(len(row) for row in rows if len(row) > 1)
        equal[mark] = max(counts.values(), default=0)
    best = [mark for mark in _MARKS if equal[mark] == max(equal.values())]
    if len(best) == 2 and best[0] == "," not in _TEXT_COMMA.sub("", sample):
        return best[1]
    if len(best) > 1 and equal[best[0]]:
        raise UnreadableError(
            f"its cells may be parted by {' or '.join(map(repr, best))}: begin it with a line 'sep=;'"
        )
    return best[0]


def _sampled(sample: str, mark: str) -> list[list[str]]:
    """The first rows, without one that the sample may have cut off."""
    rows: list[list[str]] = []
    with suppress(csv.Error):  # it is told when the file is read
        rows += islice(csv.reader(StringIO(sample, newline=""), delimiter=mark), _SAMPLE_ROWS)
    return rows[:-1] if len(rows) > 1 and len(sample) >= _SAMPLE // 2 else rows
