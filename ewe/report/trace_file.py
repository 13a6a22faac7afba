"""The trace as JSONL: one event per line, with its request, its time and its token position.

Owns: the line format. Knows `ewe.types`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from ewe.report.jsonable import jsonable
from ewe.types import Generation


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
