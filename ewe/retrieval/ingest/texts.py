"""Reading plain text and Markdown of any length."""

import re
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ewe.retrieval.ingest.documents import FIELDS, Block, Document, Mark, Problem, ReadOptions, SourceFile
from ewe.retrieval.ingest.fields import whole_document
from ewe.retrieval.ingest.files import check_text, open_text
from ewe.retrieval.ingest.table_rows import table_text

_MOST_FRONT_MATTER = 1 << 16  # characters: its reader takes a second for some hundred thousand
_PART = 1 << 20  # characters; longer texts are cut at the best place before
_CUTS = (re.compile(r"\n[ \t\r]*\n(?=\S)"), re.compile(r"\n"), re.compile(r"(?<=[.!?])\s"), re.compile(r"\s"))
_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_TAG = re.compile(r"<!--.*?(?:-->|\Z)|<[^<>]*>", re.DOTALL)
_RAISED = re.compile(r"<sup>(?=[-+−]?\d)", re.IGNORECASE)
_ENDS = {
    "paragraph_close": "\n\n",
    "fence": "\n",
    "code_block": "\n",
}
_MARKDOWN = MarkdownIt("commonmark").enable("table")


def blocks(file: SourceFile, options: ReadOptions) -> Iterator[Block]:
    """The text, in parts of at most 2^20 characters that end at a blank line, line end, sentence or word.

    The payload is (part, whether it is the whole text). Raises UnreadableError for what is no text.
    """
    with open_text(file.path, options.encoding) as stream:
        held, number = "", 1
        while piece := stream.read(_PART):
            check_text(piece)
            held += piece
            while len(held) > _PART:
                cut = _cut(held)
                yield Block(file, (held[:cut], False), number, cut)
                held, number = held[cut:], number + 1
        if held:
            yield Block(file, (held, number == 1), number, len(held))


def text_documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """The document of one part; its title is the file's name."""
    part, whole = block.payload
    yield whole_document(_values(part, {"title": block.file.path.stem}, block, whole), block, options)


def markdown_documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """The document of one part, each section under its heading; front matter gives the fields that it names."""
    part, whole = block.payload
    fields: dict[str, Any] = {}
    front = _FRONT_MATTER.match(part) if block.first == 1 else None
    if front is not None:
        fields, part = _front_matter(front.group(1)), part[front.end() :]
    text, marks = _plain(part)
    first = marks[0].title if marks and not marks[0].start else block.file.path.stem
    title = str(fields.setdefault("title", first))  # front matter may name a number
    sections = [Mark(mark.start, mark.title if mark.title == title else f"{title} - {mark.title}") for mark in marks]
    yield whole_document(_values(text, fields, block, whole), block, options, sections)


def _cut(text: str) -> int:
    """Where the first part ends: at the last good place in its second half."""
    for pattern in _CUTS:
        ends = [match.end() for match in pattern.finditer(text, _PART // 2, _PART)]
        if ends:
            return ends[-1]
    return _PART


def _values(text: str, fields: Mapping[str, Any], block: Block, whole: bool) -> dict[str, Any]:
    """The id is the file's, with the number of the part if there are several."""
    name = block.file.label if whole else f"{block.file.label}:{block.first}"
    return {**fields, "text": text, "id": fields.get("id") or name}


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases, by which a few lines can stand for more text than there is memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """As any loader's; raises YAMLError for an alias."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def _front_matter(text: str) -> dict[str, Any]:
    """The fields of a passage in YAML front matter; what is no mapping is no front matter of ours."""
    if len(text) > _MOST_FRONT_MATTER:
        return {}
    try:
        values = yaml.load(text, _PlainLoader)  # noqa: S506 - it makes plain values only
    except (yaml.YAMLError, ValueError, RecursionError):  # dates and numbers that are none, lists in lists in lists
        return {}
    fields = values if isinstance(values, dict) else {}
    return {key: fields[key] for key in FIELDS if key != "text" and fields.get(key) is not None}


def _plain(markdown: str) -> tuple[str, list[Mark]]:
    """The text without markup, headings taken out, and a mark where each heading's section begins.

    A row of a table has its columns' headings before its cells.
    """
    text, marks, is_heading = StringIO(), [], False
    rows: list[list[str]] = []
    for token in _MARKDOWN.parse(_RAISED.sub("^", markdown)):
        if token.type.startswith("heading_"):
            is_heading = token.type == "heading_open"
        elif token.type == "inline" and is_heading:
            marks.append(Mark(text.tell(), _inline(token)))
        elif token.type == "inline" and rows:
            rows[-1].append(_inline(token).strip())
        elif token.type == "inline":
            text.write(_inline(token))
        elif token.content:  # code or HTML
            text.write(_TAG.sub("", token.content) if token.type == "html_block" else token.content)
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "table_close":
            text.write(table_text(rows[0], rows[1:]))
            rows = []
        text.write(_ENDS.get(token.type, ""))
    return text.getvalue(), marks


def _inline(token: Token) -> str:
    ends = {"softbreak": "\n", "hardbreak": "\n", "html_inline": ""}
    return "".join(ends.get(child.type, child.content) for child in token.children or ())
