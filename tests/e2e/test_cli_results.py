"""Results that survive a kill: the output file of `ewe generate` continues where it stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from show_fixture import FakeLLM
from typer.testing import CliRunner, Result

from ewe.cli.main import app
from ewe.config import Config

PROMPTS = "".join(f"prompt {number}\n" for number in range(7))


def generate(monkeypatch: pytest.MonkeyPatch, llm: FakeLLM, output: Path, *more: str, prompts: str = PROMPTS) -> Result:
    monkeypatch.setattr("ewe.cli.engine.open_llm", lambda config: llm)
    monkeypatch.setattr("ewe.cli.engine.settings_of", lambda *args, **named: Config())
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
    cuts = {0, 1, 5, 8, line - 1, line, line + 1, 2 * line, len(whole) - 1, *range(0, len(whole), len(whole) // 9)}
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
