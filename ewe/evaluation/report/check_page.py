"""Checked texts and memories as self-contained HTML pages."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ewe.evaluation.report.assemble import assemble, cut_pieces, escaped
from ewe.evaluation.report.checked_text import outcome_data, sentence_data
from ewe.text.check_result import CheckedText

_CHECK_SCRIPTS = ("dom.js", "sentence.js", "evidence.js", "reader.js", "claims.js", "check.js")
_PART = 500  # Sentences drawn at once; a browser draws more of them only slowly.
_MEMORY_SCRIPTS = ("dom.js", "history_chart.js", "memory.js")


def check_page(
    texts: Mapping[str, CheckedText],
    scores: Mapping[str, Mapping[str, float]] | None = None,
    against: str = "",
    title: str = "EWE verification",
) -> str:
    """The page for one or several texts by name, as HTML. against: what they were checked against, in words.

    scores: per text figures by their names (precision, recall, f1, k).
    """
    scores_of = scores or {}
    entries = [part for name, checked in texts.items() for part in _check_parts(name, checked, scores_of.get(name, {}))]
    data = {"title": title, "texts": entries, "against": against}
    plain = "\n".join(_check_plain(name, checked) for name, checked in texts.items())
    return assemble("check.html", _CHECK_SCRIPTS, title, data, plain)


def write_check_page(
    path: str | Path,
    texts: Mapping[str, CheckedText],
    scores: Mapping[str, Mapping[str, float]] | None = None,
    against: str = "",
) -> None:
    """Writes `check_page` to a file, replacing it."""
    Path(path).write_text(check_page(texts, scores, against), encoding="utf-8")


def _check_parts(name: str, checked: CheckedText, scores: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """The text as the page draws it, in parts if it is long; each part tells what the whole text came to."""
    whole = {**outcome_data(checked), "name": name, "prompt": checked.prompt, "scores": dict(scores)}
    firsts = range(0, max(len(checked.sentences), 1), _PART)
    for number, first in enumerate(firsts):
        items = checked.sentences[first : first + _PART]
        start = items[0].sentence.start if number else 0
        after = checked.sentences[first + _PART : first + _PART + 1]
        end = after[0].sentence.start if after else len(checked.text)
        yield {
            **whole,
            "part": f"part {number + 1} of {len(firsts)}" if len(firsts) > 1 else "",
            "first": first,
            "pieces": cut_pieces(checked.text, [item.sentence for item in items], start, end),
            "sentences": [sentence_data(item) for item in items],
            "sources": {item.passage.id: item.passage for checked in items for item in checked.evidence},
        }


def _check_plain(name: str, checked: CheckedText) -> str:
    """The sentences and their verdicts for readers without scripts."""
    sentences = (item.sentence for item in checked.sentences)
    rows = (f"<li>{escaped(one.text)} <b>({one.verdict.value.replace('_', ' ')})</b></li>" for one in sentences)
    return f"<h2>{escaped(name)}</h2>\n<ul>{''.join(rows)}</ul>"


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
    plain = f"<h2>{escaped(memory['content'])}</h2>\n<ol>{''.join(map(_revision_row, revisions))}</ol>"
    return assemble("memory.html", _MEMORY_SCRIPTS, title, data, plain)


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


def _revision_row(revision: Mapping[str, Any]) -> str:
    """A revision for readers without scripts."""
    line = f"{revision['reason']}: veracity {revision['veracity_before']:.2f} to {revision['veracity_after']:.2f}"
    return f"<li>{escaped(line)}; {escaped(', '.join(revision['evidence']))}</li>"
