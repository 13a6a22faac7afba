"""Search results and documents of requests in Anthropic's form: what memory gets, and where citations point."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ewe.errors import InvalidRequestError
from ewe.server.answering.citer import Quote
from ewe.server.schemas import anthropic_answers as answers
from ewe.server.schemas import anthropic_blocks as blocks
from ewe.server.schemas.anthropic_schemas import InputMessage
from ewe.server.schemas.common import Document
from ewe.types import Passage

MOST_PARTS = 1000
"""Of one request that may be cited: every sentence of the answer is looked up in them."""

Point = Callable[[str], answers.Location]
"""Makes a citation of the words that support a sentence."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The smallest text that can be cited, and how that is done."""

    text: str
    point: Point


@dataclass(frozen=True, slots=True)
class _Source:
    """One block of a request; may_be_cited: whether its parts may be."""

    id: str
    title: str
    address: str
    parts: tuple[_Part, ...]
    may_be_cited: bool


class Sources:
    """All that a request brings along, in the order of its messages; each kind has its own count from 0.

    Raises InvalidRequestError for more parts to cite than MOST_PARTS.
    """

    def __init__(self, messages: Sequence[InputMessage]) -> None:
        brought = [block for message in messages for block in message.blocks]
        results = [block for block in brought if isinstance(block, blocks.SearchResultBlock)]
        documents = [block for block in brought if isinstance(block, blocks.DocumentBlock)]
        self._sources = [
            *(_search_result(index, block) for index, block in enumerate(results)),
            *(_document(index, block) for index, block in enumerate(documents)),
        ]
        self._points = {id_: part.point for id_, _, part in self._citable()}
        if len(self._points) > MOST_PARTS:
            raise InvalidRequestError(
                f"messages: {len(self._points)} blocks that may be cited; this server takes {MOST_PARTS}: join some of "
                "them, or leave citations out of some documents"
            )

    @property
    def documents(self) -> list[Document]:
        """What memory gets: one text of each."""
        return [
            Document(
                id=source.id,
                title=source.title,
                source=source.address,
                text="\n".join(part.text for part in source.parts),
            )
            for source in self._sources
        ]

    @property
    def passages(self) -> list[Passage]:
        """What an answer is checked against: every part that may be cited on its own."""
        return [Passage(id_, part.text, source.title) for id_, source, part in self._citable() if part.text.strip()]

    def locations(self, quotes: Sequence[Quote]) -> list[answers.Location]:
        """Where the quotes stand, each place once."""
        locations = [self._points[quote.id](quote.text) for quote in quotes]
        return list({location.model_dump_json(): location for location in locations}.values())

    def _citable(self) -> Iterator[tuple[str, _Source, _Part]]:
        for source in self._sources:
            for number, part in enumerate(source.parts if source.may_be_cited else ()):
                yield f"{source.id} {number}", source, part


def _search_result(index: int, block: blocks.SearchResultBlock) -> _Source:
    def point(number: int, quoted: str) -> answers.Location:
        return answers.SearchResultLocation(
            cited_text=block.content[number].text,
            search_result_index=index,
            source=block.source,
            title=block.title,
            start_block_index=number,
            end_block_index=number + 1,
        )

    parts = tuple(_Part(part.text, partial(point, number)) for number, part in enumerate(block.content))
    return _Source(f"search_result-{index}", block.title, block.source, parts, block.may_be_cited)


def _document(index: int, block: blocks.DocumentBlock) -> _Source:
    source = block.source
    if isinstance(source, blocks.PlainTextSource):
        parts: tuple[_Part, ...] = (_Part(source.data, partial(_in_text, index, block.title, source.data)),)
    else:
        texts = [source.content] if isinstance(source.content, str) else [part.text for part in source.content]
        parts = tuple(
            _Part(text, partial(_in_blocks, index, block.title, number, text)) for number, text in enumerate(texts)
        )
    return _Source(f"document-{index}", block.title or "", "", parts, block.may_be_cited)


def _in_text(index: int, title: str | None, text: str, quoted: str) -> answers.Location:
    """The quoted words, or the whole text where the verifier did not quote it word by word."""
    start = text.find(quoted)
    start, end = (start, start + len(quoted)) if start >= 0 else (0, len(text))
    return answers.CharLocation(
        cited_text=text[start:end],
        document_index=index,
        document_title=title,
        start_char_index=start,
        end_char_index=end,
    )


def _in_blocks(index: int, title: str | None, number: int, text: str, quoted: str) -> answers.Location:
    return answers.ContentBlockLocation(
        cited_text=text,
        document_index=index,
        document_title=title,
        start_block_index=number,
        end_block_index=number + 1,
    )
