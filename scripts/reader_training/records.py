"""Passages, and questions about passages, as JSONL of any origin gives them.

One object per line, of which only `question` and `target` are needed beside passages:

    {"question": "Who ...?", "answers": ["Ann Bell"], "target": "Ann Bell wrote it.",
     "passages": [{"title": "...", "text": "..."}, ...], "right": [0]}

`right`: the passages that answer the question; none where nothing does. The others are distractors of its own.
`target`: what the model shall say. Knows nobody.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Passage:
    """One text with its title ("" if it has none); origin: the set it comes from, whose passages look alike."""

    title: str
    text: str
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A question, its answers (strings of which one should be said), the right passages, distractors and the target."""

    question: str
    answers: tuple[str, ...]
    right: tuple[Passage, ...]
    others: tuple[Passage, ...]
    target: str


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def read_readings(path: Path) -> list[Reading]:
    """The questions in a JSONL file of the form above; ValueError names the line that does not have it."""
    readings = []
    for number, row in enumerate(read_rows(path), 1):
        try:
            passages = [Passage(item.get("title") or "", item["text"], path.stem) for item in row["passages"]]
            chosen = list(dict.fromkeys(row["right"]))
            right = tuple(passages[index] for index in chosen)
            others = tuple(passage for index, passage in enumerate(passages) if index not in chosen)
            readings.append(Reading(row["question"], tuple(row.get("answers", ())), right, others, row["target"]))
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path}, object {number}: {error!r}; it needs question, target, passages and right"
            ) from error
    return readings
