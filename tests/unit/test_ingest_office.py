"""Word, PowerPoint and Excel files: what they say, and what must not be opened."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ewe.retrieval.ingest import office_package, xlsx_files
from ewe.retrieval.ingest.documents import Document, Problem, ReadOptions, SourceFile
from ewe.retrieval.ingest.files import KINDS
from ewe.retrieval.ingest.readers import read_blocks, read_documents


def read(path: Path, options: ReadOptions | None = None) -> list[Document | Problem | None]:
    options = options or ReadOptions()
    found: list[Document | Problem | None] = []
    for block in read_blocks(SourceFile(path, path.name, KINDS[path.suffix]), options):
        found += [block] if isinstance(block, Problem) else read_documents(block, options)
    return found


def paragraphs(document: Document) -> list[str]:
    return [part for part in document.text.split("\n\n") if part]


class TestDOCX:
    @pytest.fixture
    def docx(self) -> Any:
        return pytest.importorskip("docx")

    def test_headings_become_titles_and_rows_keep_their_columns(self, tmp_path: Path, docx: Any) -> None:
        made = docx.Document()
        made.core_properties.title = "Word Document"
        made.add_heading("Safety manual", 0)
        made.add_paragraph("The station is on deck 3.")
        made.add_heading("Boats", 1)
        made.add_paragraph("One for each side.", style="List Bullet")
        table = made.add_table(0, 3)
        for row in (("Deck", "Boats", "Rafts"), ("3", "4", ""), ("5", "6", "7")):
            for cell, text in zip(table.add_row().cells, row, strict=True):
                cell.text = text
        made.sections[0].header.paragraphs[0].text = "CONFIDENTIAL"
        made.save(tmp_path / "a.docx")
        [document] = read(tmp_path / "a.docx")
        assert (document.id, document.title, document.date) == ("a.docx", "Safety manual", "2013-12-23")
        assert paragraphs(document) == [
            "The station is on deck 3.",
            "One for each side.",
            "Deck: 3; Boats: 4",
            "Deck: 5; Boats: 6; Rafts: 7",
        ]
        assert [mark.title for mark in document.marks] == ["Safety manual", "Safety manual - Boats"]
        assert document.text[document.marks[1].start :].startswith("One for")

    @pytest.mark.parametrize(
        ("rows", "texts"),
        [
            (["Author|Lars Berg", "Owner|Per Dahl"], ["Author Lars Berg", "Owner Per Dahl"]),
            (["Rev|3.2", "Year|2019"], ["Rev 3.2", "Year 2019"]),
            (["Deck|Boats", "3|4"], ["Deck: 3; Boats: 4"]),
            (["*Item|*Price", "Rope|4"], ["Item: Rope; Price: 4"]),
            (["Item|Size|Price", "Rope|<|4"], ["Item Size Price", "Rope 4"]),
        ],
    )
    def test_a_first_row_heads_columns_only_where_that_is_sure(
        self, tmp_path: Path, docx: Any, rows: list[str], texts: list[str]
    ) -> None:
        """An asterisk is bold, "<" a cell that is one with that before it."""
        made = docx.Document()
        table = made.add_table(0, rows[0].count("|") + 1)
        for row in rows:
            cells = table.add_row().cells
            for place, text in enumerate(row.split("|")):
                if text == "<":
                    cells[place - 1].merge(cells[place])
                else:
                    cells[place].paragraphs[0].add_run(text.strip("*")).bold = text.startswith("*")
        made.save(tmp_path / "a.docx")
        [document] = read(tmp_path / "a.docx")
        assert [" ".join(text.split()) for text in paragraphs(document)] == texts

    def test_the_text_is_that_which_is_shown(self, tmp_path: Path, docx: Any) -> None:
        made = docx.Document()
        paragraph = made.add_paragraph("The price is ")
        body = (
            "<w:del w:id='1'><w:r><w:delText>five</w:delText></w:r></w:del><w:ins w:id='2'><w:r><w:t>six</w:t></w:r>"
            "</w:ins><w:r><w:rPr><w:vanish/></w:rPr><w:t>SECRET</w:t></w:r><w:r><w:t xml:space='preserve"
            "'> times 10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>3</w:t></w:r>"
            "<w:r><w:t>.</w:t></w:r>"
        )
        form = "<w:sdt><w:sdtContent><w:p><w:r><w:t>Filled in.</w:t></w:r></w:p></w:sdtContent></w:sdt>"
        space = docx.oxml.ns.nsdecls("w")
        paragraph._p.extend(list(docx.oxml.parse_xml(f"<w:p {space}>{body}</w:p>")))
        paragraph._p.addnext(docx.oxml.parse_xml(form.replace("<w:sdt>", f"<w:sdt {space}>", 1)))
        made.save(tmp_path / "a.docx")
        [document] = read(tmp_path / "a.docx")
        assert paragraphs(document) == ["The price is six times 10^3.", "Filled in."]

    def test_a_heading_of_the_company_is_one(self, tmp_path: Path, docx: Any) -> None:
        made = docx.Document()
        style = made.styles.add_style("House", docx.enum.style.WD_STYLE_TYPE.PARAGRAPH)
        style.base_style = made.styles["Heading 2"]
        made.add_paragraph("Text.")
        made.add_paragraph("Rules", style="House")
        made.add_paragraph("Stop at red.")
        made.save(tmp_path / "a.docx")
        [document] = read(tmp_path / "a.docx")
        assert (document.title, [mark.title for mark in document.marks]) == ("a", ["a - Rules"])


class TestPPTX:
    @pytest.fixture
    def pptx(self) -> Any:
        return pytest.importorskip("pptx")

    def test_slides_stand_under_their_titles(self, tmp_path: Path, pptx: Any) -> None:
        made = pptx.Presentation()
        made.core_properties.title = "PowerPoint Presentation"
        for title, text in (("Results", "Revenue rose to EUR 48 million.\vProfit fell."), ("Draft", "Not shown.")):
            slide = made.slides.add_slide(made.slide_layouts[1])
            slide.shapes.title.text, slide.placeholders[1].text = title, text
        slide.element.set("show", "0")
        slide = made.slides.add_slide(made.slide_layouts[6])
        slide.notes_slide.notes_text_frame.text = "A note."
        table = slide.shapes.add_table(2, 2, 0, 0, 9, 9).table
        for place, text in enumerate(("Item", "Price", "Rope", "4")):
            table.cell(place // 2, place % 2).text = text
        made.save(tmp_path / "a.pptx")
        [document] = read(tmp_path / "a.pptx")
        assert document.title == "a"
        assert paragraphs(document) == ["Revenue rose to EUR 48 million.\nProfit fell.", "Item: Rope; Price: 4"]
        assert [(mark.title, mark.url) for mark in document.marks] == [
            ("a - Results", "a.pptx#slide=1"),
            ("a", "a.pptx#slide=3"),
        ]


class TestXLSX:
    @pytest.fixture
    def book(self) -> Any:
        return pytest.importorskip("openpyxl").Workbook()

    def test_each_row_of_a_sheet_that_is_shown_is_a_passage(self, tmp_path: Path, book: Any) -> None:
        sheet = book.active
        sheet.title = "Prices"
        rows = [["Price list 2025"], [], ["Item", "Price", "Since", "Share"], ["Rope", 4.5, date(2024, 5, 1), 0.07]]
        for row in [*rows, ["Cable", 6, None, None, "new"]]:
            sheet.append(row)
        sheet["D4"].number_format = "0%"
        book.create_sheet("Lists").append(["x", "y", "z"])
        book["Lists"].sheet_state = "hidden"
        book.save(tmp_path / "a.xlsx")
        title, rope, cable = read(tmp_path / "a.xlsx")
        assert (title.text, title.title) == ("Price list 2025", "a")
        assert (rope.id, rope.url) == ("a.xlsx:Prices!4", "a.xlsx#Prices!A4")
        assert rope.text == "Item: Rope; Price: 4.5; Since: 2024-05-01; Share: 7%"
        assert rope.metadata["Price"] == "4.5"
        assert cable.text == "Cable; 6; new"

    def test_several_sheets_name_themselves(self, tmp_path: Path, book: Any) -> None:
        book.active.append(["Author", "Lars Berg"])
        book.active.append(["Owner", "Per Dahl"])
        book.create_sheet("Texts").append(["Text", "Title"])
        book["Texts"].append(["The anchor is old.", "Anchor"])
        book.save(tmp_path / "a.xlsx")
        author, owner, anchor = read(tmp_path / "a.xlsx")
        assert [(row.title, row.text) for row in (author, owner, anchor)] == [
            ("a - Sheet", "Author; Lars Berg"),
            ("a - Sheet", "Owner; Per Dahl"),
            ("Anchor", "The anchor is old."),
        ]

    def test_there_is_an_end_to_its_cells(self, tmp_path: Path, book: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(xlsx_files, "_MOST_CELLS", 1000)
        book.active.append(["Item", "Size", "Price"])
        book.active["C100000"] = 7
        book.save(tmp_path / "a.xlsx")
        assert [str(entry) for entry in read(tmp_path / "a.xlsx")] == [
            "a.xlsx: it has more than 1,000 cells: the rest is left out"
        ]


SAVERS: dict[str, Callable[[Path], None]] = {
    "a.docx": lambda path: pytest.importorskip("docx").Document().save(path),
    "a.pptx": lambda path: pytest.importorskip("pptx").Presentation().save(path),
    "a.xlsx": lambda path: pytest.importorskip("openpyxl").Workbook().save(path),
}
MAIN = {"a.docx": "word/document.xml", "a.pptx": "ppt/presentation.xml", "a.xlsx": "xl/workbook.xml"}
SHARED = {"a.docx": "word/styles.xml", "a.pptx": "ppt/theme/theme1.xml", "a.xlsx": "xl/styles.xml"}


def rewritten(path: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """Changes one part of an archive."""
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    parts[name] = change(parts[name])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            archive.writestr(part, content)


@pytest.mark.parametrize("name", SAVERS)
class TestWhatMustNotBeOpened:
    def told(self, path: Path) -> str:
        [found] = read(path)
        assert isinstance(found, Problem), found
        return str(found)

    def test_an_archive_that_unpacks_to_too_much(self, tmp_path: Path, name: str, monkeypatch) -> None:
        path = tmp_path / name
        SAVERS[name](path)
        rewritten(path, SHARED[name], lambda part: part + b" " * (49 << 20))
        assert "its text unpacks to 49 MiB; at most 48 MiB can be read" in self.told(path)
        monkeypatch.setattr(office_package, "LARGEST_WHOLE", 1 << 20)
        assert "it unpacks to 49 MiB in" in self.told(path)

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_a_declaration_that_may_name_other_files(self, tmp_path: Path, name: str, encoding: str) -> None:
        path, secret = tmp_path / name, tmp_path / "secret.txt"
        secret.write_text("SECRET")
        SAVERS[name](path)
        declared = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
        start = f'<?xml version="1.0" encoding="{encoding.upper()}"?>{declared}'
        body = lambda part: part.decode().partition("?>")[2] if part.startswith(b"<?xml") else part.decode()  # noqa: E731
        rewritten(path, MAIN[name], lambda part: (start + body(part)).encode(encoding))
        assert "document type declaration" in self.told(path)

    def test_what_is_locked_damaged_or_something_else(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        SAVERS[name](path)
        content, kind = path.read_bytes(), path.suffix[1:].upper()
        for wrong in (b"nothing of the kind", content[: len(content) // 2], content.replace(b"Types", b"Tipes")):
            path.write_bytes(wrong)
            assert f"is damaged or no {kind}" in self.told(path)
        path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512))
        assert f"locked or of an older kind: save it as {kind}" in self.told(path)


@pytest.mark.parametrize(
    ("name", "package", "installed"),
    [("a.docx", "docx", "python-docx"), ("a.pptx", "pptx", "python-pptx"), ("a.xlsx", "openpyxl", "openpyxl")],
)
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str, installed: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"PK")
    assert f"needs {installed}: pip install 'ewe-engine[office]'" in str(read(tmp_path / name)[0])
