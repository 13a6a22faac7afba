"""Reading HTML: what a reader of the page would read.

What a page says stays; menus, the site's header and footer, asides, controls, reference marks and what is hidden go.
trafilatura 2.3, tried here, loses more of what pages say, keeps some menus, and takes dates from running text.
"""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from ewe.retrieval.ingest.documents import Block, Document, Mark, Problem, ReadOptions, UnreadableError
from ewe.retrieval.ingest.fields import whole_document
from ewe.retrieval.ingest.files import decode
from ewe.retrieval.ingest.table_rows import Columns
from ewe.text.english import words_of

_LEFT_OUT = words_of("script style noscript template svg nav aside button select textarea iframe object")
_LEFT_OUT_ROLES = words_of("navigation banner contentinfo complementary search doc-noteref doc-backlink")
# Marks of references, links for editing and links past the menu, which HTML has no elements for.
_LEFT_OUT_CLASSES = words_of("noprint mw-editsection mw-cite-backlink mw-jump-link skip-link skip-nav")
_NEVER_HIDDEN = words_of("area base body br col embed hr html img input link meta source track wbr")
_HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_SECTIONS = words_of("article main section")
_BLOCKS = words_of(
    """address article aside blockquote body br caption center dd details div dl dt figcaption figure footer form h5 h6
    header hr legend li main ol p pre section summary table tbody tfoot thead tr ul"""
)
_CELLS = words_of("td th")
# Their end tags may be missing: one that is hidden ends with one of these, or with the end of what it stands in.
_ENDS = {
    **dict.fromkeys(("dd", "dt"), words_of("dd dt")),
    **dict.fromkeys(("td", "th"), words_of("td th tr tbody tfoot thead")),
    **dict.fromkeys(("tbody", "tfoot", "thead"), words_of("tbody tfoot thead")),
    "li": words_of("li"),
    "option": words_of("option"),
    "p": _BLOCKS | words_of("h1 h2 h3 h4"),
    "tr": words_of("tr tbody tfoot thead"),
}
_HEADINGS = words_of("h1 h2 h3 h4")
_DATES = words_of("article:published_time date dc.date dcterms.date datepublished")
_EXPONENT = re.compile(r"[-+−]?\d")
_SPACE = re.compile(r"[ \t\r\n\f]+")
_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]{0,100}encoding=["']([\w.:-]+)""", re.IGNORECASE
)


def documents(block: Block, options: ReadOptions) -> Iterator[Document | Problem | None]:
    """The document of the page, each section under its heading. Raises UnreadableError for what is no text."""
    data = block.file.path.read_bytes()
    stated = _CHARSET.search(data, 0, 2048)
    charset = (stated[1] or stated[2]).decode("ascii") if stated else None
    try:
        text = decode(data, options.encoding or charset)
    except LookupError as error:
        raise UnreadableError(
            f"it states an unknown encoding {charset!r}: name the right one with --encoding"
        ) from error
    page = _read(text)
    title = page.title or next((mark.title for mark in page.marks), "") or block.file.path.stem
    values = {"text": "".join(page.parts), "id": block.file.label, "title": title, "url": page.url, "date": page.date}
    sections = [Mark(mark.start, title if mark.title in title else f"{title} - {mark.title}") for mark in page.marks]
    yield whole_document(values, block, options, sections)


def text_of(html: str) -> str:
    """What a reader of HTML would read, each heading a paragraph of its own."""
    page = _read(html)
    text = "".join(page.parts)
    for mark in reversed(page.marks):
        text = f"{text[: mark.start]}{mark.title}\n\n{text[mark.start :]}"
    return text.strip()


def _read(text: str) -> "_Page":
    page = _Page()
    page.feed(text)
    if not page.rawdata.startswith("<"):  # else a tag or comment that never ends: browsers leave out the rest, too,
        page.close()  # and this would look for the end once more from each "<" in it, in quadratic time
    return page


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.marks: list[Mark] = []
        self.title = self.url = self.date = ""
        self._length = 0
        self._left_out = ""  # the outermost element that is left out, and how many of its name are open
        self._num_left_out = 0
        self._num_inside = 0  # blocks that are open in what is left out
        self._num_sections = 0
        self._tables: list[Columns] = []  # those that are open, the innermost last
        self._captured: list[str] | None = None  # the text of the title or heading that is open
        self._capturing = ""
        self._is_raised = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if self._left_out and not (self._num_inside == 0 and tag in _ENDS.get(self._left_out, ())):
            self._num_left_out += tag == self._left_out
            self._num_inside += tag in _BLOCKS and tag not in _ENDS and tag != "br"
            return
        self._left_out = ""
        if self._leaves_out(tag, attributes):
            self._left_out, self._num_left_out, self._num_inside = tag, 1, 0
            return
        self._num_sections += tag in _SECTIONS
        if tag == "meta":
            self._meta(attributes)
        elif tag == "link" and attributes.get("rel") == "canonical":
            self.url = attributes.get("href") or self.url
        elif tag == "title" or tag in _HEADINGS:
            self._end_captured()
            self._captured, self._capturing = [], tag
        elif tag == "sup":
            self._is_raised = True
        elif tag in _CELLS:
            self._cell(tag == "th", all(attributes.get(name, "1") == "1" for name in ("colspan", "rowspan")))
        elif tag in _BLOCKS:
            self._end_captured()  # a heading that was never closed must not swallow the page
            self._break()
            if tag == "table":
                self._tables.append(Columns())
            elif tag == "tr" and self._tables:
                self._tables[-1].end_row(self.parts)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _LEFT_OUT:  # "<script src=.../>" opens nothing in XHTML
            self.handle_starttag(tag, attrs)

    def _leaves_out(self, tag: str, attributes: dict[str, str]) -> bool:
        """Whether an element says nothing of its own; a header or footer does where it is a section's."""
        if tag in _LEFT_OUT or tag in _NEVER_HIDDEN:
            return tag in _LEFT_OUT
        classes = attributes.get("class", "").split()
        return (
            attributes.get("hidden", "until-found") != "until-found"
            or _HIDING.search(attributes.get("style", "")) is not None
            or attributes.get("role") in _LEFT_OUT_ROLES
            or not _LEFT_OUT_CLASSES.isdisjoint(classes)
            or (tag in ("header", "footer") and not self._num_sections)
            or (tag == "sup" and "reference" in classes)
            or (tag == "a" and self._is_raised and attributes.get("href", "").startswith("#"))
        )

    def handle_endtag(self, tag: str) -> None:
        if self._left_out:
            is_block = tag in _BLOCKS and tag not in _ENDS
            ends_parent = self._left_out in _ENDS and is_block and not self._num_inside
            self._num_left_out -= tag == self._left_out
            self._num_inside -= is_block and self._num_inside > 0
            if not self._num_left_out or ends_parent:
                self._left_out = ""
            if not ends_parent:
                return
        self._num_sections -= tag in _SECTIONS and self._num_sections > 0
        if tag == "title" or tag in _HEADINGS:
            self._end_captured()
        elif tag == "sup":
            self._is_raised = False
        elif tag in _BLOCKS:
            self._break()
            if tag == "table" and self._tables:
                self._tables.pop()
            elif tag == "tr" and self._tables:
                self._tables[-1].end_row(self.parts)

    def handle_data(self, data: str) -> None:
        if self._left_out:
            return
        text = _SPACE.sub(" ", data)
        if self._is_raised and _EXPONENT.match(text):
            text = f"^{text}"  # "10" and a raised "6" are not 106
        self._is_raised = False
        if self._captured is not None:
            self._captured.append(text)
        else:
            self._add(text)

    def _end_captured(self) -> None:
        text = "".join(self._captured or ()).strip()
        self._captured = None
        if text and self._capturing == "title":
            self.title = self.title or text
        elif text:
            self._break()
            self.marks.append(Mark(self._length, text))

    def _meta(self, attributes: dict[str, str]) -> None:
        name = (attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or "").lower()
        if name in _DATES:
            self.date = self.date or attributes.get("content", "")
        elif name == "og:url":
            self.url = self.url or attributes.get("content", "")

    def _cell(self, is_heading: bool, is_plain: bool) -> None:
        """Begins a cell; is_plain: whether it spans one column and row."""
        before = self._tables[-1].cell(is_heading, is_plain, len(self.parts)) if self._tables else " "
        self._add(before.removeprefix("; ") if self._ends_paragraph() else before)

    def _break(self) -> None:
        names_cell = self._tables and self.parts and self.parts[-1].endswith(": ")
        if self.parts and not self._ends_paragraph() and not names_cell:
            self._add("\n\n")

    def _ends_paragraph(self) -> bool:
        return self.parts[-1:] == ["\n\n"]

    def _add(self, text: str) -> None:
        if text and not (text.startswith(" ") and self.parts and self.parts[-1][-1].isspace()):
            self.parts.append(text)
            self._length += len(text)
        elif text.strip():
            self._add(text.lstrip())
