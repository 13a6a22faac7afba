"""Pairs of an older and a newer statement, and how they stand, from what was written by hand for training.

`written/` holds pairs (`pairs_*.jsonl`: topic, kind, older, newer), contrast sets (`sets_*.jsonl`: one older statement,
six newer ones), `small_talk.txt`, and histories (`histories_*.jsonl`: what one person tells over a year or two, with
the places of the pairs in which the later statement ends the earlier one or says it again; all other pairs hold side by
side), and profiles (`profiles.jsonl`: facts about one person or company that hold side by side, each with two later
statements that end it alone, but for the facts named in `goes_with`, and one that says it again). The pairs for tuning
of `benchmarks/longterm_changes.py` are taken, too; those for reporting never are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

from benchmarks.longterm_changes import read as read_benchmark

WRITTEN = Path(__file__).parent / "written"
CHANGED, AGAIN, APART = range(3)
_LABELS = {"changed, with a verb": CHANGED, "changed, without": CHANGED, "again": AGAIN, "compatible": APART}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements of one person, how the newer one stands to the older one, where they were written, about what."""

    older: str
    newer: str
    label: int
    group: str
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Statements:
    """What one person tells in order, and the labels of pairs of places; pairs that are not named are apart."""

    texts: tuple[str, ...]
    labels: dict[tuple[int, int], int]
    group: str

    def pairs(self) -> Iterator[Pair]:
        """All pairs but those whose older statement had ended before, about which nothing is said."""
        ended = {
            older: newer for (older, newer), label in sorted(self.labels.items(), reverse=True) if label == CHANGED
        }
        for older, newer in combinations(range(len(self.texts)), 2):
            label = self.labels.get((older, newer), APART)
            if label != APART or ended.get(older, newer) >= newer:
                yield Pair(self.texts[older], self.texts[newer], label, self.group)


def written_pairs(folder: Path = WRITTEN) -> list[Pair]:
    """The pairs and those of the contrast sets; group: the file, or the set."""
    found = [
        Pair(row["older"], row["newer"], _LABELS[row["kind"]], path.stem, row["topic"])
        for path in sorted(folder.glob("pairs_*.jsonl"))
        for row in _rows(path)
    ]
    for path in sorted(folder.glob("sets_*.jsonl")):
        for row in _rows(path):
            newer = {CHANGED: [row["verb"], *row["without"]], APART: row["compatible"], AGAIN: [row["again"]]}
            found += [
                Pair(row["older"], text, label, path.stem, row["topic"])
                for label, texts in newer.items()
                for text in texts
            ]
    return found


def benchmark_pairs() -> list[Pair]:
    """The pairs of the benchmark that are for tuning."""
    halves = read_benchmark()
    rows = [row for half in ("tuned", "tuned further") for row in halves[half]]
    return [Pair(row.older, row.newer, _LABELS[row.kind], "benchmark", row.topic) for row in rows]


def small_talk(folder: Path = WRITTEN) -> list[str]:
    """What is said in any talk and changes nothing: greetings, thanks, praise, questions."""
    return (folder / "small_talk.txt").read_text(encoding="utf-8").splitlines()


def histories(folder: Path = WRITTEN) -> list[Statements]:
    """The histories; group: the file and the line."""
    return [
        Statements(tuple(row["statements"]), _places(row), f"{path.stem}:{number}")
        for path in sorted(folder.glob("histories_*.jsonl"))
        for number, row in enumerate(_rows(path))
    ]


def profiles(folder: Path = WRITTEN) -> list[list[Pair]]:
    """Per profile the pairs of its facts, and of each with what ends or repeats it or another."""
    return [
        list(_profile_pairs(row["facts"], f"profiles:{number}"))
        for number, row in enumerate(_rows(folder / "profiles.jsonl"))
    ]


def _profile_pairs(facts: list[dict[str, Any]], group: str) -> Iterator[Pair]:
    for one in facts:
        yield from (Pair(one["fact"], text, CHANGED, group) for text in one["changed"])
        yield Pair(one["fact"], one["again"], AGAIN, group)
    for (place, one), (other_place, other) in permutations(enumerate(facts), 2):
        yield Pair(one["fact"], other["fact"], APART, group)
        if place not in other["goes_with"] and other_place not in one["goes_with"]:
            yield from (Pair(one["fact"], text, APART, group) for text in other["changed"])


def _places(row: dict[str, Any]) -> dict[tuple[int, int], int]:
    named = ((AGAIN, row["again"]), (CHANGED, row["changed"]))
    return {(older, newer): label for label, places in named for older, newer in places}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
