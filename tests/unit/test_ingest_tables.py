"""Tables without a column of texts, and what parts the cells of a CSV file."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from ewe.retrieval.ingest.documents import Document, Problem, ReadOptions, SourceFile
from ewe.retrieval.ingest.files import KINDS
from ewe.retrieval.ingest.readers import read_blocks, read_documents


def read(path: Path, options: ReadOptions | None = None) -> list[Document | Problem | None]:
    options = options or ReadOptions()
    found: list[Document | Problem | None] = []
    for block in read_blocks(SourceFile(path, path.name, KINDS[path.suffix]), options):
        found += [block] if isinstance(block, Problem) else read_documents(block, options)
    return found


def told(path: Path, content: str, options: ReadOptions | None = None) -> list[str]:
    """The texts of what is read, and the problems."""
    path.write_text(content, newline="")
    return [entry.text if isinstance(entry, Document) else str(entry) for entry in read(path, options)]


def test_a_row_without_a_text_is_its_cells_behind_their_names(tmp_path: Path) -> None:
    path = tmp_path / "staff.csv"
    path.write_text("id,Name,title,Office,date\n7,Anna Lind,Engineer,,2018-05-01\n,,,,\n8,Per Dahl,Clerk,Oslo,\n")
    first, empty, second = read(path)
    assert first == Document(
        "staff.csv:1",
        "id: 7; Name: Anna Lind; title: Engineer; date: 2018-05-01",
        "staff",
        "staff.csv",
        metadata={"id": "7", "Name": "Anna Lind", "title": "Engineer", "date": "2018-05-01"},
    )
    assert empty is None
    assert (second.id, second.text) == ("staff.csv:3", "id: 8; Name: Per Dahl; title: Clerk; Office: Oslo")


def test_fields_of_such_a_row_are_those_that_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("item,price,since\nRope,4,2020\n")
    [row] = read(path, ReadOptions({"title": "item", "date": "since"}, source="shop"))
    assert (row.title, row.date, row.source, row.metadata) == ("Rope", "2020", "shop", {"price": "4"})
    assert row.text == "item: Rope; price: 4; since: 2020"
    assert "no column 'date'" in str(read(path, ReadOptions({"date": "date"}))[0])


def test_fields_may_be_written_in_capitals(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Text,TITLE,Size\nThe anchor is old.,Anchor,3\n")
    [row] = read(path)
    assert (row.text, row.title, row.metadata) == ("The anchor is old.", "Anchor", {"Size": "3"})
    assert read(path, ReadOptions({"text": "Text"}))[0].text == "The anchor is old."


@pytest.mark.parametrize("mark", [",", ";", "|", "\t"])
def test_cells_may_be_parted_by_any_usual_sign(tmp_path: Path, mark: str) -> None:
    rows = [["Item", "Price, net"], ["Rope; thin", "4,50"], ["Cable", "13,50"]]
    content = "\n".join(mark.join(f'"{cell}"' if mark in cell else cell for cell in row) for row in rows)
    assert told(tmp_path / "a.csv", content) == ["Item: Rope; thin; Price, net: 4,50", "Item: Cable; Price, net: 13,50"]


def test_a_line_may_state_what_parts_the_cells(tmp_path: Path) -> None:
    assert told(tmp_path / "a.csv", "\ufeffsep=;\r\nItem;Price\r\nRope;4,50\r\n") == ["Item: Rope; Price: 4,50"]
    [problem] = told(tmp_path / "b.csv", "Item,blue;Price\nRope;4,50\n")
    assert "its cells may be parted by ',' or ';': begin it with a line 'sep=;'" in problem


def test_lines_above_the_names_stand_for_themselves(tmp_path: Path) -> None:
    content = "Price list 2025;\n\nItem;Price\nRope;4\nCable;5\n"
    assert told(tmp_path / "a.csv", content) == ["Price list 2025", "Item: Rope; Price: 4", "Item: Cable; Price: 5"]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("2024-01-01,4500,EUR\n2024-02-01,4700,EUR", ["2024-01-01; 4500; EUR", "2024-02-01; 4700; EUR"]),
        ("Anna,Clerk\nPer,Clerk", ["Anna; Clerk", "Per; Clerk"]),
        ("Rope,EUR 4.50\nCable,EUR 13.50", ["Rope; EUR 4.50", "Cable; EUR 13.50"]),
        ("Anna,2019\nPer,2020", ["Anna; 2019", "Per; 2020"]),
        ("Item,2023,2024\nRope,410,3995", ["Item: Rope; 2023: 410; 2024: 3995"]),
        (",Item,Phone,Phone\n0,Rope,1,2", ["0; Item: Rope; Phone: 1; Phone: 2"]),
    ],
)
def test_a_first_line_of_values_names_no_columns(tmp_path: Path, content: str, texts: list[str]) -> None:
    assert told(tmp_path / "a.csv", content) == texts


def test_what_cannot_be_read_soundly_is_a_problem(tmp_path: Path) -> None:
    assert "column 'text' twice" in told(tmp_path / "a.csv", "text,text\nOne.,Two.\n")[0]
    assert told(tmp_path / "b.csv", "a,b\n1,2\n3\n")[1:] == ["b.csv:2: the row has 1 fields, the header 2"]


def test_typed_values_are_written_as_people_write_them(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        "Item": ["Rope"],
        "Price": pyarrow.array([6.9], pyarrow.float32()),
        "Sum": [0.1 + 0.2],
        "Net": [Decimal("4.50")],
        "Sold": [True],
        "On": [date(2024, 5, 1)],
        "At": [datetime(2024, 5, 1, 8, 30)],
        "None": pyarrow.array([None], pyarrow.string()),
        "Vector": [[1, 2]],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    [row] = read(tmp_path / "a.parquet")
    assert row.text == (
        "Item: Rope; Price: 6.9; Sum: 0.3; Net: 4.50; Sold: yes; On: 2024-05-01; At: 2024-05-01 08:30:00"
    )
    assert row.metadata["Price"] == 6.9
