"""`ewe eval world`, `factuality` and `report` from the command line; killed in the middle and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from e2e.llm_rig import loaded
from shared_data import require
from typer.testing import CliRunner

from ewe.cli.eval_run import Judges
from ewe.cli.main import app
from ewe.evaluation import factuality_run

ROOT = Path(__file__).parents[2]
WORLD = ["eval", "world", "--people", "2", "--seeds", "1", "--policies", "plain,ewe", "--max-tokens", "32"]
# Clocks, and what depends on which units other requests had encoded just then.
COSTS = {"tokens_per_s", "seconds_per_claim", "passes", "tokens_per_claim"}
TINY = [
    "--set",
    "retrieval.retriever=bm25",
    "--set",
    "memory.unit_tokens=24",
    "--set",
    "memory.retrieval_units=2",
    "--set",
    "cache.num_blocks=300",
]


def ewe(*arguments: object) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)))


def figures(path: Path) -> list[dict[str, Any]]:
    """The rows of all tables, without their costs."""
    tables = json.loads(path.read_text())["reports"]
    return [{key: value for key, value in row.items() if key not in COSTS} for table in tables for row in table["rows"]]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factuality_run, "load_model", lambda *_, **__: loaded())


@pytest.fixture
def names(tmp_path: Path) -> Path:
    path = tmp_path / "names.txt"
    path.write_text("Ada\nBen\nCleo\n")
    return path


def evaluation(names: Path, *more: object) -> list[object]:
    command = [
        "eval",
        "factuality",
        "--set",
        "biography",
        "--prompts",
        names,
        "--model",
        "some/tiny",
        "--max-tokens",
        6,
    ]
    return [*command, "--policies", "plain,rag", "--datastore", "builtin", "--judge", "builtin", *TINY, *more]


def test_the_world_is_one_more_set_with_an_exact_grader(tmp_path: Path) -> None:
    result = ewe(*WORLD, "--json", tmp_path / "figures.json", "--markdown", "--plot", tmp_path / "bars.png")
    assert result.exit_code == 0, result.output
    plain, best = figures(tmp_path / "figures.json")
    assert (plain["answers"], plain["claims"] > 0, best["retrievals"] > 1) == (2, True, True)
    assert plain["precision"]["value"] < best["precision"]["value"] == 1
    assert best["refuted"]["value"] == 0
    assert "| ewe |" in result.stdout
    assert (tmp_path / "bars.png").exists()


def test_shards_make_the_table_of_the_whole(tmp_path: Path, tiny: None, names: Path) -> None:
    whole = ewe(*evaluation(names, "--json", tmp_path / "whole.json"))
    assert whole.exit_code == 0, whole.output
    files = [tmp_path / f"part{number}.jsonl" for number in (1, 2)]
    for number, file in enumerate(files, 1):
        part = ewe(*evaluation(names, "--shard", f"{number}/2", "--output", file))
        assert part.exit_code == 0, part.output
    assert "1 of 3 prompts answered" in part.stdout
    merged = ewe("eval", "report", *files, "--json", tmp_path / "merged.json", "--markdown")
    assert merged.exit_code == 0, merged.output
    assert figures(tmp_path / "merged.json") == figures(tmp_path / "whole.json")
    assert "biography: 3 prompts, K = 43;" in merged.stdout


def test_answers_of_an_earlier_run_are_graded_anew(
    tmp_path: Path, tiny: None, names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    assert ewe(*evaluation(names, "--output", before)).exit_code == 0
    with monkeypatch.context() as without:
        without.setattr(factuality_run, "load_model", lambda *_, **__: pytest.fail("an answer was written"))
        again = ewe(*evaluation(names, "--k", 2, "--answers", before, "--output", after, "--shard", "1/2"))
        assert again.exit_code == 0, again.output
        refused = ewe(*evaluation(names, "--temperature", 1, "--answers", before))
    assert "K = 2" in again.stdout
    kept = [line for line in after.read_text().splitlines() if line.startswith('{"answer"')]
    assert kept == [line for line in before.read_text().splitlines() if line in kept]
    assert len(kept) == 4
    assert (refused.exit_code, "sampling.temperature was 0.0, is now 1.0. --answers" in refused.stderr) == (2, True)
    (tmp_path / "others.txt").write_text("Dora\n")
    refused = ewe(*evaluation(tmp_path / "others.txt", "--answers", before))
    assert "holds no answers to these prompts" in refused.stderr


def test_a_file_of_other_settings_is_refused_before_anything_is_loaded(
    tmp_path: Path, tiny: None, names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.jsonl"
    assert ewe(*evaluation(names, "--output", file)).exit_code == 0
    monkeypatch.setattr(Judges, "open_grader", lambda *_: pytest.fail("a judge was loaded"))
    result = ewe(*evaluation(names, "--k", 2, "--output", file))
    assert (result.exit_code, "set.k was 43, is now 2.0" in result.stderr) == (2, True), result.output


def test_a_sweep_and_another_baseline(tmp_path: Path, tiny: None, names: Path) -> None:
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("axis: units\nsettings: {policy: rag}\npoints:\n  1: {memory.retrieval_units: 1}\n  2: {}\n")
    command = [item for item in evaluation(names) if item not in ("--policies", "plain,rag")]
    result = ewe(*command, "--sweep", sweep, "--baseline", "2", "--plot", tmp_path / "lines.png", "--markdown")
    assert result.exit_code == 0, result.output
    assert "| units |" in result.stdout
    assert "against 2;" in result.stdout or "against 2\n" in result.stdout
    assert (tmp_path / "lines.png").exists()


WRONG = {
    "no file": (["--set", "fava"], "the prompts of fava are not part of this package"),
    "two sets": (["--set", "good.txt", "--set", "fava"], "name one prompt set with --set"),
    "missing file": (["--set", "nowhere.txt"], "cannot read prompts from nowhere.txt"),
    "bad line": (["--set", "bad.jsonl"], "bad.jsonl:1: expected an object"),
    "conversation": (["--set", "talk.jsonl"], "talk.jsonl: '0' is a conversation"),
    "empty prompt": (["--set", "empty.jsonl"], "prompt '1' is empty"),
    "judge": (["--set", "good.txt", "--judge", ""], "name who grades the answers with --judge"),
    "policy": (["--set", "good.txt", "--policies", "plane"], "did you mean plain"),
    "both": (["--set", "good.txt", "--sweep", "good.txt", "--policies", "plain"], "not both"),
    "shard": (["--set", "good.txt", "--shard", "3/2"], "--shard must be i/n"),
    "baseline": (["--set", "good.txt", "--policies", "rag", "--baseline", "plain"], "unknown baseline 'plain'"),
    "same judge": (["--set", "good.txt", "--policies", "ewe", "--verifier", "claims"], "choose another --judge"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(factuality_run, "load_model", lambda *_, **__: pytest.fail("a model was loaded"))
    Path("good.txt").write_text("Who is Ada?\n")
    Path("bad.jsonl").write_text('{"question": "Who?"}\n')
    Path("talk.jsonl").write_text('{"messages": [{"role": "user", "content": "Who?"}]}\n')
    Path("empty.jsonl").write_text('{"prompt": "Who?"}\n{"prompt": " "}\n')
    arguments, reason = WRONG[case]
    told = {"--judge": "builtin", "--datastore": "builtin", "--output": "out.jsonl"}
    rest = [item for pair in told.items() if pair[0] not in arguments for item in pair]
    result = ewe("eval", "factuality", *arguments, *rest)
    assert result.exit_code == 2, result.output
    assert reason in result.stderr
    assert not Path("out.jsonl").exists()


def test_a_file_of_something_else_is_no_report(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"settings": {}}\n')
    result = ewe("eval", "report", other)
    assert result.exit_code == 2
    assert "holds no answer of" in result.stderr
    assert "cannot read" in ewe("eval", "report", tmp_path / "nowhere.jsonl").stderr


def test_the_public_prompt_files_are_read(tmp_path: Path, tiny: None) -> None:
    path = require("factscore/prompt_entities.txt")
    result = ewe(*evaluation(path, "--limit", 2, "--json", tmp_path / "figures.json"))
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "figures.json").read_text())["reports"][0]["k"] == 43
    longfact = require("longfact/objects_250_proxy.jsonl")
    command = evaluation(longfact, "--limit", 2)
    command[command.index("biography")] = "longfact"
    assert ewe(*command).exit_code == 0


@pytest.mark.slow
def test_killed_in_the_middle_and_resumed_the_table_is_the_same(tmp_path: Path) -> None:
    world = [*WORLD[:2], "--people", "6", "--seeds", "2", *WORLD[6:]]
    whole = ewe(*world, "--json", tmp_path / "whole.json")
    assert whole.exit_code == 0, whole.output
    output = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "ewe.cli.main", *world, "--output", str(output)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'kernels'}"}
    for lines in (4, 8, 12):
        child = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while child.poll() is None and (not output.exists() or output.read_bytes().count(b"\n") < lines):
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    assert 12 <= output.read_bytes().count(b"\n") < 49
    resumed = ewe(*world, "--output", output, "--json", tmp_path / "resumed.json")
    assert resumed.exit_code == 0, resumed.output
    assert figures(tmp_path / "resumed.json") == figures(tmp_path / "whole.json")
    assert output.read_bytes().count(b"\n") == 49  # settings, and an answer and a grade of 12 prompts by 2 systems
