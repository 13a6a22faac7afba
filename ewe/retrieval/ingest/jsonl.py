"""Reading JSONL: one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from ewe.retrieval.ingest.documents import LONGEST_ROW, Block, Document, Problem, ReadOptions, SourceFile
from ewe.retrieval.ingest.rows import document

_BLOCK = 256 << 10
_TOO_LONG = None


def blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """Lines in groups of about 256 KiB; one that is too long to hold is left out of its group, as None."""
    with file.path.open("rb") as raw:
        lines: list[bytes | None] = []
        first, size = 1, 0
        for line, length in _lines(raw):
            lines.append(line)
            size += length
            if size >= _BLOCK:
                yield Block(file, lines, first, size)
                first, size, lines = first + len(lines), 0, []
        if lines:
            yield Block(file, lines, first, size)


def documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """One entry per line that is not blank: a document, a problem, or None for an empty text."""
    for number, line in enumerate(block.payload, block.first):
        where = f"{block.file.label}:{number}"
        if line is _TOO_LONG:
            yield Problem(where, f"the line is longer than {LONGEST_ROW >> 20} MiB")
            continue
        try:
            text = line.decode(options.encoding or "utf-8")
            if text.strip("\ufeff \t\r\n"):
                yield _parsed(json.loads(text.lstrip("\ufeff")), number, block, options)
        except UnicodeDecodeError as error:
            yield Problem(
                where, f"it is not {error.encoding.upper()} ({error.reason} at byte {error.start} of the line)"
            )
        except (ValueError, RecursionError) as error:
            yield Problem(where, f"it is not valid JSON ({error})")


def _parsed(values: Any, number: int, block: Block, options: ReadOptions) -> Document | Problem | None:
    if not isinstance(values, dict):
        return Problem(f"{block.file.label}:{number}", f"expected a JSON object, found {type(values).__name__}")
    return document(values, number, block, options)


def _lines(raw: BinaryIO) -> Iterator[tuple[bytes | None, int]]:
    """(line or None if it is too long, bytes read)."""
    while line := raw.readline(LONGEST_ROW):
        length = len(line)
        if length < LONGEST_ROW or line.endswith(b"\n"):
            yield line, length
            continue
        while rest := raw.readline(LONGEST_ROW):
            length += len(rest)
            if rest.endswith(b"\n"):
                break
        yield _TOO_LONG, length
