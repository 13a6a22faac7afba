"""Building and adding: interrupted anywhere, with any number of processes, the same passages come out."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path

import pytest

from ewe.cli.index_report import tell
from ewe.errors import DatastoreError
from ewe.retrieval.ingest import ChunkRules, Problem, ReadOptions, Report, Request, add, build, row_files
from ewe.retrieval.ingest.datastore_info import info, remove
from ewe.retrieval.ingest.ledger import Counts
from ewe.retrieval.store import PassageStore
from ewe.types import Passage

build_module = importlib.import_module("ewe.retrieval.ingest.build")  # the package has a function of this name
RULES = ChunkRules(20, 5)


def content(path: Path) -> list[tuple[int, Passage]]:
    with PassageStore.open(path) as store:
        assert store.verify() == []
        return list(store.scan())


def ids(path: Path) -> list[str]:
    return [passage.id for _, passage in content(path)]


def rows(path: Path, values: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows with duplicates and bad lines, a long text, a file that holds nothing, and one that breaks off."""
    monkeypatch.setattr(row_files, "_BLOCK", 600)
    folder = tmp_path / "source"
    folder.mkdir()
    values: list[dict[str, object]] = [
        {"id": f"r{i}", "text": f"Row {i % 30} tells of town {i % 30}."} for i in range(60)
    ]
    values[7] = {"no text": 1}
    values[40] = {"id": "r3", "text": "Another text under an id that is taken."}
    rows(folder / "a.jsonl", values)
    (folder / "b.md").write_text("# Towns\n\n" + " ".join(f"Town number {i} lies by a river." for i in range(40)))
    (folder / "c.txt").write_text("")
    (folder / "d.csv").write_text('text\nThis row is read.\n"This one never ends.\n')
    return folder


def request(source: Path, **options: object) -> Request:
    return Request((str(source),), **{"processes": 1, **options})  # type: ignore[arg-type]


@pytest.fixture
def whole(source: Path, tmp_path: Path) -> tuple[Report, list[tuple[int, Passage]]]:
    report = build(tmp_path / "whole", request(source), RULES)
    return report, content(tmp_path / "whole")


def test_a_build_tells_what_came_of_everything(source: Path, whole) -> None:
    report, passages = whole
    assert report.counts.files == 4
    assert report.counts.passages == len(passages) == 31 + len([p for _, p in passages if "#" in p.id])
    assert report.counts.duplicates == 60 - 2 - 30
    assert (report.counts.empty, report.counts.problems) == (1, 3)
    label = str(source / "a.jsonl")
    assert [problem.where for problem in report.problems] == [f"{label}:8", label, str(source / "d.csv")]
    assert "the id 'r3' stands there twice" in report.problems[1].message


@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_a_build_that_is_interrupted_at_any_commit_ends_the_same(
    source, whole, tmp_path, monkeypatch, stop: int
) -> None:
    monkeypatch.setattr(build_module, "_GROUP_BLOCKS", 1)
    commits = 0

    def interrupt(progress) -> None:
        nonlocal commits
        commits += 1
        if commits % stop == 0:
            raise KeyboardInterrupt

    for _ in range(100):
        try:
            report = build(tmp_path / "ds", request(source), RULES, on_progress=interrupt)
            break
        except KeyboardInterrupt:
            assert info(tmp_path / "ds")["being_built"]
    assert commits > stop
    assert (report.counts, report.problems, content(tmp_path / "ds")) == (whole[0].counts, whole[0].problems, whole[1])
    assert not info(tmp_path / "ds")["unfinished_files"]


def test_several_processes_give_the_same_passages(source, whole, tmp_path) -> None:
    report = build(tmp_path / "ds", request(source, processes=2), RULES)
    # The patched block size does not reach the other processes, and does not have to: the parent cuts the blocks.
    assert (report, content(tmp_path / "ds")) == whole


def test_a_build_is_gone_on_with_only_in_the_same_way(source, tmp_path) -> None:
    def interrupt(progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "ds", request(source), RULES, on_progress=interrupt)
    for changed, rules in (
        (request(source), ChunkRules(30, 5)),
        (request(source, read=ReadOptions(source="x")), RULES),
        (request(source, veracity={"x": 0.5}), RULES),
        (request(source / "b.md"), RULES),
    ):
        with pytest.raises(DatastoreError, match="begun with other sources or options"):
            build(tmp_path / "ds", changed, rules)
    with pytest.raises(DatastoreError, match="was interrupted: run the same"):
        add(tmp_path / "ds", request(source))
    build(tmp_path / "ds", request(source), RULES)
    with pytest.raises(DatastoreError, match="holds a finished datastore: use 'ewe index add'"):
        build(tmp_path / "ds", request(source), RULES)


def test_wrong_arguments_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Text.")
    for options, match in (
        ({"sources": ("missing",)}, "does not exist"),
        ({"read": ReadOptions(encoding="x")}, "unknown encoding"),
    ):
        with pytest.raises(DatastoreError, match=match):
            build(tmp_path / "ds", Request(**{"sources": (str(tmp_path / "a.txt"),), **options}), RULES)
    assert not (tmp_path / "ds").exists()
    with pytest.raises(DatastoreError, match="is a file"):
        build(tmp_path / "a.txt", request(tmp_path / "a.txt"), RULES)


def test_adding_skips_what_is_there_and_replaces_what_changed(tmp_path: Path) -> None:
    first = rows(tmp_path / "a.jsonl", [{"id": "a", "text": "Alpha."}, {"id": "b", "text": "Beta."}])
    second = rows(tmp_path / "b.jsonl", [{"id": "c", "text": "Gamma."}])
    build(tmp_path / "ds", Request((str(first), str(second))), RULES)
    assert add(tmp_path / "ds", Request((str(first), str(second)))).skipped == 2
    rows(first, [{"id": "a", "text": "Alpha, but new."}, {"id": "d", "text": "Delta, longer."}])
    report = add(tmp_path / "ds", Request((str(first), str(second))))
    assert (report.skipped, report.counts.passages) == (1, 3)
    assert ids(tmp_path / "ds") == ["c", "a", "d"]
    # Another way of reading is a change as well.
    add(tmp_path / "ds", Request((str(second),), ReadOptions(source="other")))
    assert content(tmp_path / "ds")[-1][1] == Passage("c", "Gamma.", source="other")


def test_an_interrupted_add_goes_on(source, tmp_path, monkeypatch) -> None:
    (tmp_path / "first.txt").write_text("First of all.")
    for name in ("ds", "whole"):
        build(tmp_path / name, request(tmp_path / "first.txt"), RULES)
    add(tmp_path / "whole", request(source))
    monkeypatch.setattr(build_module, "_GROUP_BLOCKS", 1)

    def interrupt(progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add(tmp_path / "ds", request(source), interrupt)
    assert info(tmp_path / "ds")["unfinished_files"]
    add(tmp_path / "ds", request(source))
    assert content(tmp_path / "ds") == content(tmp_path / "whole")


def test_a_file_whose_beginning_makes_no_sense_is_given_up(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(row_files, "_BLOCK", 50)
    path = rows(tmp_path / "a.jsonl", [{"body": f"Body {i}."} for i in range(50)] + [{"text": "Never reached."}])
    report = build(tmp_path / "ds", request(path), RULES)
    assert report.counts.passages == 0
    assert report.counts.problems < 10
    assert report.problems[-1] == Problem(str(path), "nothing at its beginning can be read: the rest is left out")
    report = add(tmp_path / "ds", request(path, read=ReadOptions({"text": "body"})))
    assert (report.counts.passages, report.counts.problems) == (50, 1)


def test_veracity_comes_from_the_row_the_table_or_its_default(tmp_path: Path) -> None:
    values: list[dict[str, object]] = [
        {"text": "One.", "source": "s", "veracity": 0.1},
        {"text": "Two.", "source": "s"},
        {"text": "Three.", "source": "t"},
    ]
    path = rows(tmp_path / "a.jsonl", values)
    build(tmp_path / "ds", request(path, veracity={"s": 0.2, "*": 0.3}), RULES)
    assert [passage.veracity for _, passage in content(tmp_path / "ds")] == [0.1, 0.2, 0.3]
    build(tmp_path / "plain", request(path, veracity={"s": 0.2}), RULES)
    assert [passage.veracity for _, passage in content(tmp_path / "plain")] == [0.1, 0.2, 1.0]


@pytest.mark.parametrize(("dedup", "expected"), [("near", 1), ("exact", 2), ("off", 3)])
def test_duplicates_are_left_out_as_far_as_asked_for(tmp_path: Path, dedup, expected: int) -> None:
    text = (
        "The river rises in hills north of town and flows past two old mills before it meets the sea at a small port."
    )
    texts = [text, text.replace("small", "little"), text.replace(" ", "  ")]
    path = rows(tmp_path / "a.jsonl", [{"text": text} for text in texts])
    report = build(tmp_path / "ds", request(path), ChunkRules(), dedup)
    assert (report.counts.passages, report.counts.duplicates) == (expected, 3 - expected)


def test_removing_by_id_file_and_source(tmp_path: Path) -> None:
    first = rows(
        tmp_path / "a.jsonl", [{"id": f"a{i}", "text": f"Alpha {i}.", "source": f"s{i % 2}"} for i in range(4)]
    )
    second = rows(tmp_path / "b.jsonl", [{"id": "b", "text": "Beta."}])
    build(tmp_path / "ds", Request((str(first), str(second))), RULES)
    assert remove(tmp_path / "ds", ["a0", "nobody"], [str(second), "none.txt"], ["s1", "s9"]) == (
        4,
        ["the file none.txt", "the source s9", "the passage nobody"],
    )
    assert ids(tmp_path / "ds") == ["a2"]
    with PassageStore.open(tmp_path / "ds") as store:
        assert store.generation == 5
    add(tmp_path / "ds", Request((str(first), str(second))))
    assert ids(tmp_path / "ds") == ["a2", "b"]


def test_two_files_under_one_name_both_keep_their_passages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(f"Text of {name}.")
    monkeypatch.chdir(tmp_path / "one")
    build(tmp_path / "ds", Request(("a.txt",)), RULES)
    monkeypatch.chdir(tmp_path / "two")
    add(tmp_path / "ds", Request(("a.txt",)))
    assert ids(tmp_path / "ds") == ["a.txt", str(tmp_path / "two" / "a.txt")]


def test_a_store_that_was_filled_by_hand_is_added_to_but_not_built_over(tmp_path: Path) -> None:
    path = rows(tmp_path / "a.jsonl", [{"id": "a", "text": "Alpha."}])
    with PassageStore.create(tmp_path / "ds") as store:
        store.add([Passage("mine", "By hand.")])
    assert info(tmp_path / "ds")["read"] == {}
    with pytest.raises(DatastoreError, match="not read from files"):
        build(tmp_path / "ds", request(path), RULES)
    add(tmp_path / "ds", request(path))
    assert ids(tmp_path / "ds") == ["mine", "a"]


def test_ids_that_another_file_has_are_named_after_their_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        rows(tmp_path / f"{name}.jsonl", [{"id": i, "text": f"Row {i} of {name}."} for i in (1, 2)])
    second = str(tmp_path / "b.jsonl")
    report = build(tmp_path / "ds", request(tmp_path), RULES)
    assert (report.counts.passages, report.counts.problems) == (4, 0)
    assert ids(tmp_path / "ds") == ["1", "2", f"{second}:1", f"{second}:2"]
    rows(tmp_path / "b.jsonl", [{"id": 2, "text": "Row 2 of b, changed."}])
    add(tmp_path / "ds", Request((second,)))
    assert ids(tmp_path / "ds") == ["1", "2", f"{second}:2"]


def test_files_that_are_gone_are_named_and_removed_on_request(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.txt").write_text(f"Text of {name}, which is short.")
    (tmp_path / "elsewhere.txt").write_text("Another text.")
    build(tmp_path / "ds", Request((str(folder), str(tmp_path / "elsewhere.txt"))), RULES)
    for path in (folder / "a.txt", tmp_path / "elsewhere.txt"):
        path.unlink()
    (folder / "moved").mkdir()
    (folder / "b.txt").rename(folder / "moved" / "b.txt")
    report = add(tmp_path / "ds", request(folder))
    gone = (str(folder / "a.txt"), str(folder / "b.txt"))
    assert (report.gone, report.pruned, len(ids(tmp_path / "ds"))) == (gone, None, 4)
    report = add(tmp_path / "ds", Request((str(folder / "**/*.txt"),)), prune=True)
    assert (report.gone, report.pruned) == (gone, 2)
    # What moved was a duplicate of its old place before, and takes that place's passage over.
    assert [Path(name).name for name in ids(tmp_path / "ds")] == ["c.txt", "elsewhere.txt", "b.txt"]
    report = add(tmp_path / "ds", request(folder), prune=True)
    assert (report.gone, report.pruned, report.skipped) == ((), 0, 2)


def test_what_is_gone_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for pruned, said in (
        (None, "2 files of the datastore gone from there: a.txt, b.txt; --prune removes what came from them"),
        (1, "1 passage removed, of 2 files gone from there: a.txt, b.txt"),
    ):
        tell(Report(Counts(), (), (), 0, (), ("a.txt", "b.txt"), pruned), tmp_path)
        assert said in capsys.readouterr().out.splitlines()


def test_what_was_removed_by_name_stays_away_when_files_are_pruned(tmp_path: Path) -> None:
    values: list[dict[str, object]] = [{"id": f"r{i}", "text": f"Row {i % 2}."} for i in range(3)]
    kept, gone = rows(tmp_path / "a.jsonl", values), rows(tmp_path / "b.jsonl", [{"text": "Row 9."}])
    build(tmp_path / "ds", request(tmp_path), RULES)
    remove(tmp_path / "ds", ["r1"])
    gone.unlink()
    add(tmp_path / "ds", Request((str(kept), str(tmp_path))), prune=True)
    assert ids(tmp_path / "ds") == ["r0"]


def test_a_file_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(b"a\0b")
    report = build(tmp_path / "ds", request(tmp_path), RULES)
    assert ["no text (binary data)" in problem.message for problem in report.problems] == [True]


def test_a_worker_that_dies_is_reported(source, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("ewe.retrieval.ingest.work._work", _die)
    with pytest.raises(DatastoreError, match="a worker process died"):
        build(tmp_path / "ds", request(source, processes=2), RULES)


def _die(block: object) -> None:
    os._exit(1)
