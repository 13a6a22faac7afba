"""Self-contained HTML pages from a body, the frame of all pages, a style, scripts and data.

Data reaches a page as JSON; a content security policy forbids everything but the page's own script, by its hash.
"""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ewe.text.jsonable import jsonable
from ewe.types import Sentence

_HERE = Path(__file__).parent / "assets"


def assemble(body: str, scripts: Sequence[str], title: str, data: Any, plain: str) -> str:
    """One page of HTML; body and scripts are files in assets/, plain is markup for readers without scripts."""
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in scripts) + "})();\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "TITLE": html.escape(title),
        "POLICY": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "STYLE": _asset("page.css"),
        "BODY": _asset(body),
        "SCRIPT": script,
        "DATA": _script_safe(jsonable(data)),
        "PLAIN": plain,
    }
    # The frame is cut at its marks instead of replaced in turn: data that contains a mark stays data.
    pieces = _asset("frame.html").split("@@")
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def _script_safe(data: Any) -> str:
    """JSON that cannot end its script element or open a comment in it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def escaped(text: Any) -> str:
    """A value as HTML text."""
    return html.escape(jsonable(str(text)))


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def cut_pieces(
    text: str, sentences: Sequence[Sentence], start: int = 0, end: int | None = None
) -> list[dict[str, Any]]:
    """{text, sentence} for every piece of text[start:end], in order; sentence is an index of `sentences`, or None."""
    pieces: list[dict[str, Any]] = []
    position, end = start, len(text) if end is None else end
    for number, sentence in enumerate(sentences):
        if sentence.start > position:
            pieces.append({"text": text[position : sentence.start], "sentence": None})
        pieces.append({"text": text[sentence.start : sentence.end], "sentence": number})
        position = max(position, sentence.end)
    if position < end:
        pieces.append({"text": text[position:end], "sentence": None})
    return pieces
