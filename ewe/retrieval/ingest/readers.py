"""Which reader reads which kind of file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ewe.retrieval.ingest import (
    csv_files,
    docx_files,
    eml_files,
    html,
    parquet_files,
    pdf,
    pptx_files,
    row_files,
    texts,
    xlsx_files,
)
from ewe.retrieval.ingest.documents import (
    Block,
    Document,
    Problem,
    ReadOptions,
    SourceFile,
    UnreadableError,
    whole_file,
)

Found = Document | Problem | None


@dataclass(frozen=True, slots=True)
class Reader:
    """blocks: cuts a file, always in the same way. documents: reads a block; None stands for an empty text."""

    blocks: Callable[[SourceFile, ReadOptions], Iterator[Block]]
    documents: Callable[[Block, ReadOptions], Iterator[Found]]


READERS = {
    "text": Reader(texts.blocks, texts.text_documents),
    "markdown": Reader(texts.blocks, texts.markdown_documents),
    "html": Reader(whole_file, html.documents),
    "pdf": Reader(whole_file, pdf.documents),
    "eml": Reader(whole_file, eml_files.documents),
    "docx": Reader(whole_file, docx_files.documents),
    "pptx": Reader(whole_file, pptx_files.documents),
    "xlsx": Reader(xlsx_files.blocks, xlsx_files.documents),
    "json": Reader(row_files.json_blocks, row_files.json_documents),
    "jsonl": Reader(row_files.jsonl_blocks, row_files.jsonl_documents),
    "csv": Reader(csv_files.csv_blocks, csv_files.csv_documents),
    "parquet": Reader(parquet_files.parquet_blocks, parquet_files.parquet_documents),
    "empty": Reader(lambda file, options: iter([Block(file, None, 1, 0)]), lambda block, options: iter([None])),
}


def read_blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block | Problem]:
    """The blocks of a file, always the same for the same file; a problem ends them if the rest cannot be read."""
    try:
        kind = file.kind if file.path.stat().st_size else "empty"
        yield from READERS[kind].blocks(replace(file, kind=kind), options)
    except UnreadableError as error:
        yield Problem(file.label, str(error))
    except OSError as error:
        yield Problem(file.label, f"it cannot be read ({error.strerror})")


def read_documents(block: Block, options: ReadOptions) -> Iterator[Found]:
    """What a block holds, in order."""
    try:
        yield from READERS[block.file.kind].documents(block, options)
    except UnreadableError as error:
        yield Problem(block.file.label, str(error))
    except OSError as error:
        yield Problem(block.file.label, f"it cannot be read ({error.strerror})")
