"""`ewe batch`: every request has one answer in the file of results, whenever the run was killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from script_rig import scripted_llm
from typer.testing import CliRunner, Result

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.cli.main import app
from ewe.config import Config
from ewe.server.router.ray_data import BatchAnswerer
from ewe.server.settings import ServerSettings

CHAT = "/v1/chat/completions"


def requests_file(folder: Path, names: Sequence[str], **fields: Any) -> Path:
    path = folder / "requests.jsonl"
    bodies = [{"messages": [{"role": "user", "content": f"say {name}"}], "max_tokens": 20, **fields} for name in names]
    lines = [
        {"custom_id": name, "method": "POST", "url": CHAT, "body": body}
        for name, body in zip(names, bodies, strict=True)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def names_in(path: Path) -> list[str]:
    return [json.loads(line)["custom_id"] for line in path.read_text().splitlines()]


def echo(prompt: str, units: int) -> str:
    return prompt.rpartition("<|assistant|>")[0].rpartition("|>")[2]


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    opened: list[Any] = []

    with scripted_llm("none", echo, {"policy": "plain"}) as llm:
        llm.close = lambda: None  # type: ignore[method-assign]  # each run would close it; the fixture does

        def open_scripted(config: Any) -> Any:
            opened.append(config)
            return llm

        monkeypatch.setattr("ewe.cli.batch_run.open_llm", open_scripted)

        def run(*arguments: object) -> Result:
            opened.clear()
            result = CliRunner().invoke(app, ["batch", *map(str, arguments)])
            result.opened = len(opened)  # type: ignore[attr-defined]
            return result

        yield run
        del llm.close


def test_results_go_beside_the_requests_and_a_second_run_goes_on(batch: Any, tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(20)]
    path = requests_file(tmp_path, names)
    results = tmp_path / "requests.results.jsonl"
    result = batch(path)
    assert (result.exit_code, result.opened) == (0, 1), result.output
    assert "20 of 20 requests are answered" in result.stderr
    assert sorted(names_in(results)) == sorted(names)
    whole = results.read_bytes()
    first = json.loads(whole.splitlines()[0])
    assert first["response"]["body"]["choices"][0]["message"]["content"] == f"say {first['custom_id']}"
    assert batch(path).opened == 0, "nothing is left to ask"
    lines = whole.splitlines(keepends=True)
    kept = b"".join(lines[:7])
    results.write_bytes(kept + lines[7][:50])
    result = batch(path, "--max-concurrency", 1)
    assert "7 of 20 requests are answered already" in result.stderr
    assert results.read_bytes().startswith(kept)
    assert sorted(names_in(results)) == sorted(names)


def test_errors_are_answers_too(batch: Any, tmp_path: Path) -> None:
    path = requests_file(tmp_path, ["a", "b"], temperature=-1)
    result = batch(path, "--output", tmp_path / "out.jsonl")
    assert result.exit_code == 1
    assert "0 of 2 requests are answered" in result.stderr
    assert "2 with an error" in result.stderr
    assert [json.loads(line)["response"]["status_code"] for line in (tmp_path / "out.jsonl").open()] == [400, 400]


def test_the_servers_limits_and_keys(batch: Any, tmp_path: Path) -> None:
    """Limits hold as on the server; keys, its port and its own batches are not this run's business."""
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"server: {{api_key: secret, max_tokens: 10, batch_folder: {tmp_path / 'kept'}}}\n")
    result = batch(requests_file(tmp_path, ["a"]), "--config", settings)
    assert result.exit_code == 1, result.output
    told = json.loads((tmp_path / "requests.results.jsonl").read_text())["response"]
    assert (told["status_code"], told["body"]["error"]["param"]) == (400, "max_tokens")
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--policy", "rag"], 'policy was "plain", is now "rag"'),
        (["--set", "server.max_n=2"], "server.max_n was 16, is now 2"),
    ],
)
def test_a_run_with_other_settings_is_refused(batch: Any, tmp_path: Path, more: list[str], told: str) -> None:
    path = requests_file(tmp_path, ["a"])
    assert batch(path, "--policy", "plain").exit_code == 0
    before = (tmp_path / "requests.results.jsonl").read_bytes()
    result = batch(path, "--policy", "plain", *more)
    assert (result.exit_code, result.opened) == (2, 0)
    assert told in result.stderr
    assert (tmp_path / "requests.results.jsonl").read_bytes() == before


def test_other_requests_are_refused(batch: Any, tmp_path: Path) -> None:
    path = requests_file(tmp_path, ["a"])
    assert batch(path).exit_code == 0
    result = batch(requests_file(tmp_path, ["a", "b"]))
    assert result.exit_code == 2
    assert "requests was" in result.stderr
    (tmp_path / "requests.results.jsonl.meta.json").unlink()
    assert "there is no requests.results.jsonl.meta.json" in batch(path).stderr


def test_bad_files_are_refused_before_an_engine_starts(batch: Any, tmp_path: Path) -> None:
    path = requests_file(tmp_path, ["a", "a", "b", ""])
    result = batch(path)
    assert (result.exit_code, result.opened) == (2, 0)
    assert "line 2: custom_id: 'a' stands on an earlier line" in result.stderr
    assert "line 4: custom_id" in result.stderr
    result = batch(requests_file(tmp_path, ["a"]), "--output", path)
    assert result.exit_code == 2
    assert "is no result of a batch" in result.stderr
    assert names_in(path) == ["a"]


@pytest.mark.parametrize("as_json", [True, False])
def test_rows_of_ray_data_are_answered(as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    bodies: list[Any] = [{"messages": [{"role": "user", "content": name}], "max_tokens": 20} for name in "abcdef"]
    bodies[2]["temperature"] = -1.0
    rows = [
        {"custom_id": f"n{number}", "method": "POST", "url": CHAT, "body": json.dumps(body) if as_json else body}
        for number, body in enumerate(bodies)
    ]
    with scripted_llm("none", echo, {"policy": "plain"}) as llm:
        monkeypatch.setattr("ewe.llm.LLM", lambda config: llm)
        answerer = BatchAnswerer(Config(), ServerSettings(), 2)
        for _ in range(2):
            found = pyarrow.table(answerer(pyarrow.Table.from_pylist(rows))).to_pylist()
            assert [row["custom_id"] for row in found] == [row["custom_id"] for row in rows]
            assert [row["status_code"] for row in found] == [200, 200, 400, 200, 200, 200]
            told = json.loads(found[5]["body"])["choices"][0]["message"]["content"]
            assert (told, bool(found[5]["request_id"])) == ("f", True)


def test_ray_that_is_missing_is_named(batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.data", None)
    result = batch(requests_file(tmp_path, ["a"]), "--ray", 2)
    assert (result.exit_code, result.opened) == (2, 0)
    assert "pip install 'ewe-engine[ray]'" in result.stderr


def killed_again_and_again(folder: Path, count: int, *options: str) -> list[int]:
    """Runs `ewe batch` on the built-in model, kills it with -9 three times; how much was answered at each kill."""
    names = [f"n{number}" for number in range(count)]
    path, results = requests_file(folder, names, max_tokens=2), folder / "requests.results.jsonl"
    command = [sys.executable, "-m", "ewe.cli.main", "batch", str(path), "--policy", "plain", *options]
    answered = []
    for kill in (1, 2, 3, None):
        with subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE) as child:
            while kill is not None and child.poll() is None:
                if results.exists() and results.read_bytes().count(b"\n") >= kill * count // 4:
                    time.sleep(random.Random(kill).random() / 20)  # in the middle of whatever it does then
                    child.kill()
                    answered.append(results.read_bytes().count(b"\n"))
                    break
                time.sleep(count / 40_000)  # long files take long to count
            assert child.wait() == (0 if kill is None else -9), child.stderr and child.stderr.read()
    assert sorted(names_in(results)) == sorted(names)
    return answered


@pytest.mark.slow
def test_killed_three_times_every_request_is_answered_once(tmp_path: Path) -> None:
    assert len(killed_again_and_again(tmp_path, 300)) == 3


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_with_ray_too(tmp_path: Path) -> None:
    assert len(killed_again_and_again(tmp_path, 300, "--ray", "2", "--max-concurrency", "4")) == 3


@pytest.mark.slow
def test_ten_thousand_requests_killed_three_times(tmp_path: Path) -> None:
    answered = killed_again_and_again(tmp_path, 10_000)
    print(f"answered at the kills: {answered}")
