"""`ewe verify`: what is printed and written, the exit status, and what bad input does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from check_fixture import ALMANAC, WordVerifier
from typer.testing import CliRunner, Result

from ewe.cli.main import app

RIGHT, WRONG = "All is well here. This is fine.", "All is well here. This is wrong."


@pytest.fixture(autouse=True)
def _verifier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "real_verifier" not in request.fixturenames:
        opened = (WordVerifier(), "a library")
        monkeypatch.setattr("ewe.cli.verify.open_verifier", lambda *options: opened)


@pytest.fixture
def real_verifier() -> None:
    """Marks tests that open a verifier themselves."""


def ewe(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["verify", *arguments], input=stdin)


def documents(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def write(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.parametrize(
    ("text", "status"), [(RIGHT, 0), (WRONG, 1), ("Perhaps so, perhaps not.", 0), ("It went boom.", 2)]
)
def test_the_exit_status_tells_what_was_found(text: str, status: int) -> None:
    assert ewe(stdin=text).exit_code == status


def test_errors_outrank_refutations(tmp_path: Path) -> None:
    wrong, missing = write(tmp_path / "a.txt", WRONG), str(tmp_path / "none.txt")
    result = ewe(missing, wrong)
    assert result.exit_code == 2
    assert result.stderr == f"ewe: cannot read {missing}: No such file or directory\n"
    assert "✗ This is wrong." in result.stdout


def test_the_report_shows_sentences_evidence_and_counts(tmp_path: Path) -> None:
    name = write(tmp_path / "a.txt", WRONG + " Perhaps so, perhaps not.")
    lines = ewe(name).stdout.splitlines()
    assert lines[0] == name
    assert lines[1] == "✓ All is well here."
    assert lines[2] == f"      decided for 0.90 Mirela Hask (Almanac): “{ALMANAC.text}”"
    assert lines[3:5] == ["✗ This is wrong.", f"      decided against 0.90 Mirela Hask (Almanac): “{ALMANAC.text}”"]
    assert lines[5] == "? Perhaps so, perhaps not."
    assert "3 sentences: 1 supported, 1 refuted, 1 inconclusive" in lines
    assert "3 claims: 1 supported, 1 refuted, 1 inconclusive" in lines
    assert lines[-1] == "VeriScore: precision 0.333, recall 0.333, F1 0.333 at K = 3"


def test_wrong_calls_are_noted_as_pairs(tmp_path: Path) -> None:
    name, errors = write(tmp_path / "a.txt", WRONG), tmp_path / "errors.jsonl"
    assert ewe(name, "--expect", "supported", "--export-errors", str(errors)).exit_code == 1
    [pair] = [json.loads(line) for line in errors.read_text().splitlines()]
    assert (pair["claim"], pair["evidence"]) == ("This is wrong.", ALMANAC.text)
    assert (pair["label"], pair["given"]) == ("supported", "refuted")


@pytest.mark.parametrize("options", [["--expect", "supported"], ["--expect", "maybe", "--export-errors", "x"]])
def test_options_for_wrong_calls_that_do_not_fit_are_refused(options: list[str]) -> None:
    result = ewe(*options, stdin=RIGHT)
    assert result.exit_code == 2
    assert "--expect" in result.stderr


def test_disputes_and_failures_stand_in_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    from check_fixture import checked_text

    from ewe.cli.check_view import print_checked
    from ewe.cli.terminal import output_console

    print_checked(output_console(), "x", checked_text())
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("    ✓ Mirela Hask was born in Orvane")
    assert lines[place + 1] == "      sources disagree"
    assert lines[place + 2].startswith("      for 0.90 Mirela Hask (Almanac)")
    assert lines[place + 3].startswith("      against 0.70 Rumours (Pamphlet)")
    assert "  the endpoint is down" in lines
    assert "sources disagree on 1 claim" in lines
    assert not any("\x1b" in line for line in lines)


def test_json_holds_everything(tmp_path: Path) -> None:
    name = write(tmp_path / "a.txt", WRONG)
    result = ewe(name, "--json", "--prompt", "How is it?", "--k", "4")
    [found] = documents(result)
    assert (found["id"], found["verdict"], found["prompt"], found["text"]) == (name, "refuted", "How is it?", WRONG)
    assert found["counts"]["sentences"] == {"supported": 1, "refuted": 1, "inconclusive": 0, "not_checked": 0}
    second = found["sentences"][1]
    assert WRONG[second["start"] : second["end"]] == second["text"] == "This is wrong."
    [claim] = second["claims"]
    [evidence] = [second["evidence"][place] for place in claim["evidence"]]
    assert (claim["verdict"], claim["conflicting"], evidence["stance"]) == ("refuted", False, "refuted")
    assert found["sources"][evidence["id"]]["text"] == ALMANAC.text
    assert found["veriscore"] == {"precision": 0.5, "recall": 0.25, "f1": pytest.approx(1 / 3), "k": 4}
    assert documents(ewe(name, "--json"))[0]["veriscore"] is None


def test_several_files_are_checked_each_for_itself(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.txt", RIGHT), write(tmp_path / "b.txt", WRONG + " Or perhaps so.")
    found = documents(ewe(one, two, one, "--json"))
    assert [(item["id"], item["verdict"]) for item in found] == [(one, "supported"), (two, "refuted")]
    assert ewe(one, two).stdout.splitlines()[-1].startswith("VeriScore, mean of 2 texts: precision 0.667")


def test_result_files_are_checked_line_by_line_under_their_own_prompts(tmp_path: Path) -> None:
    lines = [{"id": "x", "prompt": "Own?", "text": RIGHT, "token_ids": [1]}, {"text": WRONG}]
    name = write(tmp_path / "r.jsonl", "\n".join(map(json.dumps, lines)) + "\n")
    found = documents(ewe(name, "--json", "--prompt", "Given?"))
    assert [(item["id"], item["prompt"], item["verdict"]) for item in found] == [
        ("x", "Own?", "supported"),
        (f"{name}:2", "Given?", "refuted"),
    ]


def test_the_page_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert ewe("--html", str(page), stdin=WRONG).exit_code == 1
    text = page.read_text(encoding="utf-8")
    assert "<!doctype html>" in text
    assert "This is wrong." in text


def test_texts_of_one_name_are_all_on_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    lines = [{"id": name, "text": RIGHT} for name in ("x (3)", "x", "x")]
    name = write(tmp_path / "r.jsonl", "\n".join(map(json.dumps, lines)) + "\n")
    assert ewe(name, "--html", str(page)).exit_code == 0
    assert "x (4)" in page.read_text(encoding="utf-8")


def test_a_failing_verifier_says_how_much_is_missing() -> None:
    result = ewe("-", "--json", stdin="It is fine. It went boom.")
    assert result.exit_code == 2
    assert result.stderr == "ewe: standard input: 2 of 2 sentences could not be checked: the endpoint is down\n"
    assert documents(result)[0]["error"] == "the endpoint is down"


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("empty.txt", b"", "holds no text"),
        ("blank.txt", b" \n\t\n", "holds no text"),
        ("image.txt", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "binary"),
        ("nul.txt", b"abc\x00def", "binary"),
        ("answer.odt", b"PK\x03\x04\x14\x00\x00", "documents can be .docx, "),
        ("answer.docx", b"PK\x03\x04\x14\x00\x00", "it is damaged or no DOCX"),
        ("blank.html", b"<p></p>", "holds no text"),
        ("latin.txt", "Café au lait.".encode("latin-1"), "--encoding"),
        ("paper.txt", b"%PDF-1.7 ...", "PDF"),
        ("rows.jsonl", b'{"text": 3}', 'rows.jsonl:1: expected an object with a text under "text"'),
        ("rows.jsonl", b'{"text": "Fine."\n', "rows.jsonl:1: not valid JSON"),
        ("rows.jsonl", b'{"text": " "}\n', "rows.jsonl:1: the text to check is empty"),
        ("rows.jsonl", b'{"text": "a\\ud800"}\n', "surrogate"),
        ("rows.jsonl", b'{"text": "Fine.", "prompt": 3}\n', "prompt must be a text"),
        ("rows.jsonl", b"\n\n", "holds no text"),
    ],
)
def test_bad_input_is_one_line_that_names_the_file(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    result = ewe(write(tmp_path / name, data), "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert name in result.stderr
    assert message in result.stderr


def test_documents_are_read_as_a_datastore_reads_them(tmp_path: Path) -> None:
    page = write(tmp_path / "answer.html", f"<title>An answer</title><p>{RIGHT}</p><p><b>{WRONG}</b></p>")
    assert documents(ewe(page, "--json"))[0]["text"] == f"{RIGHT}\n\n{WRONG}"
    made = pytest.importorskip("docx").Document()
    made.add_paragraph(RIGHT)
    made.save(str(tmp_path / "answer.DOCX"))
    assert documents(ewe(str(tmp_path / "answer.DOCX"), "--json"))[0]["text"] == RIGHT


def test_a_bad_line_does_not_cost_the_lines_before_it(tmp_path: Path) -> None:
    result = ewe(write(tmp_path / "r.jsonl", json.dumps({"text": RIGHT}) + "\nnonsense\n"), "--json")
    assert result.exit_code == 2
    assert [item["verdict"] for item in documents(result)] == ["supported"]


def test_other_encodings_can_be_named(tmp_path: Path) -> None:
    name = write(tmp_path / "latin.txt", "Café au lait.".encode("latin-1"))
    assert documents(ewe(name, "--json", "--encoding", "latin-1"))[0]["text"] == "Café au lait."
    marked = write(tmp_path / "wide.txt", "Café au lait.".encode("utf-16"))
    assert documents(ewe(marked, "--json"))[0]["text"] == "Café au lait."


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.cli.check_run.LARGEST_TEXT", 10)
    result = ewe(write(tmp_path / "big.txt", "This is far too long."))
    assert result.exit_code == 2
    assert "big.txt is larger than" in result.stderr


def test_a_folder_is_no_text(tmp_path: Path) -> None:
    result = ewe(str(tmp_path))
    assert result.exit_code == 2
    assert "Is a directory" in result.stderr


def test_k_must_be_positive() -> None:
    result = ewe("--k", "0", stdin=RIGHT)
    assert (result.exit_code, result.stderr) == (2, "ewe: --k must be positive, got 0.0\n")


@pytest.mark.usefixtures("real_verifier")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to check against: give --datastore or --documents"),
        (["--datastore", "{}/none"], "none"),
        (["--documents", "{}/none.txt"], "none.txt"),
        (["--documents", "{}/odd.xyz"], "unknown kind of file"),
        (["--documents", "{}/empty.txt"], "there is no text in"),
        (["--documents", "{}/nul.txt"], "binary"),
        (["--datastore", "builtin", "--documents", "{}/empty.txt"], "not both"),
        (["--datastore", "builtin", "--set", "memroy.unit_tokens=3"], "unknown setting"),
    ],
)
def test_evidence_that_cannot_be_had_is_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    for name, data in {"odd.xyz": b"x", "empty.txt": b" ", "nul.txt": b"a\x00b"}.items():
        write(tmp_path / name, data)
    result = ewe(*(argument.format(tmp_path) for argument in arguments), stdin=RIGHT)
    assert result.exit_code == 2
    assert result.stderr.startswith("ewe: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.usefixtures("real_verifier")
@pytest.mark.parametrize("indexed", [False, True])
def test_a_text_is_checked_against_documents_or_a_datastore_made_of_them(tmp_path: Path, indexed: bool) -> None:
    library = tmp_path / "library"
    library.mkdir()
    write(library / "ada.md", "# Ada Lovelace\n\nAda Lovelace was born in London in 1815. She died in 1852.\n")
    evidence = ["--documents", str(library)]
    if indexed:
        store = str(tmp_path / "store")
        built = CliRunner().invoke(app, ["index", "build", str(library), "--out", store])
        assert built.exit_code == 0, built.output
        evidence = ["--datastore", store]
    text = "Ada Lovelace was born in London in 1815. She died in 1870."
    result = ewe(*evidence, "--set", "retrieval.retriever=bm25", "--json", stdin=text)
    assert result.exit_code == 1, result.output
    [found] = documents(result)
    assert [sentence["verdict"] for sentence in found["sentences"]] == ["supported", "refuted"]
    [evidence_of_death] = found["sentences"][1]["evidence"]
    assert "1852" in evidence_of_death["excerpt"]
