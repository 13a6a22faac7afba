"""A text cut into its sentences and what lies between them, so that scripts need no code point arithmetic.

Owns: the cutting. Knows `ewe.types`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ewe.types import Sentence


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
