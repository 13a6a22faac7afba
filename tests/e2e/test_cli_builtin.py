"""The commands on the real engine with the built-in model: what they report agrees with itself."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from real_models import model_path
from transformers import AutoTokenizer
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.evaluation.world.builtin import example_prompts, load_world

ROOT = Path(__file__).parents[2]


def ewe(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ewe.cli.main", *arguments]
    return subprocess.run(command, input="", capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("demo")
    page, trace = folder / "run.html", folder / "run.jsonl"
    done = CliRunner().invoke(app, ["demo", "--json", "--html", str(page), "--trace", str(trace)])
    assert done.exit_code == 0, done.output
    events = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    return {"result": json.loads(done.stdout), "events": events, "page": page.read_text(encoding="utf-8")}


def test_the_demo_shows_a_sentence_written_again(demo: dict[str, Any]) -> None:
    rewritten = [sentence for sentence in demo["result"]["sentences"] if sentence["removed"]]
    assert rewritten
    refuted = {event["data"]["text"] for event in demo["events"] if event["data"].get("verdict") == "refuted"}
    assert all(set(sentence["removed"]) <= refuted for sentence in rewritten)
    assert any(sentence["verdict"] == "supported" for sentence in rewritten)


def test_sentences_lie_in_the_text(demo: dict[str, Any]) -> None:
    result = demo["result"]
    assert len(result["sentences"]) > 3
    for sentence in result["sentences"]:
        assert result["text"][sentence["start"] : sentence["end"]] == sentence["text"]
        assert 0 < sum(sentence["attention"].values()) < 1


def test_statistics_agree_with_the_events(demo: dict[str, Any]) -> None:
    stats, events = demo["result"]["stats"], demo["events"]
    kinds = [event["kind"] for event in events]
    assert stats["tokens_kept"] == len(demo["result"]["token_ids"])
    assert stats["refreshes"] == kinds.count("refresh")
    assert stats["retrievals"] == kinds.count("retrieval")
    assert stats["rewrites"] == kinds.count("rewind")
    discarded = sum(event["data"]["discarded_tokens"] for event in events if event["kind"] == "rewind")
    assert stats["tokens_discarded"] == discarded
    assert (kinds[0], kinds[-1]) == ("start", "finish")


def test_the_page_holds_the_run(demo: dict[str, Any]) -> None:
    text = demo["page"].split('id="data">')[1].split("</script>")[0]
    [shown] = json.loads(text)["generations"]
    stats = demo["result"]["stats"]
    assert shown["timeline"]["length"] == stats["tokens_kept"] + stats["tokens_discarded"]
    units = [unit for lane in shown["timeline"]["lanes"] for unit in lane["units"]]
    assert len(units) == stats["refreshes"]
    for lane in shown["timeline"]["lanes"]:
        assert lane["rows"] <= shown["settings"]["memory"][f"{lane['lane']}_units"]


@pytest.mark.slow
def test_many_prompts_are_answered_in_order_and_continued(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    prompts = "".join(f"Write about Person {number}.\n" for number in range(4))
    arguments = ["generate", "--output", str(output), "--max-tokens", "12"]
    done = CliRunner().invoke(app, arguments, input=prompts)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    whole = output.read_bytes()
    assert [json.loads(line)["prompt"] for line in whole.splitlines()] == prompts.splitlines()
    output.write_bytes(whole[: whole.rindex(b"{") + 40])
    again = CliRunner().invoke(app, arguments, input=prompts)
    assert again.exit_code == 0, again.stderr
    assert "3 of 4 prompts are in" in again.stderr
    lines = output.read_bytes().splitlines()
    assert lines[:3] == whole.splitlines()[:3]
    assert [json.loads(line)["prompt"] for line in lines] == prompts.splitlines()


@pytest.mark.slow
def test_a_prompt_goes_in_and_only_its_answer_comes_out() -> None:
    done = ewe("generate", "Write about somebody.", "--max-tokens", "8")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
    assert "Loading" not in done.stdout


def test_the_chat_template_of_the_builtin_model_changes_nothing() -> None:
    """So its prompts may go through it: they become the same tokens."""
    tokenizer = AutoTokenizer.from_pretrained(model_path())
    prompts = [*example_prompts(), *(prompt.text for prompt in load_world().prompts())]
    for prompt in prompts:
        templated = tokenizer.apply_chat_template([{"role": "user", "content": prompt}], tokenize=False)
        assert tokenizer(templated, add_special_tokens=False)["input_ids"] == tokenizer(prompt)["input_ids"]


def in_a_terminal(*arguments: str) -> tuple[int, str]:
    """Exit status of a command whose standard output is a terminal, and what appears there, without colours."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "150", "LINES": "50"}
    command = [sys.executable, "-m", "ewe.cli.main", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        shown = b""
        while piece := _read(ours):
            shown += piece
    os.close(ours)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")
    return process.returncode, "\n".join(line.split("\r")[-1].rstrip() for line in plain.split("\n"))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side is closed
        return b""


@pytest.mark.slow
def test_generate_shows_in_a_terminal_what_the_demo_shows() -> None:
    prompt = example_prompts()[0]
    status, shown = in_a_terminal("generate", prompt)
    assert status == 0
    withdrawn = re.findall(r"^✗ (.+)$", shown, re.M)
    assert withdrawn
    assert re.search(r"^ +↳ .+: “.+”", shown, re.M)
    assert re.search(r"^✓ .+  \(rewritten", shown, re.M)
    assert re.search(r"^\d+ sentences \(\d+ supported.*\), \d+ rewrite", shown, re.M)
    piped = ewe("generate", prompt)
    assert (piped.returncode, piped.stderr) == (0, "")
    assert not any(sentence in piped.stdout for sentence in withdrawn)
    assert not set(piped.stdout) & set("✓✗↳")
