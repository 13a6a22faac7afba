"""`ewe index` as people use it, and with processes that are killed while they work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ewe.cli.main import app
from ewe.errors import DatastoreError
from ewe.retrieval.store import PassageStore
from ewe.types import Passage

_DEADLINE_S = 120


def ewe(command: str, *arguments: object) -> Result:
    """`ewe index`, with the one retriever that is always there."""
    plain = ["--set", "retrieval.retriever=bm25"] if command in ("build", "add", "search") else []
    return CliRunner().invoke(app, ["index", command, *map(str, arguments), *plain])


def started(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ewe.cli.main", "index", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def content(path: Path) -> list[tuple[int, Passage]]:
    with PassageStore.open(path) as store:
        return list(store.scan())


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Rome\n\nRome lies on the Tiber. It is old.\n")
    (folder / "b.html").write_text("<title>Oslo</title><p>Oslo lies on a fjord.")
    rows = [{"key": f"k{i}", "body": f"Town {i} has {i * 7} wells.", "from": "wells.example"} for i in range(5)]
    (folder / "c.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "elsewhere").symlink_to(tmp_path)
    return folder


def test_build_search_info_remove_add_verify(documents: Path, tmp_path: Path) -> None:
    store = tmp_path / "ds"
    (tmp_path / "sources.yaml").write_text("wells.example: 0.25\n")
    columns = ["--column", "id=key", "--column", "text=body", "--column", "source=from"]
    built = ewe("build", documents, "--out", store, *columns, "--veracity", tmp_path / "sources.yaml")
    assert built.exit_code == 0, built.output
    assert f"7 passages from 3 files are in {store}" in built.stdout
    assert "searched by BM25" in built.stdout
    assert f"1 file of unknown kind left out: {documents / 'picture.png'}; known are .txt, " in built.stdout
    assert f"1 link to a folder or to nothing left out: {documents / 'elsewhere'}; name a folder" in built.stdout

    found = ewe("search", store, "Where does Oslo lie?", "-k", 1, "--json")
    [result] = json.loads(found.stdout)
    assert (result["title"], result["text"]) == ("Oslo", "Oslo lies on a fjord.")
    shown = ewe("search", store, "wells of town 3", "-k", 1).stdout
    assert "Town 3 has 21 wells." in shown
    assert "k3, veracity 0.25" in shown

    info = json.loads(ewe("info", store, "--json").stdout)
    assert info["indexes"] == {"bm25": "bm25, fresh"}
    assert (info["passages"], info["being_built"], info["cut"]["tokens"]) == (7, False, 200)
    assert info["largest_sources"]["wells.example"] == 5
    assert "passages: 7" in ewe("info", store).stdout

    assert ewe("remove", store, "k3", "--source", str(documents / "a.md")).stdout == "2 passages removed\n"
    assert ewe("remove", store, "k4").stdout == "1 passage removed\n"
    gone = ewe("remove", store, "k3")
    assert (gone.exit_code, gone.stdout) == (1, "0 passages removed\n")
    (documents / "b.html").write_text("<title>Oslo</title><p>Oslo lies at the end of a fjord.")
    added = ewe("add", store, documents, *columns, "--veracity", tmp_path / "sources.yaml")
    assert added.exit_code == 0, added.output
    assert "(2 were there already)" in added.stdout
    assert "end of a fjord" in ewe("search", store, "fjord").stdout
    for name in ("check", "verify"):  # the name that earlier versions had
        checked = ewe(name, store)
        assert (checked.exit_code, checked.stdout.split(":")[1][:12]) == (0, " 4 passages,")


def test_bad_input_is_reported_and_the_rest_is_kept(documents: Path, tmp_path: Path) -> None:
    (documents / "d.txt").write_bytes(b"\x00\x01\x02" * 100)
    (documents / "e.txt").write_bytes("Müller".encode("latin-1"))
    (documents / "f.csv").write_text("a,b\n1,2\n")
    (documents / "g.pdf").write_text("no PDF")
    built = ewe("build", documents / "*.*", "--out", tmp_path / "ds", "--column", "text=body")
    assert built.exit_code == 1
    assert "7 passages from 7 files" in built.stdout
    for name, why in (
        ("d.txt", "it is no text (binary data)"),
        ("e.txt", "it is not UTF-8"),
        ("f.csv", "it has no column 'body'; it has 'a', 'b'"),
        ("g.pdf", "it is damaged or no PDF"),
    ):
        assert f"ewe: {documents / name}: {why}" in built.stderr
    assert str(documents / "d.txt") in ewe("info", tmp_path / "ds").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "missing.txt", "--out", "ds"], "missing.txt does not exist"),
        (["build", ".", "--out", "ds", "--column", "body=x"], "is not of the form FIELD=COLUMN"),
        (["build", ".", "--out", "ds", "--tokens", "3"], "at least 8 tokens"),
        (["build", ".", "--out", "ds", "--encoding", "latin-99"], "unknown encoding"),
        (["search", "ds", "x"], "the datastore ds does not exist"),
        (["info", "ds"], "ds holds no datastore"),
        (["check", "ds"], "ds holds no datastore"),
        (["add", "ds", "."], "ds holds no datastore"),
        (["remove", "ds", "x"], "ds holds no datastore"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = ewe(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "ds").exists()


def test_damage_is_found_and_named(documents: Path, tmp_path: Path) -> None:
    ewe("build", documents, "--out", tmp_path / "ds", "--column", "text=body")
    path = tmp_path / "ds" / "passages.sqlite"
    path.write_bytes(path.read_bytes().replace(b"Tiber", b"Rhine"))
    result = ewe("check", tmp_path / "ds")
    assert result.exit_code == 1
    assert f"{path} is damaged at row" in result.stdout
    path.write_bytes(path.read_bytes()[:9000])
    result = ewe("search", tmp_path / "ds", "Rome")
    assert (result.exit_code, "it was cut short" in result.stderr) == (2, True)


def test_what_can_be_is_repaired(documents: Path, tmp_path: Path) -> None:
    store, columns = tmp_path / "ds", ["--column", "text=body"]
    ewe("build", documents, "--out", store, *columns)
    [hit] = json.loads(ewe("search", store, "Tiber", "--json").stdout)
    path = store / "passages.sqlite"
    path.write_bytes(path.read_bytes().replace(b"Tiber", b"Rhine"))
    [weights] = store.glob("indexes/bm25/data-*/weights.npy")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    result = ewe("check", store, "--repair")
    assert result.exit_code == 0, result.output
    assert f"{path} is damaged at row" in result.stdout
    assert "weights.npy is damaged" in result.stdout
    assert f"{store}: 6 passages, generation" in result.stdout
    assert "is taken out" in result.stderr
    assert "a.md is read again when it is added again: ewe index add" in result.stderr
    assert "bm25: the index is made again at the next search" in result.stderr
    assert "Rhine" not in ewe("search", store, "Rome").stdout
    assert ewe("add", store, documents, *columns).exit_code == 0
    assert json.loads(ewe("search", store, "Tiber", "--json").stdout) == [hit]
    assert ewe("check", store).exit_code == 0
    assert ewe("check", store, "--repair").stderr == ""


def test_a_terminal_is_not_steered_by_passages(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Good \x1b[2Jtext of Rome.")
    ewe("build", tmp_path / "a.txt", "--out", tmp_path / "ds")
    assert "\x1b" not in ewe("search", tmp_path / "ds", "Rome").stdout


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Waits until something happened; fails if the process ended before."""
    end = time.monotonic() + _DEADLINE_S
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)


def holds(path: Path, least: int) -> Callable[[], bool]:
    def look() -> bool:
        try:
            with PassageStore.open(path) as store:
                return len(store) >= least
        except DatastoreError:
            return False

    return look


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.communicate()


def many_rows(path: Path, count: int, word: str) -> Path:
    with path.open("w") as file:
        for i in range(count):
            text = (
                f"The {word} of house {i % (count - count // 10)} was built by mason {i % 97} in {1000 + i % 900}. " * 5
            )
            file.write(json.dumps({"id": f"{word}{i}", "text": text}) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "kills"), [(1, 2), (2, 1)])
def test_a_build_that_is_killed_ends_as_one_that_is_not(tmp_path: Path, workers: int, kills: int) -> None:
    rows = many_rows(tmp_path / "rows.jsonl", 4000, "roof")
    arguments = ["build", rows, "--no-index", "--workers", workers, "--out", tmp_path / "ds"]
    assert ewe("build", rows, "--no-index", "--out", tmp_path / "whole").exit_code == 0
    committed = 1
    for _ in range(kills):
        process = started(*arguments)
        wait_for(holds(tmp_path / "ds", committed), process)
        assert session_members(process.pid) == 1 or workers > 1
        kill(process)
        before = content(tmp_path / "ds")
        assert committed <= len(before) < 4000
        committed = len(before) + 1
    wait_until_alone(process)
    assert "was interrupted" in ewe("add", tmp_path / "ds", rows).stderr
    ended = ewe(*arguments)
    assert ended.exit_code == 0, ended.output
    assert content(tmp_path / "ds")[: len(before)] == before  # what was acknowledged is still there
    assert content(tmp_path / "ds") == content(tmp_path / "whole")
    assert ewe("verify", tmp_path / "ds").exit_code == 0


def test_an_add_that_is_killed_loses_nothing_and_goes_on(tmp_path: Path) -> None:
    first = many_rows(tmp_path / "first.jsonl", 50, "door")
    more = many_rows(tmp_path / "more.jsonl", 3000, "roof")
    for name in ("ds", "whole"):
        assert ewe("build", first, "--no-index", "--out", tmp_path / name).exit_code == 0
    there = content(tmp_path / "ds")
    assert ewe("add", tmp_path / "whole", more, "--no-index").exit_code == 0
    process = started("add", tmp_path / "ds", more, "--no-index")
    wait_for(holds(tmp_path / "ds", len(there) + 1), process)
    kill(process)
    torn = content(tmp_path / "ds")
    assert torn[: len(there)] == there
    assert len(there) < len(torn) < len(content(tmp_path / "whole"))
    assert json.loads(ewe("info", tmp_path / "ds", "--json").stdout)["unfinished_files"] == [str(more)]
    assert ewe("verify", tmp_path / "ds").exit_code == 0
    assert ewe("add", tmp_path / "ds", more, "--no-index").exit_code == 0
    assert content(tmp_path / "ds") == content(tmp_path / "whole")


def wait_until_alone(process: subprocess.Popen[str]) -> None:
    """Fails if workers outlive the process that started them."""
    end = time.monotonic() + _DEADLINE_S
    while session_members(process.pid):
        assert time.monotonic() < end, "workers outlived the process that started them"
        time.sleep(0.01)


def session_members(leader: int) -> int:
    """How many processes of a session are alive, from /proc."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            count += fields[3] == str(leader) and fields[0] != "Z"
    return count


def test_a_full_disk_is_said_and_the_build_goes_on_later(tmp_path: Path) -> None:
    rows = many_rows(tmp_path / "rows.jsonl", 2000, "roof")
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000));"
        "from ewe.cli.main import main; main()"
    )
    command = [sys.executable, "-c", limited, "index", "build", str(rows), "--out", str(tmp_path / "ds")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 2, done.stderr
    assert "passages.sqlite: the disk" in done.stderr
    assert "what was committed is kept" in done.stderr
    assert ewe("build", rows, "--no-index", "--out", tmp_path / "ds").exit_code == 0
    assert ewe("build", rows, "--no-index", "--out", tmp_path / "whole").exit_code == 0
    assert content(tmp_path / "ds") == content(tmp_path / "whole")
