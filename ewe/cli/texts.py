"""Where the texts to check come from: files, result files of `ewe generate`, standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ewe.errors import InvalidRequestError

LARGEST_TEXT = 256 << 20
"""Bytes; a larger file is refused, because verdicts and evidence of all its sentences are held until it is done."""
STDIN = "-"


@dataclass(frozen=True, slots=True)
class NamedText:
    """A text with the name under which its result is found again, and the prompt that it answers, if known."""

    name: str
    text: str
    prompt: str = ""


def read_texts(source: str, prompt: str = "", encoding: str | None = None) -> Iterator[NamedText]:
    """The texts of one file, or of standard input for "-".

    A file that ends in .jsonl holds one object per line: "text", perhaps "prompt" and "id", as `ewe generate` writes
    them. Any other file is one text. encoding: None takes UTF-8, or what the file's mark says. Raises
    InvalidRequestError naming the file for what cannot be read, is too large, binary, mis-encoded or empty.
    """
    text = _decode(_read(source), source, encoding)
    if source.endswith(".jsonl"):
        yield from _objects(text, source, prompt)
        return
    if not text.strip():
        raise InvalidRequestError(f"{_named(source)} holds no text")
    yield NamedText(_named(source), text, prompt)


def files_or_stdin(files: Sequence[str] | None) -> list[str]:
    """The files named, each once, or standard input. Raises InvalidRequestError if that is a terminal."""
    if files:
        return list(dict.fromkeys(files))
    if sys.stdin.isatty():
        raise InvalidRequestError("nothing to check: name a file, or give the text on standard input")
    return [STDIN]


def _read(source: str) -> bytes:
    try:
        if source == STDIN:
            data = sys.stdin.buffer.read(LARGEST_TEXT + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(LARGEST_TEXT + 1)
    except OSError as error:
        raise InvalidRequestError(f"cannot read {source}: {error.strerror}") from error
    if len(data) > LARGEST_TEXT:
        raise InvalidRequestError(f"{_named(source)} is larger than {LARGEST_TEXT >> 20} MiB: check it in parts")
    return data


def _decode(data: bytes, source: str, encoding: str | None) -> str:
    from ewe.retrieval.ingest.documents import UnreadableError
    from ewe.retrieval.ingest.encodings import check_encoding, decode

    check_encoding(encoding)
    if data.startswith(b"%PDF-"):
        raise InvalidRequestError(f"{_named(source)} is a PDF: turn it into text first")
    try:
        return decode(data, encoding)
    except UnreadableError as error:
        raise InvalidRequestError(f"cannot check {_named(source)}: {error}") from error


def _objects(text: str, source: str, prompt: str) -> Iterator[NamedText]:
    found = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            found = True
            yield _object(line, f"{source}:{number}", prompt)
    if not found:
        raise InvalidRequestError(f"{source} holds no text")


def _object(line: str, place: str, prompt: str) -> NamedText:
    try:
        value: Any = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"{place}: not valid JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise InvalidRequestError(f'{place}: expected an object with a text under "text"')
    own = value.get("prompt", "")
    if not isinstance(own, str):
        raise InvalidRequestError(f"{place}: prompt must be a text")
    return NamedText(str(value.get("id", place)), value["text"], own or prompt)


def _named(source: str) -> str:
    return "standard input" if source == STDIN else source
