"""Rows of tables in PDFs: what stands in one line of the page, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewe.retrieval.ingest import pdf
from ewe.retrieval.ingest.documents import Document, ReadOptions, SourceFile
from ewe.retrieval.ingest.pdf_rows import ROW, with_rows
from ewe.retrieval.ingest.readers import read_blocks, read_documents

LAYOUT = "\n".join(
    [
        "Prices",
        "Item        Size     Price",
        "Rope        1 m        4.50",
        "Thin cable  10 m      13.50",
        "Hook        2 kg       7.00",
    ]
)


def table(page: str, layout: str) -> list[str]:
    return with_rows(page, layout).split("\n")


@pytest.mark.parametrize("mark", ["\n", " "])
def test_a_row_is_put_together_however_its_cells_come(mark: str) -> None:
    rows = [mark.join(row) for row in (("Item", "Size", "Price"), ("Rope", "1 m", "4.50"), ("Thin", "cable", "10 m"))]
    page = "\n".join(["Prices", *rows, "13.50", mark.join(("Hook", "2 kg", "7.00")), "All prices are net."])
    assert table(page, LAYOUT) == [
        "Prices",
        f"{ROW}Item: Rope; Size: 1 m; Price: 4.50",
        f"{ROW}Item: Thin cable; Size: 10 m; Price: 13.50",
        f"{ROW}Item: Hook; Size: 2 kg; Price: 7.00",
        "All prices are net.",
    ]


def test_rows_of_two_cells_and_rows_that_lack_one_have_no_headings() -> None:
    two = "Author    Lars Berg\nOwner     Per Dahl\nYear      2019"
    page = "Author\nLars Berg\nOwner\nPer Dahl\nYear\n2019"
    assert table(page, two) == [f"{ROW}Author Lars Berg", f"{ROW}Owner Per Dahl", f"{ROW}Year 2019"]
    page = "Item Size Price\nRope 1 m 4.50\nThin cable 10 m 13.50\nHook 7.00\nNail 1 g 0.10"
    layout = LAYOUT.replace("Hook        2 kg ", "Hook             ") + "\nNail        1 g        0.10"
    assert table(page, layout)[2:] == [f"{ROW}Hook 7.00", f"{ROW}Item: Nail; Size: 1 g; Price: 0.10"]


@pytest.mark.parametrize(
    ("page", "layout"),
    [
        # Two columns of prose: the text comes column by column.
        (
            "The yard is\nold and was\nmended.\nThe board is\nnew since\nMay.",
            "The yard is  The board is\nold and was  new since\nmended.      May.",
        ),
        # Wide gaps between the words of prose.
        (
            "The yard is old now\nIt was mended in May\nThe board is new too",
            "The  yard   is old now\nIt was   mended  in May\nThe board  is  new too",
        ),
        # Too few lines for a table.
        ("A 1\nB 2", "A    1\nB    2"),
        ("Item Size\nRope 1", ""),
    ],
)
def test_what_is_no_table_stays_as_it_is(page: str, layout: str) -> None:
    assert with_rows(page, layout) == page


def test_a_price_stands_beside_its_own_item(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "a.pdf").write_bytes(price_list(8))
    [block] = read_blocks(SourceFile(tmp_path / "a.pdf", "a.pdf", "pdf"), ReadOptions())
    [document] = read_documents(block, ReadOptions())
    assert isinstance(document, Document)
    assert document.text.split("\n\n") == [
        "Price list",
        *(f"Item: Cable type {n}; Size: {n} m; Price: EUR {n * 13}.50" for n in range(1, 9)),
    ]


def test_there_is_an_end_to_what_pages_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pypdf")
    monkeypatch.setattr(pdf, "_MOST_DRAWN", 100)
    (tmp_path / "a.pdf").write_bytes(price_list(20))
    [block] = read_blocks(SourceFile(tmp_path / "a.pdf", "a.pdf", "pdf"), ReadOptions())
    [problem] = read_documents(block, ReadOptions())
    assert str(problem) == "a.pdf: its pages draw more than 100 things: split it first"


def price_list(count: int) -> bytes:
    """A PDF with a table whose cells are placed one by one, as programs for reports do."""
    rows = [
        ("Item", "Size", "Price"),
        *((f"Cable type {n}", f"{n} m", f"EUR {n * 13}.50") for n in range(1, count + 1)),
    ]
    cells = [(72, 740, "Price list")]
    cells += [
        (left, 700 - 20 * line, cell)
        for line, row in enumerate(rows)
        for left, cell in zip((72, 200, 300), row, strict=True)
    ]
    stream = "\n".join(f"BT /F1 12 Tf 1 0 0 1 {left} {down} Tm ({cell}) Tj ET" for left, down, cell in cells)
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R"
        " /Resources << /Font << /F1 3 0 R >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
    ]
    content, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(content))
        content += f"{number} 0 obj\n{body}\nendobj\n"
    entries = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{entries}trailer << /Size {size} /Root 1 0 R >>\n"
    return f"{content}{end}startxref\n{len(content)}\n%%EOF\n".encode("ascii")
