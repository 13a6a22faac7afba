"""Reading JSON: one object, or an array of them, each as a line of JSONL is read."""

import json
from collections.abc import Iterator

from ewe.retrieval.ingest.documents import (
    Block,
    Document,
    Problem,
    ReadOptions,
    SourceFile,
    UnreadableError,
    whole_file,
)
from ewe.retrieval.ingest.files import decode
from ewe.retrieval.ingest.row_files import groups, object_document

_ROW = 200  # bytes that an object stands for, about


def blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """The objects in groups. Raises UnreadableError for what is no JSON, or no object and no array."""
    list(whole_file(file, options))
    try:
        values = json.loads(decode(file.path.read_bytes(), options.encoding))
    except (ValueError, RecursionError) as error:
        hint = "; one object per line is .jsonl" if "Extra data" in str(error) else ""
        raise UnreadableError(f"it is not valid JSON ({error}){hint}") from error
    rows = values if isinstance(values, list) else [values]
    for group, first, size in groups((row, _ROW) for row in rows):
        yield Block(file, group, first, size)


def documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """One entry per object."""
    for number, row in enumerate(block.payload, block.first):
        yield object_document(row, number, block, options)
