"""`ewe memory` as people use it, from adding to scrubbing, with an encoder that needs no package."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ewe.cli.main import app
from ewe.errors import DatastoreError, JudgeError
from ewe.longterm.records import Memory, Scope
from ewe.longterm.store import Change, MemoryStore
from tests.unit.longterm_parts import WordEncoder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "memories"


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> WordEncoder:
    made = WordEncoder(dimension=200)
    monkeypatch.setattr("ewe.longterm.commands.memory_app._encoder", lambda name: made)
    return made


def ewe(command: str, *arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, ["memory", command, *map(str, arguments)], input=text)


def done(command: str, *arguments: object, text: str | None = None) -> str:
    result = ewe(command, *arguments, text=text)
    assert result.exit_code == 0, result.output
    return result.stdout


def found(*arguments: object) -> list[tuple[str, str]]:
    hits = json.loads(done("search", *arguments, "--json"))
    return [(hit["memory"]["content"], hit["memory"]["scope"]["user"]) for hit in hits]


def test_users_see_their_own_and_the_shared_memories(store: Path) -> None:
    done("add", store, "The red bridge was opened in 1932", "--id", "bridge")
    done("add", store, "Ann likes red wine", "--user", "ann", "--source", "user:ann", "--reliability", "0.8")
    done("add", store, "Bob likes red beer", "--user", "bob", "--agent", "helper")
    bridge, wine, beer = ("The red bridge was opened in 1932", ""), ("Ann likes red wine", "ann"), "Bob likes red beer"
    assert set(found(store, "red", "--user", "ann")) == {bridge, wine}
    assert set(found(store, "red")) == {bridge}
    assert set(found(store, "red", "--user", "bob")) == {bridge}
    assert set(found(store, "red", "--user", "bob", "--agent", "helper")) == {bridge, (beer, "bob")}
    shown = done("search", store, "red bridge", "--user", "ann", "-k", "1")
    assert "1. The red bridge" in shown
    assert all(part in shown for part in ("shared", "veracity 0.50", "searched by BM25"))
    assert "nothing found" in done("search", store, "submarine")


def test_lines_of_standard_input_become_memories(store: Path) -> None:
    ids = done("add", store, "-", "--user", "ann", "--veracity", "0.9", text="tea\n\n  wine \n").split()
    with MemoryStore.open(store) as opened:
        memories = [opened.get(Scope("ann"), memory_id) for memory_id in ids]
    assert [memory.content for memory in memories] == ["tea", "wine"]
    assert memories[0].uncertainty == pytest.approx(0.2)
    assert ewe("add", store, "-", "--id", "x", text="tea").exit_code == 2


@pytest.mark.parametrize(
    ("options", "reliability"),
    [((), 0.7), (("--source", "document:x"), 0.9), (("--source", "model"), 0.5), (("--reliability", "0.2"), 0.2)],
)
def test_a_source_is_believed_by_its_kind(store: Path, options: tuple[str, ...], reliability: float) -> None:
    memory_id = done("add", store, "Tea grows in Assam", *options).strip()
    with MemoryStore.open(store) as opened:
        memory = opened.get(Scope(), memory_id)
    assert (memory.source.reliability, memory.veracity) == (reliability, pytest.approx(reliability))


def test_with_a_judge_contradictions_are_found_while_adding(store: Path) -> None:
    options = ("--user", "ann", "--source", "user:ann", "--reliability", "0.7", "--judge", "builtin")
    lines = "The bridge of Lyon was opened in 1923.\nThe bridge of Lyon was opened in 1932.\n"
    told = ewe("add", store, "-", *options, text=lines)
    first, second = told.stdout.split()
    assert (told.exit_code, f"{second} contradicts {first}" in told.stderr) == (0, True)
    assert f"contradicts {second}" in done("show", store, first, "--user", "ann")
    assert done("add", store, "The bridge of Lyon was opened in 1923.", *options).split() == [first]
    for more in (("--id", "x"), ("--veracity", "0.5")):
        refused = ewe("add", store, "tea", *options, *more)
        assert (refused.exit_code, "with --judge" in " ".join(refused.stderr.split())) == (2, True)


def test_show_tells_a_memory_and_its_history(store: Path) -> None:
    done("add", store, "tea\x1b[2J [bold]", "--id", "x", "--user", "ann", "--source", "user:ann")
    with MemoryStore.open(store, read_only=False) as opened:
        change = Change(veracity=0.9, content="coffee", contradicts=("y",), correct=1)
        opened.revise(Scope("ann"), "x", change, at=86400.0, reason="said", evidence=["heard \x1b"])
    shown = done("show", store, "x", "--user", "ann")
    assert "\x1b" not in shown
    for part in ("coffee", "user ann", "from user:ann", "1 correct, 0 incorrect", "contradicts y", "tea�[2J [bold]"):
        assert part in shown
    assert "2. 1970-01-02 00:00:00 said, veracity 0.50 -> 0.90" in shown
    values = json.loads(done("show", store, "x", "--user", "ann", "--json"))
    assert [revision["reason"] for revision in values["revisions"]] == ["added", "said"]
    hidden = ewe("show", store, "x", "--user", "bob")
    assert (hidden.exit_code, "no memory 'x' here" in hidden.stderr) == (2, True)


def test_show_writes_a_page_with_what_contradicts_a_memory_in_sight(store: Path, tmp_path: Path) -> None:
    with MemoryStore.create(store) as opened:
        opened.add([Memory("x", "tea", scope=Scope("ann", "helper"), contradicts=("y", "z"))])
        opened.add([Memory("y", "coffee", scope=Scope("ann")), Memory("z", "bobs", scope=Scope("bob"))])
    page = tmp_path / "x.html"
    told = ewe("show", store, "x", "--user", "ann", "--agent", "helper", "--html", page)
    assert (told.exit_code, f"the page is in {page}" in told.stderr, "tea" in told.stdout) == (0, True, True)
    text = page.read_text()
    data = json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])
    assert [one["memory"] and one["memory"]["content"] for one in data["contradictions"]] == ["coffee", None]
    assert [revision["reason"] for revision in data["revisions"]] == ["added"]
    assert "bobs" not in text
    assert ewe("show", store, "x", "--html", tmp_path / "nowhere" / "x.html").exit_code == 2
    assert ewe("show", store, "x", "--user", "bob", "--html", tmp_path / "bob.html").exit_code == 2
    assert not (tmp_path / "bob.html").exists()


def test_deleting_is_for_good_and_logged(store: Path, tmp_path: Path) -> None:
    done("add", store, "zqxsecret", "--id", "x", "--user", "ann")
    done("add", store, "tea", "--id", "y", "--user", "ann")
    done("export", store, tmp_path / "old.jsonl", "--user", "ann")
    assert ewe("delete", store, "--user", "ann").exit_code == 2
    assert "0 memories deleted" in ewe("delete", store, "x").stdout
    missing = ewe("delete", store, "x", "z", "--user", "ann", "--reason", "privacy")
    assert (missing.exit_code, missing.stdout) == (1, "1 memories deleted\n")
    assert b"zqxsecret" not in b"".join(path.read_bytes() for path in store.iterdir())
    with MemoryStore.open(store) as opened:
        assert [(entry.memory_id, entry.reason) for entry in opened.deletions()] == [("x", "privacy")]
    assert "0 memories added, 1 were there, 1 had been deleted here" in done("import", store, tmp_path / "old.jsonl")
    assert "1 memories deleted" in done("delete", store, "--everything", "--user", "ann", "--no-scrub")
    assert json.loads(done("stats", store, "--json"))["deleted_and_not_scrubbed"] == 1
    done("scrub", store)
    assert "deleted and not scrubbed: 0" in done("stats", store)


def test_everything_of_a_user_goes_with_every_agent_and_is_told(store: Path) -> None:
    done("add", store, "zqxone", "--user", "ann")
    done("add", store, "zqxtwo", "--user", "ann", "--agent", "helper")
    done("add", store, "tea", "--user", "bob")
    assert done("list", store) == "user ann: 1\nuser ann, agent helper: 1\nuser bob: 1\n"
    listed = json.loads(done("list", store, "--user", "ann", "--json"))
    assert [memory["content"] for memory in listed["memories"]] == ["zqxone", "zqxtwo"]
    told = done("delete", store, "--user", "ann", "--everything")
    assert "user ann, agent helper: 1 memories, 1 revisions, 1 words, 0 vectors, 0 entries of the log" in told
    assert "2 memories deleted" in told
    assert done("list", store) == "user bob: 1\n"
    assert b"zqx" not in b"".join(path.read_bytes() for path in store.iterdir())


def test_export_import_check(store: Path, tmp_path: Path) -> None:
    done("add", store, "tea", "--id", "x", "--user", "ann")
    done("add", store, "wine", "--id", "x", "--user", "bob")
    assert "1 memories exported" in done("export", store, tmp_path / "ann.jsonl", "--user", "ann")
    assert "2 memories exported" in done("export", store, tmp_path / "all.jsonl", "--all")
    copy = tmp_path / "copy"
    done("add", copy, "coffee", "--id", "x", "--user", "bob")
    conflict = ewe("import", copy, tmp_path / "all.jsonl")
    assert (conflict.exit_code, "1 memories added" in conflict.stdout, "another memory" in conflict.stderr) == (
        1,
        True,
        True,
    )
    assert "2 memories, nothing is damaged" in done("check", copy)
    with MemoryStore.open(copy, read_only=False) as opened:
        opened._session.query("UPDATE memories SET veracity = 0.123")
    for name in ("check", "verify"):  # the name that earlier versions had
        damaged = ewe(name, copy)
        assert (damaged.exit_code, "another veracity" in damaged.stdout) == (1, True)


def test_what_can_be_is_repaired(store: Path) -> None:
    done("add", store, "tea of Ceylon", "--id", "x", "--user", "ann")
    done("add", store, "wine", "--id", "y", "--user", "ann")
    with MemoryStore.open(store, read_only=False) as opened:
        opened._session.query("DELETE FROM postings WHERE memory = 1")
    assert "nothing found" in done("search", store, "Ceylon", "--user", "ann")
    assert ewe("check", store).exit_code == 1
    repaired = ewe("check", store, "--repair")
    assert (repaired.exit_code, "is counted as a word wrongly" in repaired.stdout) == (0, True)
    assert "index of words is made again" in repaired.stderr
    assert "tea of Ceylon" in done("search", store, "Ceylon", "--user", "ann")
    with MemoryStore.open(store, read_only=False) as opened:
        opened._session.query("UPDATE memories SET content = 'tea of China' WHERE number = 1")
    repaired = ewe("check", store, "--repair")
    assert (repaired.exit_code, "1 problem left" in repaired.stderr) == (1, True)
    assert "(memory 'x'), which is not what was written" in ewe("search", store, "tea", "--user", "ann").stderr
    done("delete", store, "x", "--user", "ann")
    assert "1 memories, nothing is damaged" in done("check", store)


def test_embedded_memories_are_found_by_meaning_too(store: Path, encoder: WordEncoder) -> None:
    done("add", store, "tea in Lyon", "--user", "ann")
    assert "1 memories embedded" in done("embed", store)
    assert "0 memories embedded" in done("embed", store)
    assert "1 memories embedded" in done("embed", store, "--replace")
    assert "hybrid: BM25 + words" in done("search", store, "Lyon", "--user", "ann")
    assert "searched by BM25" in done("search", store, "Lyon", "--user", "ann", "--words")


def test_a_review_moves_a_memory_by_trusted_passages(store: Path, tmp_path: Path) -> None:
    passages = tmp_path / "trusted.jsonl"
    passages.write_text(json.dumps({"id": "p", "text": "The bridge of Lyon was opened in 1932."}) + "\n")
    wrong = "The bridge of Lyon was opened in 1923."
    with MemoryStore.create(store) as opened:  # long ago
        opened.add([Memory("x", wrong), Memory("x", wrong, scope=Scope("ann"))])
    options = ("--datastore", passages, "--judge", "builtin")
    shown = done("review", store, *options)
    assert "1 memory reviewed: 1 believed less" in shown
    assert all(part in shown for part in ("The bridge of Lyon was opened in 1923. (x)", "0.50 -> 0.", "passage:p"))
    [change] = json.loads(done("show", store, "x", "--json"))["revisions"][1:]
    assert change["veracity_after"] < change["veracity_before"] == 0.5
    assert len(json.loads(done("show", store, "x", "--user", "ann", "--json"))["revisions"]) == 1
    told = json.loads(done("review", store, *options, "--all", "--budget", 5, "--json"))
    assert told["counts"] == {"believed less": 1}
    [one] = told["reviewed"]
    assert (one["memory_id"], one["scope"]["user"], one["revision"]["evidence"]) == ("x", "ann", ["passage:p"])
    assert len(json.loads(done("show", store, "x", "--user", "ann", "--json"))["revisions"]) == 2


def test_a_review_without_anything_due_says_why_and_can_be_forced(store: Path, tmp_path: Path) -> None:
    passages = tmp_path / "trusted.jsonl"
    passages.write_text(json.dumps({"id": "p", "text": "The bridge of Lyon was opened in 1932."}) + "\n")
    options = ("--datastore", passages, "--judge", "builtin")
    with MemoryStore.create(store):
        pass
    assert "0 memories reviewed: there are none of this user and agent (--all" in done("review", store, *options)
    assert done("review", store, *options, "--all").strip() == "0 memories reviewed: there are none"
    done("add", store, "The bridge of Lyon was opened in 1923.")
    shown = " ".join(done("review", store, *options).split())
    assert re.search(r"the only memory is not due before \d{4}-\d\d-\d\d \d\d:\d\d UTC \(--force checks", shown)
    told = json.loads(done("review", store, *options, "--json"))
    assert (told["reviewed"], told["memories"], told["next_due_at"] > 0) == ([], 1, True)
    done("add", store, "tea")
    assert "0 memories reviewed: none of 2 memories is due before " in done("review", store, *options)
    assert "2 memories reviewed: 1 believed less, 1 unchanged" in done("review", store, *options, "--force")
    refused = ewe("review", store, "--datastore", "buildin")
    assert (refused.exit_code, "did you mean builtin? known: builtin, wikipedia-sample, none, " in refused.stderr) == (
        2,
        True,
    )


def test_reviews_go_on_round_after_round_while_others_write(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = tmp_path / "trusted.jsonl"
    passages.write_text(json.dumps({"id": "p", "text": "The bridge of Lyon was opened in 1932."}) + "\n")
    with MemoryStore.create(store) as opened:
        opened.add([Memory(name, f"{name}: The bridge of Lyon was opened in 1923.") for name in "ab"])
    rounds: list[float] = []

    def rest(seconds: float) -> None:
        """Between rounds the store is free: one round meets another writer, the last is interrupted."""
        rounds.append(seconds)
        if len(rounds) == 1:
            done("add", store, "tea")
            monkeypatch.setattr("ewe.longterm.store.MemoryStore.open", busy)
        elif len(rounds) == 2:
            monkeypatch.setattr("ewe.longterm.store.MemoryStore.open", free)
        elif len(rounds) == 3:
            raise KeyboardInterrupt

    def busy(*arguments: Any, **options: Any) -> Any:
        raise DatastoreError("another process writes to it")

    free = MemoryStore.open
    monkeypatch.setattr("ewe.longterm.commands.memory_review._sleep", rest)
    result = ewe("review", store, "--datastore", passages, "--judge", "builtin", "--budget", 1, "--every", 60, "--json")
    assert (result.exit_code, rounds) == (130, [60.0] * 3)
    found = [[one["memory_id"] for one in json.loads(line)["reviewed"]] for line in result.stdout.splitlines()]
    assert found == [["a"], [], ["b"]]
    assert "another process writes" in result.stderr


def test_a_memory_that_cannot_be_checked_is_told_with_exit_code_1(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = tmp_path / "trusted.jsonl"
    passages.write_text(json.dumps({"id": "p", "text": "The bridge of Lyon was opened in 1932."}) + "\n")
    with MemoryStore.create(store) as opened:
        opened.add([Memory("x", "The bridge of Lyon [bold]\x1b was opened in 1923.")])

    class Broken:
        def judge(self, pairs: Any) -> Any:
            raise JudgeError("out of \x1b order [red]")

    monkeypatch.setattr("ewe.verification.judges.load.load_judge", lambda name: Broken())
    result = ewe("review", store, "--datastore", passages)
    assert (result.exit_code, "1 memory reviewed: 1 failed" in result.stdout) == (1, True)
    assert "out of � order [red]" in " ".join(result.stdout.split())
    assert "[bold]" in result.stdout
    assert "\x1b" not in result.stdout
    missing = ewe("review", tmp_path / "nothing", "--datastore", passages)
    assert (missing.exit_code, "'ewe memory add' makes a store" in missing.stderr) == (2, True)


def test_errors_say_what_to_do(store: Path, tmp_path: Path) -> None:
    def refused(told: str, *arguments: Any) -> None:
        result = ewe(*arguments)
        assert (result.exit_code, told in result.stderr) == (2, True), result.stderr

    for command in ("search", "show"):
        refused("'ewe memory add' makes a store", command, store, "x")
    refused("'ewe memory add' makes a store", "stats", store)
    assert not store.exists()
    refused("must not be empty", "add", store, " ")
    assert not store.exists()
    done("add", store, "tea", "--id", "x")
    refused("choose another one", "add", store, "wine", "--id", "x")
    refused("No such file", "import", store, tmp_path / "nothing.jsonl")


def test_a_search_goes_on_while_another_process_writes(store: Path) -> None:
    done("add", store, "tea 0")
    stop = threading.Event()

    def write() -> None:
        with MemoryStore.open(store, read_only=False) as opened:
            for number in range(1, 40):
                opened.add([Memory(str(number), f"tea {number}")])
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    counts = []
    while not stop.is_set():
        with MemoryStore.open(store) as opened:
            counts.append(len(opened))
    writer.join()
    assert counts == sorted(counts)
    assert len(found(store, "tea", "-k", "50")) == 40


def test_memories_move_from_a_folder_to_a_server_and_back(store: Path, postgres: Any, tmp_path: Path) -> None:
    url = postgres.new_schema()
    done("add", store, "Ann likes red wine", "--user", "ann", "--id", "wine")
    done("add", store, "The bridge is red")
    done("delete", store, done("add", store, "wrong", "--user", "ann").strip(), "--user", "ann")
    assert "2 memories exported" in done("export", store, tmp_path / "there.jsonl", "--all")
    assert "2 memories added" in done("import", url, tmp_path / "there.jsonl")
    assert "2 memories embedded" in done("embed", url)
    assert found(url, "red", "--user", "ann", "--words") == found(store, "red", "--user", "ann")
    assert "wine" in done("show", url, "wine", "--user", "ann")
    assert "nothing is damaged" in done("check", url)
    done("export", url, tmp_path / "back.jsonl", "--all")
    assert (tmp_path / "back.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()
    assert "1 memories deleted" in done("delete", url, "--user", "ann", "--everything")
    assert found(url, "red", "--user", "ann") == [("The bridge is red", "")]


def test_dates_are_kept_and_the_past_can_be_asked_for(store: Path) -> None:
    ann = ("--user", "ann", "--reliability", "0.7")
    new = done("add", store, "I live in Paris", *ann, "--observed-at", "2025-02-01").strip()
    told = ewe("add", store, "I live in Rome", *ann, "--observed-at", "2023-02-01", "--created-at", "2023-03-01")
    old = told.stdout.strip()
    assert found(store, "Where do I live?", *ann[:2]) == [("I live in Paris", "ann")]
    assert found(store, "Where did I live in 2024?", *ann[:2]) == [("I live in Rome", "ann")]
    assert found(store, "Where do I live?", *ann[:2], "--as-of", "2024-05-01") == [("I live in Rome", "ann")]
    listed = json.loads(done("list", store, *ann[:2], "--as-of", "2024-05-01", "--json"))["memories"]
    assert [one["id"] for one in listed] == [old]
    assert done("list", store, *ann[:2], "--as-of", "2024-05-01").startswith("user ann: 1\n")
    assert "fact of 2023-02-01" in done("list", store, *ann[:2])  # when it was said, not when it was written down
    shown = json.loads(done("show", store, old, *ann[:2], "--as-of", "2024-05-01", "--json"))["memory"]
    assert (shown["content"], shown["created_at"]) == ("I live in Rome", 1677628800.0)
    gone = ewe("show", store, new, *ann[:2], "--as-of", "2024-05-01")
    assert (gone.exit_code, "did not hold at that time" in gone.stderr) == (2, True)
    newest = ewe("add", store, "I live in Bonn", *ann)
    assert f"takes the place of {new}" in newest.stderr
