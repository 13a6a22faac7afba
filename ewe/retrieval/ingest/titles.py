"""Titles in the descriptions of files: many are of the program that made the file, not of the document."""

import re

_EMPTY = re.compile(
    r"""\(?(?:anonymous|untitled|unspecified|unknown|no\ title|none|null|title|document|new\ document|
    presentation|powerpoint[ -]pr[äe]sentation|pr[äe]sentation|slide\ 1|folie\ 1|pdf|scan|
    (?:document|presentation|book|workbook|dokument|mappe|untitled|unbenannt|scan)[ _-]?\d+|unbenannt|ohne\ titel|
    sans\ titre|sin\ t[íi]tulo)\)?""",
    re.IGNORECASE | re.VERBOSE,
)
_PROGRAM = re.compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")
_FILE_ENDING = re.compile(r"\.(?:docx?|pptx?|xlsx?|pdf|rtf|odt|tex|dvi|indd|qxd|txt)$", re.IGNORECASE)


def sound_title(title: str) -> str:
    """A title without what programs add to it; "" for one that says nothing of the document."""
    title = _FILE_ENDING.sub("", _PROGRAM.sub("", " ".join(title.split())))
    return "" if _EMPTY.fullmatch(title) or not re.search(r"\w", title) else title
