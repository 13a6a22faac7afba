"""The page of one memory as a file: self-contained, complete, safe whatever it holds, and for its owner only."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from memory_fixture import CONTENT, contradictions, hostile, memory, revisions
from show_fixture import HOSTILE
from test_trace_page import Page, parsed

from ewe.evaluation.report import memory_page, write_memory_page


def test_nothing_is_loaded_from_elsewhere_and_only_its_own_script_runs() -> None:
    tags = Page(memory_page(memory(), revisions(), contradictions())).tags
    assert not [attributes for _, attributes in tags if {"src", "srcset", "action"} & attributes.keys()]
    assert [attributes["href"] for _, attributes in tags if "href" in attributes] == ["#revisions"]
    assert not {"link", "iframe", "object", "img"} & {tag for tag, _ in tags}
    [policy] = [tag["content"] for _, tag in tags if tag.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy


@pytest.mark.parametrize("text", [HOSTILE, "@@DATA@@ @@SCRIPT@@", "<!--<script>", "\ud800"])
def test_hostile_texts_add_no_tag(text: str) -> None:
    usual = [tag for tag, _ in Page(memory_page(*hostile("x"))).tags]
    page = memory_page(*hostile(text), title=text)
    assert [tag for tag, _ in Page(page).tags] == usual
    data = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert not set("<>&") & set(data)


def test_the_data_are_all_there_and_readers_without_scripts_get_the_history() -> None:
    page = memory_page(memory(), revisions(), contradictions())
    data = parsed(page)
    assert data == {"memory": memory(), "revisions": revisions(), "contradictions": contradictions()}
    plain = page.split("<noscript>")[1].split("</noscript>")[0]
    assert CONTENT in plain
    assert "<li>reviewed: veracity 0.40 to 0.14; passage:enc-1, passage:register</li>" in plain


def test_the_file_replaces_an_older_one_and_is_its_owner_s(tmp_path: Path) -> None:
    path = tmp_path / "memory.html"
    path.write_text("old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        write_memory_page(path, memory(), revisions())
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert CONTENT in path.read_text()
