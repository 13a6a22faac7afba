"""The trace as one self-contained HTML page: no network, no script or font from elsewhere, nothing executed from data.

Owns: the page's data and its assembly from the template, style and script files beside this module. Knows `ewe.types`.
All text reaches the page as JSON and is drawn as text nodes; a content security policy forbids everything but the
page's own script, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ewe.report.jsonable import jsonable
from ewe.report.timeline import build_axis, build_lanes
from ewe.types import Generation, Sentence

_HERE = Path(__file__).parent / "assets"
_SCRIPTS = ("dom.js", "answer.js", "evidence.js", "timeline.js", "tables.js", "main.js")


def trace_page(generations: Sequence[Generation], title: str = "EWE trace") -> str:
    """The page for one or several generations, as a string of HTML."""
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in _SCRIPTS) + "})();\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "TITLE": html.escape(title),
        "POLICY": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "STYLE": _asset("page.css"),
        "SCRIPT": script,
        "DATA": _script_safe(jsonable({"title": title, "generations": [page_data(item) for item in generations]})),
        "PLAIN": "\n".join(_plain(item) for item in generations),
    }
    # The template is cut at its marks instead of replaced in turn: data that contains a mark stays data.
    pieces = _asset("page.html").split("@@")
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def write_page(path: str | Path, generations: Sequence[Generation], title: str = "EWE trace") -> None:
    """Writes `trace_page` to a file, replacing it."""
    Path(path).write_text(trace_page(generations, title), encoding="utf-8")


def page_data(generation: Generation) -> dict[str, Any]:
    """What the page draws of one generation; docs/trace.md describes it."""
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
        "pieces": _pieces(generation),
        "sentences": [_sentence(item, generation, axis) for item in generation.sentences],
        "sources": generation.sources,
        "timeline": {
            "length": axis.length,
            "removed": axis.removed,
            "lanes": build_lanes(generation.trace, axis),
        },
        "events": [
            {"kind": event.kind, "time_s": event.time_s, "num_tokens": event.num_tokens, "at": at, "data": event.data}
            for event, at in zip(generation.trace, axis.positions, strict=True)
        ],
    }


def _pieces(generation: Generation) -> list[dict[str, Any]]:
    """The answer cut into sentences and what lies between them, so that scripts need no code point arithmetic."""
    pieces: list[dict[str, Any]] = []
    position = 0
    for number, sentence in enumerate(generation.sentences):
        if sentence.start > position:
            pieces.append({"text": generation.text[position : sentence.start], "sentence": None})
        pieces.append({"text": generation.text[sentence.start : sentence.end], "sentence": number})
        position = max(position, sentence.end)
    if position < len(generation.text):
        pieces.append({"text": generation.text[position:], "sentence": None})
    return pieces


def _sentence(sentence: Sentence, generation: Generation, axis: Any) -> dict[str, Any]:
    checks = [event.data for event in generation.trace if event.kind == "verification"]
    final = [check for check in checks if check.get("text") == sentence.text and check.get("start") == sentence.start]
    removed = []
    for wording in sentence.removed:
        found = [check for check in checks if check.get("text") == wording and check.get("start") == sentence.start]
        check = found[-1] if found else {}
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
        "evidence": final[-1].get("evidence", []) if final else [],
        "removed": removed,
        "runs": axis.pieces(axis.token_of(sentence.start), axis.token_of(sentence.end)),
    }


def _plain(generation: Generation) -> str:
    """The answer for readers without scripts."""
    prompt, text = (html.escape(jsonable(part)) for part in (generation.prompt, generation.text))
    return f"<h2>{prompt}</h2>\n<p>{text}</p>"


def _script_safe(data: Any) -> str:
    """JSON that cannot end its script element or open a comment in it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
