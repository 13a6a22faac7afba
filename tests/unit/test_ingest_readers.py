"""Every format and every way in which a file can be wrong."""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ewe.errors import DatastoreError
from ewe.retrieval.ingest import parquet_files, row_files, texts
from ewe.retrieval.ingest.documents import Document, Problem, ReadOptions, SourceFile
from ewe.retrieval.ingest.fields import parse_columns, read_sources
from ewe.retrieval.ingest.files import KINDS, find_files
from ewe.retrieval.ingest.readers import read_blocks, read_documents


def read(path: Path, options: ReadOptions | None = None) -> list[Document | Problem | None]:
    options = options or ReadOptions()
    found: list[Document | Problem | None] = []
    for block in read_blocks(SourceFile(path, path.name, KINDS[path.suffix]), options):
        found += [block] if isinstance(block, Problem) else read_documents(block, options)
    return found


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def problem(path: Path, options: ReadOptions | None = None) -> str:
    [found] = read(path, options)
    assert isinstance(found, Problem), found
    return str(found)


class TestText:
    def test_a_text_is_one_document_under_its_name(self, tmp_path: Path) -> None:
        [document] = read(written(tmp_path / "rome.txt", "Rome is old.\r\n"))
        assert document == Document("rome.txt", "Rome is old.\r\n", title="rome", source="rome.txt")

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
    def test_marks_name_the_encoding(self, tmp_path: Path, encoding: str) -> None:
        [document] = read(written(tmp_path / "a.txt", "Čapek wrote.".encode(encoding)))
        assert document.text == "Čapek wrote."

    def test_another_encoding_has_to_be_named(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.txt", "Müller wrote.".encode("latin-1"))
        assert (
            problem(path) == "a.txt: it is not UTF-8 (invalid start byte at byte 1): name its encoding with --encoding"
        )
        assert read(path, ReadOptions(encoding="latin-1"))[0].text == "Müller wrote."
        path = written(tmp_path / "b.txt", "Müller wrote.".encode("utf-16-le"))
        assert read(path, ReadOptions(encoding="UTF-16-LE"))[0].text == "Müller wrote."

    def test_what_is_utf8_is_read_as_such_whatever_is_named(self, tmp_path: Path) -> None:
        """A folder may hold both."""
        named = ReadOptions(encoding="cp1252")
        for name, text in {
            "a.txt": "Zoë wrote “x”.",
            "a.md": "Zoë",
            "a.html": "<p>Zoë",
            "a.csv": "text,n\nZoë,1",
            "a.jsonl": '{"text": "Zoë"}\n{"text": "Zoë"}',
        }.items():
            for encoding in ("utf-8", "cp1252"):
                texts = [document.text for document in read(written(tmp_path / name, text.encode(encoding)), named)]
                assert all("Zoë" in text for text in texts), (name, encoding)
        mixed = b'{"text": "Zo\xc3\xab"}\n{"text": "Zo\xeb"}'
        assert [row.text for row in read(written(tmp_path / "b.jsonl", mixed), named)] == ["Zoë", "Zoë"]
        path = written(tmp_path / "c.txt", b"+ACE-")
        assert read(path, ReadOptions(encoding="utf-7"))[0].text == "!"
        path = written(tmp_path / "d.txt", b"word " * 3000 + b"\xeb")
        assert read(path, named)[0].text.endswith("ë")

    @pytest.mark.parametrize(
        "content", [b"\x7fELF\x00\x00\x01", b"abc\x00def" * 50, "text".encode("utf-16-le") * 9, bytes(range(1, 32)) * 9]
    )
    def test_binary_data_is_refused(self, tmp_path: Path, content: bytes) -> None:
        assert "no text (binary data)" in problem(written(tmp_path / "a.txt", content))

    @pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.pdf", "a.jsonl", "a.csv", "a.parquet"])
    def test_empty_files_hold_nothing(self, tmp_path: Path, name: str) -> None:
        assert read(written(tmp_path / name, b"")) == [None]

    def test_blank_texts_hold_nothing(self, tmp_path: Path) -> None:
        assert read(written(tmp_path / "a.txt", " \n\t\n")) == [None]

    def test_long_texts_come_in_parts_and_lose_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(texts, "_PART", 64)
        text = "A short line here.\nAnother one.\n\nA paragraph without an end " + "x" * 150 + " and more. The end."
        documents = read(written(tmp_path / "a.txt", text))
        assert "".join(document.text for document in documents) == text
        assert [document.id for document in documents] == [f"a.txt:{n}" for n in range(1, len(documents) + 1)]
        assert documents[0].text.endswith("\n\n")
        assert max(len(document.text) for document in documents) <= 64

    def test_bytes_that_turn_bad_later_end_the_file_with_a_problem(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(texts, "_PART", 8192)
        *good, last = read(written(tmp_path / "a.txt", b"word and more. " * 4000 + b"\xff"))
        assert len(good) > 2
        assert "is not UTF-8" in str(last)


class TestMarkdown:
    def test_headings_become_titles_and_markup_goes(self, tmp_path: Path) -> None:
        source = (
            "---\ntitle: Guide\ndate: 2024-05-01\nurl: https://g.example\nveracity: 0.5\nother: x\n---\n"
            'Opening with **bold**, *slanted* and [a link](http://x.example "t").\n\n## Use ##\n\n'
            "<!-- hidden -->Take it. 2 * 3 * 4 = 24, snake_case_name.\n\n```sh\n# no heading\nls\n```\n"
        )
        [document] = read(written(tmp_path / "a.md", source))
        assert (document.title, document.date, document.url, document.veracity) == (
            "Guide",
            "2024-05-01",
            "https://g.example",
            0.5,
        )
        assert "Opening with bold, slanted and a link." in document.text
        assert "2 * 3 * 4 = 24, snake_case_name" in document.text
        assert "# no heading\nls" in document.text
        assert "hidden" not in document.text
        [mark] = document.marks
        assert mark.title == "Guide - Use"
        assert document.text[mark.start :].startswith("Take it")

    def test_lists_tables_and_entities_read_as_text(self, tmp_path: Path) -> None:
        source = (
            "- a `b`\n- c\n\n| h | i |\n|---|---|\n| 1 | <b>2</b> |\n\nSalt &amp; ![picture](x.png)\n\nUnder\n=====\n"
        )
        [document] = read(written(tmp_path / "a.md", source))
        assert document.text.split() == ["a", "b", "c", "h:", "1;", "i:", "2", "Salt", "&", "picture"]
        assert [mark.title for mark in document.marks] == ["a - Under"]

    def test_rows_of_a_table_have_the_headings_of_their_columns(self, tmp_path: Path) -> None:
        tickets = "| Ticket | Price | |\n|---|--:|---|\n| Adults | €12 | new |\n| Students | | |\n"
        [document] = read(written(tmp_path / "a.md", f"{tickets}\nA\n\n| h | i |\n|---|---|\n"))
        assert document.text.split("\n\n") == ["Ticket: Adults; Price: €12; new", "Ticket: Students", "A", "h i", ""]

    def test_the_first_heading_is_the_title(self, tmp_path: Path) -> None:
        [document] = read(written(tmp_path / "a.md", "# Rome #\n\nOld.\n\n## Food\n\nGood."))
        assert document.title == "Rome"
        assert [mark.title for mark in document.marks] == ["Rome", "Rome - Food"]

    def test_front_matter_that_is_none_stays_text(self, tmp_path: Path) -> None:
        [document] = read(written(tmp_path / "a.md", "---\nveracity: 7\n---\nText"))
        assert "veracity must lie in [0, 1]" in str(document)
        [document] = read(written(tmp_path / "b.md", "---\n- a\n---\nText"))
        assert document.title == "b"

    @pytest.mark.parametrize(
        "fields",
        [
            "date: 2020-13-45",
            f"title: {'9' * 5000}",
            "title: !!float x",
            f"title: {'[' * 20_000}",
            "a: &a [x]\ntitle: *a",
            f"title: {'a' * 70_000}",
        ],
    )
    def test_front_matter_that_cannot_be_read_is_none(self, tmp_path: Path, fields: str) -> None:
        [document] = read(written(tmp_path / "a.md", f"---\n{fields}\n---\nText"))
        assert (document.title, document.text.strip()) == ("a", "Text")

    @given(text=st.text(alphabet="[]()*_!<>-#`~ ab\n", max_size=60))
    @settings(max_examples=60, deadline=None)
    def test_any_markup_can_be_read(self, text: str) -> None:
        plain, marks = texts._plain(text)
        assert all(0 <= mark.start <= len(plain) for mark in marks)

    @pytest.mark.parametrize("piece", ["[", "<!--", "**a ", "![](", "# ", "*a", "```\n"])
    def test_repeated_openings_cost_no_more_than_text(self, piece: str) -> None:
        texts._plain(piece * (60_000 // len(piece)))  # quadratic time would take minutes


class TestHTML:
    @pytest.mark.parametrize("piece", ["<a ", "<!--", '<a b="', "<?", "</"])
    def test_what_never_ends_is_left_out_with_all_behind_it(self, tmp_path: Path, piece: str) -> None:
        """As browsers do; to look for an end behind each opening anew would take quadratic time."""
        [document] = read(written(tmp_path / "a.html", f"<p>Kept & read.</p>{piece * 100}"))
        assert document.text.strip() == "Kept & read."
        [document] = read(written(tmp_path / "a.html", "<p>At the end: 1 < 2 &amp"))
        assert document.text.strip() == "At the end: 1 < 2 &"

    def test_a_page_reads_as_its_reader_reads_it(self, tmp_path: Path) -> None:
        page = """<!doctype html><html><head><title>Roses &amp; more</title><style>p {}</style>
        <link rel="canonical" href="https://r.example/roses">
        <meta property="article:published_time" content="2024-05-01">
        </head><body><nav>Home <a>About</a></nav><script>var x = "<p>no</p>"</script><h1>Roses &amp; more</h1>
        <p>Roses are <b>r</b>ed,
        and sweet.<p>Violets<br>are blue.<h2>Care</h2><ul><li>Water<li>Light</ul><table><tr><td>Height<td>2 m</table>
        <p hidden-attr>Done&nbsp;now.</body></html>"""
        [document] = read(written(tmp_path / "a.html", page))
        assert (document.title, document.url, document.date) == (
            "Roses & more",
            "https://r.example/roses",
            "2024-05-01",
        )
        lines = [line.strip() for line in document.text.split("\n\n") if line.strip()]
        assert lines == [
            "Roses are red, and sweet.",
            "Violets",
            "are blue.",
            "Water",
            "Light",
            "Height 2 m",
            "Done\xa0now.",
        ]
        assert [mark.title for mark in document.marks] == ["Roses & more", "Roses & more - Care"]
        assert document.text[document.marks[1].start :].strip().startswith("Water")

    @pytest.mark.parametrize(
        ("table", "lines"),
        [
            (
                "<tr><th>Ticket</th><th>Price</th></tr><tr><td>Adults</td><td>12</td></tr><tr><th>Students<td>8",
                ["Ticket Price", "Ticket: Adults; Price: 12", "Ticket: Students; Price: 8"],
            ),
            ("<tr><th>A<th>B<tr><td><p>1</p><td><p>2</p>", ["A B", "A: 1", "B: 2"]),
            ("<tr><th>Born<td>1931<tr><th>Died<td>1990", ["Born 1931", "Died 1990"]),
            ("<tr><th>A<th colspan=2>B<tr><td>1<td>2<td>3", ["A B", "1 2 3"]),
            ("<tr><th>A<th>B<tr><td rowspan=2>1<td>2<tr><td>3<td>4", ["A B", "1 2", "3 4"]),
            ("<tr><th>A<th>B<tr><td><table><tr><td>1<td>2</table><td>3", ["A B", "A: 1 2", "B: 3"]),
        ],
    )
    def test_rows_of_a_table_have_the_headings_of_their_columns(self, tmp_path: Path, table: str, lines) -> None:
        [document] = read(written(tmp_path / "a.html", f"<table>{table}</table><p>End."))
        assert [line.strip() for line in document.text.split("\n\n") if line.strip()] == [*lines, "End."]

    def test_a_raised_number_is_no_part_of_the_one_before_it(self, tmp_path: Path) -> None:
        page = "<p>3 10<sup>6</sup> m<sup>-2</sup>, the 19<sup>th</sup><sup></sup> 5 H<sub>2</sub>O.<sup>[1]</sup>"
        [document] = read(written(tmp_path / "a.html", page))
        assert document.text == "3 10^6 m^-2, the 19th 5 H2O.[1]"
        plain, _ = texts._plain("It is 10<sup>6</sup> years, the 19<sup>th</sup>.\n\n<div>10<sup>6</sup></div>")
        assert plain.split() == ["It", "is", "10^6", "years,", "the", "19th.", "10^6"]

    def test_what_stands_around_the_text_is_left_out(self, tmp_path: Path) -> None:
        page = """<title>Lake Zorb</title><body hidden><a class="mw-jump-link" href="#body">Jump to content</a>
        <header><nav>Main page</nav>The site</header><div role="banner">Sign <div>in</div> here</div>
        <main><header><h1>Lake Zorb</h1></header><div id="toc" role="navigation"><h2>Contents</h2>1 History</div>
        <p>It is deep.<sup class="reference"><a>[1]</a></sup><sup><a href="#fn2">2</a></sup> Fish<a href="#n"> live</a>.
        <h2>History<span class="mw-editsection">[<a>edit</a>]</span></h2><p>It was dammed.<p hidden>Long ago.
        <div hidden>Not <div>shown</div>.</div><div hidden="until-found">Folded.</div><aside>See also</aside>
        <blockquote>Deep. <footer>A fisher</footer></blockquote></main>
        <footer>Last edited in May. <script>var x = "</p>";</script></footer>"""
        [document] = read(written(tmp_path / "a.html", page))
        assert document.title == "Lake Zorb"
        lines = ("It is deep. Fish live.", "It was dammed.", "Folded.", "Deep.", "A fisher")
        assert tuple(line.strip() for line in document.text.split("\n\n") if line.strip()) == lines
        assert [mark.title for mark in document.marks] == ["Lake Zorb", "Lake Zorb - History"]

    def test_what_is_hidden_is_left_out_and_nothing_else(self, tmp_path: Path) -> None:
        page = """<p hidden>Not.</p><p>One.</p><p style="color:red; display: none">Not.<p>Two.
        <ul><li hidden>Not<ul><li>not</ul>not<li>Three.</ul><p>Four.</p>
        <div style="visibility:hidden"><p>Not <b>not</b></p><div>Not.</div></div><p>Five.</p>
        <table><tr hidden><td>Not</td></tr><tr><td>Six.</td><td style="display:none">Not</tr></table>
        <div><p hidden>Not.</div>Seven. <span hidden>Not<br>not</span><dl><dt hidden>Not<dd>Eight.</dl>
        <p style="display:block">Nine."""
        [document] = read(written(tmp_path / "a.html", page))
        assert document.text.split() == [
            "One.",
            "Two.",
            "Three.",
            "Four.",
            "Five.",
            "Six.",
            "Seven.",
            "Eight.",
            "Nine.",
        ]

    def test_stray_and_unclosed_elements_do_no_harm(self, tmp_path: Path) -> None:
        [document] = read(written(tmp_path / "a.html", "</nav></p><h1>Title<p>Text stays.</div></script><b>Also this"))
        assert document.title == "Title"
        assert document.text.split("\n\n") == ["Text stays.", "Also this"]

    def test_the_page_states_its_encoding(self, tmp_path: Path) -> None:
        page = '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1"><p>Müller'
        [document] = read(written(tmp_path / "a.html", page.encode("latin-1")))
        assert document.text == "Müller"
        assert "unknown encoding 'nonsense'" in problem(written(tmp_path / "b.html", '<meta charset="nonsense"><p>x'))
        assert "binary" in problem(written(tmp_path / "c.html", b"\x89PNG\r\n\x1a\n\x00\x00\x00"))

    def test_deep_nesting_is_no_problem(self, tmp_path: Path) -> None:
        [document] = read(written(tmp_path / "a.html", "<div>" * 50_000 + "deep"))
        assert document.text == "deep"


class TestPDF:
    @pytest.fixture
    def pypdf(self):
        return pytest.importorskip("pypdf")

    def test_pages_become_one_text_with_page_numbers(self, tmp_path: Path, pypdf) -> None:
        written(tmp_path / "a.pdf", pdf(["Rivers run to the", "sea. All of them do."]))
        [document] = read(tmp_path / "a.pdf")
        assert document.text == "Rivers run to the\nsea. All of them do."
        assert [mark.url for mark in document.marks] == ["a.pdf#page=1", "a.pdf#page=2"]
        assert document.text[document.marks[1].start :].startswith("sea.")

    def test_running_headers_and_footers_are_no_text(self, tmp_path: Path, pypdf) -> None:
        lines = ["Rivers run to the", "sea. All of them", "do. Lakes stay."]
        written(tmp_path / "a.pdf", pdf([f"Annual Report\n{line}\n{n}" for n, line in enumerate(lines, 1)]))
        [document] = read(tmp_path / "a.pdf")
        assert document.text.split() == " ".join(lines).split()
        assert document.text[document.marks[1].start :].startswith("sea.")

    def test_a_line_that_ends_early_ends_a_paragraph(self, tmp_path: Path, pypdf) -> None:
        lines = [
            "1 Overview",
            "The utility supplies 58,200 people with",
            "drinking water. It is led by Helene",
            "Marsh.",
        ]
        written(
            tmp_path / "a.pdf",
            pdf(
                [
                    "\n".join(
                        [
                            *lines,
                            "Leakage",
                            "The loss fell to a share of 15.9 per-",
                            "cent of all the water in the year.",
                        ]
                    )
                ]
            ),
        )
        [document] = read(tmp_path / "a.pdf")
        assert document.text.split("\n\n") == [
            "1 Overview",
            "The utility supplies 58,200 people with drinking water. It is led by Helene Marsh.",
            "Leakage",
            "The loss fell to a share of 15.9 percent of all the water in the year.",
        ]

    @pytest.mark.parametrize(
        ("stated", "title"),
        [
            ("(anonymous)", "a"),
            ("untitled", "a"),
            ("Microsoft Word - Report 2024.docx", "Report 2024"),
            ("Annual Report", "Annual Report"),
        ],
    )
    def test_titles_that_programs_make_up_are_none(self, tmp_path: Path, pypdf, stated: str, title: str) -> None:
        writer = pypdf.PdfWriter(clone_from=written(tmp_path / "plain.pdf", pdf(["Some text."])))
        writer.add_metadata({"/Title": stated})
        writer.write(tmp_path / "a.pdf")
        assert read(tmp_path / "a.pdf")[0].title == title

    def test_pictures_and_damage_are_told_apart(self, tmp_path: Path, pypdf) -> None:
        assert "holds no text" in problem(written(tmp_path / "a.pdf", pdf([""])))
        assert "is damaged or no PDF" in problem(written(tmp_path / "b.pdf", b"nothing of the kind"))
        assert "is damaged or no PDF" in problem(written(tmp_path / "c.pdf", pdf(["Some text"])[:300]))

    def test_a_password_is_asked_for(self, tmp_path: Path, pypdf) -> None:
        written(tmp_path / "plain.pdf", pdf(["Secret text."]))
        writer = pypdf.PdfWriter(clone_from=tmp_path / "plain.pdf")
        writer.encrypt("password", algorithm="RC4-128")
        writer.write(tmp_path / "a.pdf")
        assert "is encrypted" in problem(tmp_path / "a.pdf")


def pdf(pages: list[str]) -> bytes:
    """A PDF file with a few lines of text per page, written by hand."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, page in enumerate(pages):
        shown = " 0 -20 Td ".join(f"({line}) Tj" for line in page.split("\n"))
        stream = f"BT /F1 12 Tf 72 700 Td {shown} ET" if page else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    content, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(content))
        content += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer << /Size {size} /Root 1 0 R >>\n"
    return f"{content}{end}startxref\n{len(content)}\n%%EOF\n".encode("ascii")


class TestJSONL:
    def test_fields_are_found_by_name_or_by_mapping(self, tmp_path: Path) -> None:
        rows = [
            {
                "id": 7,
                "text": "One.",
                "title": "T",
                "source": "s",
                "url": "u",
                "date": "2020",
                "veracity": 0.25,
                "more": [],
            },
            {"text": "Two.", "veracity": None},
        ]
        path = written(tmp_path / "a.jsonl", "\n\n".join(map(json.dumps, rows)) + "\n")
        first, second = read(path)
        assert first == Document("7", "One.", "T", "s", "u", "2020", 0.25)
        assert second == Document("a.jsonl:3", "Two.", source="a.jsonl")
        [body] = read(
            written(tmp_path / "b.jsonl", '{"body": "x", "text": "y"}'), ReadOptions({"text": "body"}, source="me")
        )
        assert (body.text, body.source, body.metadata) == ("x", "me", {"text": "y"})

    def test_further_keys_are_kept(self, tmp_path: Path) -> None:
        row = {"text": "One.", "section": "Results", "page": 3, "tags": ["a"], "note": "", "none": None}
        [document] = read(written(tmp_path / "a.jsonl", json.dumps(row)))
        assert document.metadata == {"section": "Results", "page": 3, "tags": ["a"]}
        [document] = read(written(tmp_path / "a.csv", "text,section\nOne.,Results\n"))
        assert document.metadata == {"section": "Results"}
        assert "surrogate" in problem(written(tmp_path / "b.jsonl", '{"text": "x", "section": "\\ud800"}'))

    def test_bad_lines_are_named_and_the_others_are_read(self, tmp_path: Path) -> None:
        lines = [
            b'{"text": "fine"}',
            b"not json",
            b'["text"]',
            b'{"body": "x"}',
            b'{"text": 7}',
            b'{"text": "a", "veracity": 2}',
            b'{"text": "\xff"}',
            b'{"text": "\\ud800"}',
            b'{"text": " "}',
            b'{"text": null}',
            b'{"text": "a", "veracity": "x"}',
            b"[" * 100_000,
            b'{"text": "a", "title": {}}',
            b'{"text": "fine too"}',
        ]
        found = read(written(tmp_path / "a.jsonl", b"\n".join(lines)))
        told = [str(entry) if isinstance(entry, Problem) else entry and entry.text for entry in found]
        assert told[0] == "fine"
        assert "a.jsonl:2: it is not valid JSON" in told[1]
        assert told[2] == "a.jsonl:3: expected a JSON object, found list"
        assert told[3] == "a.jsonl:4: it has no 'text'; it has 'body'"
        assert told[4] == "a.jsonl:5: text must be a text, found int"
        assert told[5] == "a.jsonl:6: veracity must lie in [0, 1], found 2.0"
        assert "a.jsonl:7: it is not UTF-8" in told[6]
        assert told[7] == "a.jsonl:8: text holds half of a surrogate pair"
        assert told[8:10] == [None, None]
        assert told[10] == "a.jsonl:11: veracity must be a number, found 'x'"
        assert "a.jsonl:12: it is not valid JSON" in told[11]
        assert told[12] == "a.jsonl:13: title must be a text or a number, found dict"
        assert told[13] == "fine too"

    def test_a_line_that_is_too_long_is_passed_over(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(row_files, "LONGEST_ROW", 64)
        monkeypatch.setattr(row_files, "_BLOCK", 100)
        lines = ['{"text": "%s"}' % ("x" * length) for length in (10, 300, 10, 52, 51, 10)]
        found = read(written(tmp_path / "a.jsonl", "\n".join(lines)))
        assert [isinstance(entry, Problem) for entry in found] == [False, True, False, True, False, False]
        assert [entry.where for entry in found if isinstance(entry, Problem)] == ["a.jsonl:2", "a.jsonl:4"]


class TestTables:
    def test_csv_with_any_usual_separator(self, tmp_path: Path) -> None:
        for name, mark in (("a.csv", ","), ("b.csv", ";"), ("c.tsv", "\t")):
            content = f'title{mark}text\r\nRome{mark}"Old, and\nlarge; ""eternal""."\r\n\r\nOslo{mark}North.\r\n'
            first, second = read(written(tmp_path / name, content))
            assert (first.title, first.text) == ("Rome", 'Old, and\nlarge; "eternal".')
            assert (second.id, second.text) == (f"{name}:3", "North.")

    def test_wrong_csv_is_named(self, tmp_path: Path) -> None:
        assert "it has no column 'text'; it has 'a': name the right one with --column" in problem(
            written(tmp_path / "a.csv", "a\n1\n")
        )
        assert "no column 'c'" in problem(written(tmp_path / "b.csv", "text,b\n1,2\n"), ReadOptions({"title": "c"}))
        good, bad = read(written(tmp_path / "c.csv", "text,b\nx,2\nz\n"))
        assert good.text == "x"
        assert str(bad) == "c.csv:2: the row has 1 fields, the header 2"
        assert "is no CSV" in problem(written(tmp_path / "d.csv", 'text,b\n"never closed,2\n'))
        before, end = read(written(tmp_path / "f.csv", 'text,b\nx,2\n"never closed,2\n'))
        assert (before.text, "is no CSV" in str(end)) == ("x", True)
        assert "is not UTF-8" in problem(written(tmp_path / "e.csv", b"text\n\xfcber\n"))

    def test_values_of_parquet_that_python_cannot_hold_are_problems_of_their_rows(self, tmp_path: Path) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        broken = pyarrow.Array.from_buffers(pyarrow.string(), 2, pyarrow.array([b"\xff\xfe", b"good"]).buffers())
        late = pyarrow.array([2**62, 0], pyarrow.timestamp("us"))
        for name, columns in {
            "a.parquet": {"text": broken},
            "b.parquet": {"text": ["x", "good"], "date": late},
        }.items():
            parquet.write_table(pyarrow.table(columns), tmp_path / name)
            bad, good = read(tmp_path / name)
            assert str(bad).startswith(f"{name}:1: a value cannot be read")
            assert isinstance(good, Document)
            assert good.text == "good"

    def test_parquet_in_batches_with_typed_columns(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        monkeypatch.setattr(parquet_files, "_MOST_ROWS", 2)
        columns = {
            "id": [5, 6, 7],
            "body": ["a", None, "c"],
            "date": [date(2024, 5, 1)] * 3,
            "veracity": [0.5, 1, None],
        }
        parquet.write_table(pyarrow.table({**columns, "other": [[1], [2], [3]]}), tmp_path / "a.parquet")
        options = ReadOptions({"text": "body"})
        first, second, third = read(tmp_path / "a.parquet", options)
        assert first == Document("5", "a", source="a.parquet", date="2024-05-01", veracity=0.5)
        assert second is None
        assert (third.id, third.veracity) == ("7", None)
        assert "no column 'c'; it has 'id', 'body'" in problem(tmp_path / "a.parquet", ReadOptions({"text": "c"}))
        content = (tmp_path / "a.parquet").read_bytes()
        assert "is damaged or no Parquet" in problem(written(tmp_path / "b.parquet", content[:-20]), options)
        assert "is damaged or no Parquet" in problem(written(tmp_path / "c.parquet", b"nothing of the kind"), options)


@pytest.mark.parametrize(("name", "package"), [("a.pdf", "pypdf"), ("a.parquet", "pyarrow")])
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert f"needs {package}: pip install 'ewe-engine[documents]'" in problem(written(tmp_path / name, b"PAR1"))


class TestFiles:
    def test_folders_patterns_and_files_give_each_file_once(self, tmp_path: Path) -> None:
        for name in ("b.txt", "a.md", "sub/c.html", "sub/picture.png", ".hidden.txt", ".git/x.txt", "ds/left.txt"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            written(tmp_path / name, "x")
        found = find_files([str(tmp_path / "b.txt"), str(tmp_path), str(tmp_path / "**/*.html")], tmp_path / "ds")
        assert [file.label for file in found.files] == [
            str(tmp_path / name) for name in ("b.txt", "a.md", "sub/c.html")
        ]
        assert found.unknown == [str(tmp_path / "sub/picture.png")]

    def test_links_that_lead_to_no_file_are_named_and_left_out(self, tmp_path: Path) -> None:
        folder = tmp_path / "docs"
        (folder / "sub").mkdir(parents=True)
        for target, link in (("sub", "to_folder"), ("gone", "to_nothing"), ("gone.txt", "to_nothing.txt")):
            (folder / link).symlink_to(target)
        (folder / "again.txt").symlink_to(written(folder / "sub" / "a.txt", "x"))
        found = find_files([str(folder), str(folder / "sub")], tmp_path / "ds")
        assert [file.path.name for file in found.files] == ["a.txt"]
        assert found.links == [str(folder / name) for name in ("to_folder", "to_nothing", "to_nothing.txt")]
        assert not found.unknown
        assert [file.label for file in find_files([str(folder / "to_folder")], tmp_path / "ds").files] == [
            str(folder / "to_folder" / "a.txt")
        ]

    def test_what_cannot_be_meant_is_refused(self, tmp_path: Path) -> None:
        written(tmp_path / "a.doc", "x")
        for source, match in (
            ("missing.txt", "does not exist"),
            ("*.nothing", "no file fits"),
            ("a.doc", "unknown kind of file; known are .txt"),
            (".", "no readable file"),
        ):
            with pytest.raises(DatastoreError, match=match):
                find_files([str(tmp_path / source)], tmp_path / "ds")

    def test_files_vanish_between_listing_and_reading(self, tmp_path: Path) -> None:
        assert problem(tmp_path / "gone.txt") == "gone.txt: it cannot be read (No such file or directory)"


@pytest.mark.parametrize("argument", ["text", "text=", "body=text", "=x"])
def test_column_arguments_are_checked(argument: str) -> None:
    with pytest.raises(DatastoreError, match="FIELD=COLUMN; fields: id, text"):
        parse_columns([argument])


def test_tables_of_sources(tmp_path: Path) -> None:
    expected = {"a.example": 0.25, "*": 0.5}
    assert read_sources(written(tmp_path / "s.yaml", 'a.example: 0.25\n"*": 0.5\n')) == expected
    assert read_sources(written(tmp_path / "s.csv", "veracity,source\n0.25,a.example\n0.5,*\n")) == expected
    for content, match in (
        ("a: 2", r"'a': veracity must lie in \[0, 1\]"),
        ("a: x", "must be a number"),
        ("a:", "'a': veracity is missing"),
        ("- a", "must hold lines"),
        ("a: [", "not valid YAML"),
        (b"\xff", "cannot be read: it is not UTF-8"),
    ):
        with pytest.raises(DatastoreError, match=match):
            read_sources(written(tmp_path / "bad.yaml", content))
    for content, match in (("a,b\n1,2\n", "columns source and veracity"), ("source,veracity\na,0.1\na,0.2\n", "twice")):
        with pytest.raises(DatastoreError, match=match):
            read_sources(written(tmp_path / "bad.csv", content))
