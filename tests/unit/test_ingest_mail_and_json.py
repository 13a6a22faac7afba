"""E-mails and JSON files: what they say, and what is wrong with them."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from ewe.retrieval.ingest.documents import Document, Problem, ReadOptions, SourceFile
from ewe.retrieval.ingest.files import KINDS
from ewe.retrieval.ingest.readers import read_blocks, read_documents


def read(path: Path, content: bytes | str, **columns: str) -> list[Document | Problem | None]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    options, found = ReadOptions(columns=columns), []
    for block in read_blocks(SourceFile(path, path.name, KINDS[path.suffix]), options):
        found += [block] if isinstance(block, Problem) else read_documents(block, options)
    return found


def mail(text: str, html: str = "", **headers: str) -> EmailMessage:
    message = EmailMessage()
    for name, value in {"From": "Ada Lind <ada@example.org>", "Subject": "The ferry – März", **headers}.items():
        message[name] = value
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
    return message


def test_a_mail_is_its_senders_words_under_the_subject(tmp_path: Path) -> None:
    text = "It sails at ten.\n\nOn Monday Bo wrote:\n> When does it sail?\n>\nSee you!\n-- \nAda Lind\nHarbour office\n"
    message = mail(text, Date="Mon, 4 Mar 2024 10:00:00 +0100")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plan.pdf")
    [document] = read(tmp_path / "a.eml", message.as_bytes())
    assert isinstance(document, Document)
    assert document.text.split() == ["It", "sails", "at", "ten.", "See", "you!"]
    assert (document.title, document.date) == ("The ferry – März", "2024-03-04T10:00:00+01:00")
    assert document.metadata == {"from": "Ada Lind <ada@example.org>"}


def test_plain_text_comes_before_html_and_html_is_read_where_it_is_all(tmp_path: Path) -> None:
    both = mail("Plain.", "<p>Rich.</p>")
    only = mail("x")
    only.set_content("<style>p {}</style><h2>Times</h2><p>At <b>ten</b>.</p>", subtype="html")
    assert [one.text for one in read(tmp_path / "a.eml", both.as_bytes())] == ["Plain."]
    assert [one.text for one in read(tmp_path / "b.eml", only.as_bytes())] == ["Times\n\nAt ten."]


def test_what_is_no_mail_or_cannot_be_decoded_is_told(tmp_path: Path) -> None:
    [problem] = read(tmp_path / "a.eml", "no mail at all")
    assert str(problem) == "a.eml: it is no e-mail: it has neither From nor Subject"
    [problem] = read(tmp_path / "b.eml", "Subject: a\nContent-Type: text/plain; charset=klingon\n\ntext\n")
    assert "b.eml: its text cannot be decoded" in str(problem)
    assert read(tmp_path / "c.eml", "Subject: nothing\n\n\n") == [None]


@pytest.mark.parametrize("content", ['[{"text": "One."}, {"text": "Two."}]', '{"text": "One."}'])
def test_an_array_and_an_object_are_rows(tmp_path: Path, content: str) -> None:
    found = read(tmp_path / "a.json", content)
    assert [one.text for one in found] == ["One.", "Two."][: len(found)]
    assert [one.id for one in found] == ["a.json:1", "a.json:2"][: len(found)]


def test_columns_and_empty_arrays(tmp_path: Path) -> None:
    [document] = read(tmp_path / "a.json", '[{"body": "One.", "name": "A"}]', text="body", title="name")
    assert (document.text, document.title) == ("One.", "A")
    assert read(tmp_path / "b.json", "[]") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}\n{"text": "b"}', "a.json: it is not valid JSON"),
        ('["a"]', "a.json:1: expected a JSON object, found str"),
        ("3", "a.json:1: expected a JSON object, found int"),
        ('[{"body": "a"}]', "a.json:1: it has no 'text'; it has 'body'"),
        ("[" * 100_000, "a.json: it is not valid JSON"),
    ],
)
def test_what_is_wrong_with_json_is_told(tmp_path: Path, content: str, message: str) -> None:
    [problem] = read(tmp_path / "a.json", content)
    assert message in str(problem)


def test_lines_of_json_are_told_their_name(tmp_path: Path) -> None:
    [problem] = read(tmp_path / "a.json", '{"text": "a"}\n{"text": "b"}')
    assert "one object per line is .jsonl" in str(problem)
