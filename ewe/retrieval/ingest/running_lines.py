"""Lines that a document repeats at the top or bottom of its pages: titles, page numbers, notices. They are no text."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_EDGE = 3  # lines that are looked at from either end of a page
_LEAST_PAGES = 3
_NUMBER = re.compile(r"\d{1,6}")


def without_running_lines(pages: Sequence[str]) -> list[str]:
    """The pages without the lines that stand near an edge of at least three of them.

    Lines are the same up to blanks, or up to one number that rises with the pages: numbers that do not are a table's.
    """
    lines = [page.split("\n") for page in pages]
    counts = Counter(key for number, page in enumerate(lines) for key in _edge_keys(page, number))
    running = {key for key, count in counts.items() if count >= _LEAST_PAGES}
    return ["\n".join(_kept(page, number, running)) for number, page in enumerate(lines)]


def _kept(page: Sequence[str], number: int, running: set[str]) -> Iterator[str]:
    at_the_edge = _edges(page)
    for place, line in enumerate(page):
        if place not in at_the_edge or running.isdisjoint(_keys(line, number)):
            yield line


def _edge_keys(page: Sequence[str], number: int) -> set[str]:
    """The keys of a page's edges, each once however often the page repeats it."""
    return {key for place in _edges(page) for key in _keys(page[place], number)}


def _edges(page: Sequence[str]) -> set[int]:
    written = [place for place, line in enumerate(page) if line.strip()]
    return {*written[:_EDGE], *written[-_EDGE:]}


def _keys(line: str, number: int) -> Iterator[str]:
    """What a line is counted by: itself, and itself with one of its numbers told from the page's."""
    text = " ".join(line.split())
    yield text
    for match in _NUMBER.finditer(text):
        yield f"{text[: match.start()]}\0{int(match[0]) - number}\0{text[match.end() :]}"
