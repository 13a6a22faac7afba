"""Lines such as "Meals: up to 53 euros", which state a value without a verb, and tables, which are not read."""

import re

from ewe.verification.extraction.relative_clauses import Clause

# A number is what tells them from headings ("Norway: a short history"); one before the colon is a heading's own
# ("Chapter 2: The war of 1931").
_LINE = re.compile(r"[*_]*[A-Z][^:.!?|\n]{1,60}(?<!\d):[*_]*[ \t]+(?=[^\n]*\d)\S[^\n]*")
_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*")


def is_value_line(text: str) -> bool:
    """Whether a text is one such line."""
    return _LINE.fullmatch(text.strip()) is not None


def value_lines(text: str) -> list[Clause]:
    """The lines of a text in order, each with its place in it, if there are several and all state values."""
    lines = [Clause(match[0], match.start(), match.end()) for match in re.finditer(r"[^\n]+", text)]
    return lines if len(lines) > 1 and all(is_value_line(line.text) for line in lines) else []


def is_table(text: str) -> bool:
    """Whether every line of a text is a row of a table in Markdown."""
    return all(_ROW.fullmatch(line) for line in text.strip().split("\n"))
