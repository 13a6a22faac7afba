"""One memory as a self-contained HTML page: its scores over time, and every change with reason and evidence."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ewe.report.assemble import assemble
from ewe.report.jsonable import jsonable

_SCRIPTS = ("dom.js", "history_chart.js", "memory.js")


def memory_page(
    memory: Mapping[str, Any],
    revisions: Sequence[Mapping[str, Any]],
    contradictions: Sequence[Mapping[str, Any]] = (),
    title: str = "EWE memory",
) -> str:
    """The page as a string of HTML.

    memory, revisions: JSON-ready fields of a memory and of all its revisions, the first first. contradictions: per
    memory that it is marked to contradict {"id", "memory"}, the memory None where it is not there or out of sight.
    """
    data = {"memory": memory, "revisions": revisions, "contradictions": contradictions}
    plain = f"<h2>{_text(memory['content'])}</h2>\n<ol>{''.join(map(_plain, revisions))}</ol>"
    return assemble("memory.html", _SCRIPTS, title, data, plain)


def write_memory_page(
    path: str | Path,
    memory: Mapping[str, Any],
    revisions: Sequence[Mapping[str, Any]],
    contradictions: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Writes `memory_page` to a file, replacing it; readable by its owner only, as memories are."""
    path = Path(path)
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(memory_page(memory, revisions, contradictions), encoding="utf-8")


def _plain(revision: Mapping[str, Any]) -> str:
    """A revision for readers without scripts."""
    told = f"{revision['reason']}: veracity {revision['veracity_before']:.2f} to {revision['veracity_after']:.2f}"
    return f"<li>{_text(told)}; {_text(', '.join(revision['evidence']))}</li>"


def _text(text: Any) -> str:
    return html.escape(jsonable(str(text)))
