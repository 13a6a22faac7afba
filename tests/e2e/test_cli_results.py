"""Results that survive a kill: the output file of `ewe generate` continues where it stopped."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from show_fixture import FakeLLM
from typer.testing import CliRunner, Result

from ewe.cli.main import app
from ewe.retrieval.store import PassageStore
from ewe.types import Passage

PROMPTS = "".join(f"prompt {number}\n" for number in range(7))


def generate(monkeypatch: pytest.MonkeyPatch, llm: FakeLLM, output: Path, *more: str, prompts: str = PROMPTS) -> Result:
    monkeypatch.setattr("ewe.cli.generate.open_llm", lambda config: llm)
    return CliRunner().invoke(app, ["generate", "--output", str(output), *more], input=prompts)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_file_cut_anywhere_is_completed_to_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, copies: int
) -> None:
    output = tmp_path / "out.jsonl"
    more = ("-n", str(copies))
    assert generate(monkeypatch, FakeLLM(), output, *more).exit_code == 0
    whole = output.read_bytes()
    assert [json.loads(line)["id"] for line in whole.splitlines()] == [str(i) for i in range(7) for _ in range(copies)]
    line = whole.index(b"\n") + 1
    cuts = {0, 5, line - 1, line, line + 1, len(whole) - 1, *range(0, len(whole), len(whole) // 5)}
    for cut in cuts:
        output.write_bytes(whole[:cut])
        llm = FakeLLM()
        result = generate(monkeypatch, llm, output, *more)
        assert result.exit_code == 0, (cut, result.output)
        assert output.read_bytes() == whole
        done = whole[:cut].count(b"\n") // copies
        assert len(llm.calls[0][0]) == 7 - done


def test_a_complete_file_starts_no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    generate(monkeypatch, FakeLLM(), output)
    llm = FakeLLM()
    result = generate(monkeypatch, llm, output)
    assert llm.calls == []
    assert "7 of 7 prompts are in" in result.stderr


def test_an_output_that_is_no_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)  # addresses of sockets are short
        server.bind("socket")
        result = generate(monkeypatch, FakeLLM(), output)
    assert result.exit_code == 2
    assert "is no file" in re.sub(r"[\s│]+", " ", result.stderr)


def test_an_interrupt_keeps_what_is_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output, page = tmp_path / "out.jsonl", tmp_path / "page.html"
    # Answers arrive as 1, 0, 3, ...: of five, the first four are those of the first four prompts.
    result = generate(monkeypatch, FakeLLM(interrupt_after=5), output, "--html", str(page))
    assert result.exit_code == 130
    assert "interrupted: 4 of 7 prompts are finished; run again to go on" in result.stderr
    assert [json.loads(line)["prompt"] for line in output.read_text().splitlines()] == [f"prompt {i}" for i in range(4)]
    assert "prompt 3" in page.read_text(encoding="utf-8")
    llm = FakeLLM()
    assert generate(monkeypatch, llm, output).exit_code == 0
    assert llm.calls[0][0] == ["prompt 4", "prompt 5", "prompt 6"]


@pytest.mark.parametrize(
    "content",
    [
        "my notes, without an end of line",
        "my notes\n",
        '{"id": "9", "prompt": "prompt 0", "index": 0}\n',
        '{"id": "0", "prompt": "another", "index": 0}\n',
        '{"id": "0", "prompt": "prompt 0", "index": 1}\n',
        "[]\n",
        "\xff\n",
    ],
)
def test_a_file_of_something_else_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text(content, encoding="latin-1")
    llm = FakeLLM()
    result = generate(monkeypatch, llm, output)
    assert result.exit_code == 2
    assert "choose another --output" in result.stderr
    assert output.read_text(encoding="latin-1") == content
    assert llm.calls == []


def test_fewer_prompts_than_results_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    generate(monkeypatch, FakeLLM(), output)
    before = output.read_bytes()
    result = generate(monkeypatch, FakeLLM(), output, prompts="prompt 0\n")
    assert result.exit_code == 2
    assert "more results than prompts" in result.stderr
    assert output.read_bytes() == before


def begun(monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> Path:
    """A file with the answers to the first two prompts."""
    output = folder / "out.jsonl"
    result = generate(monkeypatch, FakeLLM(template=True), output, *options, prompts="prompt 0\nprompt 1\n")
    assert result.exit_code == 0, result.output
    return output


def refused(monkeypatch: pytest.MonkeyPatch, output: Path, *options: str) -> str:
    """What is said of a run that must not go on; nothing may have changed, and no engine been started."""
    before = {path: path.read_bytes() for path in output.parent.iterdir() if path.is_file()}
    llm = FakeLLM()
    result = generate(monkeypatch, llm, output, *options)
    assert (result.exit_code, llm.calls) == (2, [])
    assert {path: path.read_bytes() for path in output.parent.iterdir() if path.is_file()} == before
    assert "choose another --output" in result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ([], ["--temperature", "0.5"], ["sampling.temperature was 0.0, is now 0.5"]),
        (["-n", "2"], [], ["sampling.n was 2, is now 1"]),
        (["--model", "old"], ["--model", "new"], ['model.name was "old", is now "new"']),
        (["--verifier", "builtin"], ["--verifier", "claims"], ['verifier was "builtin", is now "claims"']),
        ([], ["--policy", "rag"], ['policy was "ewe", is now "rag"']),
        (["--system", "S"], ["--raw"], ["prompts.raw was false, is now true", 'prompts.system was "S", is now ""']),
        (
            ["--set", "memory.retrieval_units=6"],
            ["--set", "feedback.mode=optimistic"],
            ['feedback.mode was "blocking", is now "optimistic"', "memory.retrieval_units was 6, is now 4"],
        ),
        (["--logit-bias", "3=1"], ["--logit-bias", "3=2"], ["sampling.logit_bias.3 was 1.0, is now 2.0"]),
        ([], ["--logit-bias", "3=2"], ['sampling.logit_bias was {}, is now {"3": 2.0}']),
    ],
)
def test_other_settings_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, old: list[str], new: list[str], told: list[str]
) -> None:
    output = begun(monkeypatch, tmp_path, *old)
    message = refused(monkeypatch, output, *new)
    [listed] = re.findall("was written with other settings: (.*). Give the old settings", message)
    assert listed.split("; ") == told


def rewrite_note(file: Path) -> None:
    file.write_text("Text.", encoding="utf-8")


def rewrite_passages(file: Path) -> None:
    file.write_text('{"id": "a", "text": "Text."}\n', encoding="utf-8")


def add_passage(folder: Path) -> None:
    with PassageStore.open(folder, read_only=False) as store:
        store.add([Passage("a", "Text.")])


@pytest.mark.parametrize(
    ("option", "name", "told", "change"),
    [
        ("--documents", "note.txt", "documents was", rewrite_note),
        ("--documents", "notes.jsonl", "documents was", rewrite_passages),
        ("--datastore", "notes.jsonl", "datastore_content was", rewrite_passages),
        ("--datastore", "store", "datastore_content was", add_passage),
    ],
)
def test_texts_of_documents_and_datastores_are_settings_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: str, name: str, told: str, change: Callable[[Path], None]
) -> None:
    (tmp_path / "note.txt").write_text("First.", encoding="utf-8")
    (tmp_path / "notes.jsonl").write_text('{"id": "a", "text": "First."}\n', encoding="utf-8")
    PassageStore.create(tmp_path / "store").close()
    options = [option, str(tmp_path / name)]
    output = begun(monkeypatch, tmp_path, *options)
    assert generate(monkeypatch, FakeLLM(template=True), output, *options).exit_code == 0
    change(tmp_path / name)
    assert told in refused(monkeypatch, output, *options)


def test_what_says_nothing_else_may_change(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output = begun(monkeypatch, tmp_path)
    options = ["--set", "cache.memory_gib=0.5", "--set", "scheduler.max_num_seqs=2", "--set", "model.device=cpu"]
    assert generate(monkeypatch, FakeLLM(), output, *options).exit_code == 0
    assert len(output.read_text().splitlines()) == 7


def test_a_file_of_an_older_version_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output = begun(monkeypatch, tmp_path)
    beside = tmp_path / "out.jsonl.meta.json"
    beside.unlink()
    assert "there is no out.jsonl.meta.json beside it" in refused(monkeypatch, output)
    beside.write_text("[]", encoding="utf-8")
    assert "is not what an earlier run wrote" in refused(monkeypatch, output)


def test_without_a_whole_result_a_run_begins_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output = begun(monkeypatch, tmp_path, "--temperature", "0.5")
    output.unlink()
    assert generate(monkeypatch, FakeLLM(), output).exit_code == 0
    assert json.loads((tmp_path / "out.jsonl.meta.json").read_text())["settings"]["sampling"]["temperature"] == 0.0
    refused(monkeypatch, output, "--temperature", "0.5")


def test_further_prompts_at_the_end_are_answered_and_others_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    output = begun(monkeypatch, tmp_path)
    assert "2 of 7 prompts are in" in generate(monkeypatch, FakeLLM(), output).stderr
    result = generate(monkeypatch, FakeLLM(), output, prompts=PROMPTS.replace("prompt 1", "prompt one"))
    assert result.exit_code == 2
    assert f"{output}:2 is no result of these prompts (expected prompt 'prompt one')" in result.stderr


def test_every_line_is_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Readers of JSONL (pandas, jq, `ewe verify`) meet nothing else in the file."""
    lines = [json.loads(line) for line in begun(monkeypatch, tmp_path).read_text().splitlines()]
    assert [line["prompt"] for line in lines] == ["prompt 0", "prompt 1"]
    assert lines[0].keys() == lines[1].keys()
