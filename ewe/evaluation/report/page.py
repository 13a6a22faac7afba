"""The trace as JSONL, one event per line, and as one self-contained HTML page without network or foreign scripts."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ewe.evaluation.report.assemble import assemble, cut_pieces, escaped
from ewe.evaluation.report.timeline import build_axis, build_lanes
from ewe.text.jsonable import jsonable
from ewe.types import Generation, Sentence

_SCRIPTS = ("dom.js", "sentence.js", "answer.js", "evidence.js", "timeline.js", "tables.js", "reader.js", "main.js")


def trace_page(generations: Sequence[Generation], title: str = "EWE trace") -> str:
    """The page for one or several generations, as a string of HTML."""
    data = {"title": title, "generations": [page_data(item) for item in generations]}
    plain = "\n".join(f"<h2>{escaped(one.prompt)}</h2>\n<p>{escaped(one.text)}</p>" for one in generations)
    return assemble("page.html", _SCRIPTS, title, data, plain)


def write_page(path: str | Path, generations: Sequence[Generation], title: str = "EWE trace") -> None:
    """Writes `trace_page` to a file, replacing it."""
    Path(path).write_text(trace_page(generations, title), encoding="utf-8")


def page_data(generation: Generation) -> dict[str, Any]:
    """What the page draws of one generation; docs/streaming.md describes it."""
    axis = build_axis(generation)
    start = next((event.data for event in generation.trace if event.kind == "start"), {})
    return {
        "prompt": generation.prompt,
        "index": generation.index,
        "finish_reason": generation.finish_reason,
        "error": generation.error,
        "policy": start.get("policy", ""),
        "settings": start.get("settings", {}),
        "stats": generation.stats,
        "pieces": cut_pieces(generation.text, generation.sentences),
        "sentences": [_sentence(item, generation, axis) for item in generation.sentences],
        "sources": generation.sources,
        "timeline": {"length": axis.length, "removed": axis.removed, "lanes": build_lanes(generation.trace, axis)},
        "events": [
            {"kind": event.kind, "time_s": event.time_s, "num_tokens": event.num_tokens, "at": at, "data": event.data}
            for event, at in zip(generation.trace, axis.positions, strict=True)
        ],
    }


def _sentence(sentence: Sentence, generation: Generation, axis: Any) -> dict[str, Any]:
    checks = [event.data for event in generation.trace if event.kind == "verification"]
    final = [check for check in checks if check.get("text") == sentence.text and check.get("start") == sentence.start]
    removed = []
    for wording in sentence.removed:
        own = [check for check in checks if check.get("text") == wording and check.get("start") == sentence.start]
        check = own[-1] if own else {}
        removed.append({"text": wording, "claims": check.get("claims", []), "evidence": check.get("evidence", [])})
    return {
        "text": sentence.text,
        "verdict": sentence.verdict,
        "score": sentence.score,
        "reason": sentence.reason,
        "attempts": sentence.attempts,
        "claims": sentence.claims,
        "source_ids": sentence.source_ids,
        "attention": sentence.attention,
        "quotes": sentence.quotes,
        "evidence": final[-1].get("evidence", []) if final else [],
        "removed": removed,
        "runs": axis.pieces(axis.token_of(sentence.start), axis.token_of(sentence.end)),
    }


def trace_lines(generations: Iterable[Generation], ids: Iterable[str] | None = None) -> Iterator[str]:
    """One JSON document per event: {id, index, kind, time_s, num_tokens, data}; without `ids` they count from 0."""
    generations = list(generations)
    names = list(ids) if ids is not None else [str(number) for number in range(len(generations))]
    for name, generation in zip(names, generations, strict=True):
        for event in generation.trace:
            yield json.dumps({"id": name, "index": generation.index, **jsonable(event)}, ensure_ascii=False)


def write_trace(path: str | Path, generations: Iterable[Generation], ids: Iterable[str] | None = None) -> None:
    """Writes `trace_lines` to a file, replacing it."""
    with Path(path).open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in trace_lines(generations, ids))
