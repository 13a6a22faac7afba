"""How memories look in a terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ewe.cli.terminal import clean, output_console, print_facts, say
from ewe.errors import EWEError
from ewe.evaluation.report import write_memory_page
from ewe.longterm.records import Memory, Revision, Scope

if TYPE_CHECKING:
    from ewe.longterm.memory_search import Found
    from ewe.longterm.store import Erasure
    from ewe.longterm.store.reading import MemoryReader


def show_hits(hits: Sequence[Found], description: str, as_json: bool) -> None:
    """The results of a search, best first."""
    if as_json:
        _print_json([{"score": hit.score, "memory": asdict(hit.memory)} for hit in hits])
        return
    console = output_console()
    for number, hit in enumerate(hits, 1):
        memory = hit.memory
        console.print(f"{number}. {clean(memory.content)}", markup=False, soft_wrap=True)
        line = f"   {_about(memory)}, {_owner(memory.scope)}, score {hit.score:.3f}"
        console.print(line, style="bright_black", markup=False, soft_wrap=True)
    if not hits:
        print("nothing found")
    console.print(f"searched by {description}", style="bright_black", markup=False)


def show_listed(sizes: Mapping[Scope, int], memories: Iterable[Memory], as_json: bool) -> None:
    """Whose memories there are and how many, then the memories that are to be listed."""
    if as_json:
        owners = [{"user": scope.user, "agent": scope.agent, "memories": size} for scope, size in sizes.items()]
        _print_json({"owners": owners, "memories": [asdict(memory) for memory in memories]})
        return
    for scope, size in sizes.items():
        print(f"{_owner(scope)}: {size}")
    for memory in memories:
        print(f"{clean(memory.content)}\n   {_about(memory)}, {_owner(memory.scope)}")


def show_erased(parts: Sequence[Erasure]) -> None:
    """What was taken of a user, agent by agent."""
    for part in parts:
        print(
            f"{_owner(part.scope)}: {part.memories} memories, {part.revisions} revisions, {part.words} words, "
            f"{part.vectors} vectors, {part.log} entries of the log"
        )


def show_history(memory: Memory, revisions: Sequence[Revision], as_json: bool) -> None:
    """A memory, then all that became of it, the first first."""
    if as_json:
        _print_json({"memory": asdict(memory), "revisions": [asdict(revision) for revision in revisions]})
        return
    console = output_console()
    console.print(clean(memory.content), style="bold", markup=False)
    feedback = f"{memory.correct_count} correct, {memory.incorrect_count} incorrect"
    for line in (
        f"{_about(memory)}, {_owner(memory.scope)}",
        f"from {clean(memory.source.name)} (reliability {memory.source.reliability:g})",
        f"uncertainty {memory.uncertainty:.2f}, recalled {memory.recall_count} times, feedback {feedback}",
        *(f"{clean(key)}: {clean(value)}" for key, value in memory.metadata.items()),
        *(f"contradicts {clean(other)}" for other in memory.contradicts),
    ):
        console.print(f"  {line}", markup=False)
    for revision in revisions:
        change = f"veracity {revision.veracity_before:.2f} -> {revision.veracity_after:.2f}"
        console.print(f"{revision.number}. {_time(revision.at)} {clean(revision.reason)}, {change}", markup=False)
        for evidence in revision.evidence:
            console.print(f"   evidence: {clean(evidence)}", markup=False)
        if revision.content_before:
            console.print(f"   said before: {clean(revision.content_before)}", markup=False)


def write_history_page(path: Path, store: MemoryReader, memory: Memory, revisions: Sequence[Revision]) -> None:
    """Writes the page of a memory, with those it contradicts as far as its readers see them; says where it is."""
    from ewe.longterm.memory_search import visible

    contradictions = []
    for other_id in memory.contradicts:
        in_sight = (store.find(scope, other_id) for scope in visible(memory.scope.user, memory.scope.agent))
        other = next((one for one in in_sight if one is not None), None)
        contradictions.append({"id": other_id, "memory": asdict(other) if other is not None else None})
    try:
        write_memory_page(path, asdict(memory), [asdict(revision) for revision in revisions], contradictions)
    except OSError as error:
        raise EWEError(f"the page cannot be written: {error}") from error
    say(f"the page is in {path}")


def show_stats(values: Mapping[str, Any], as_json: bool) -> None:
    """The counts of a store."""
    if as_json:
        _print_json(values)
        return
    print_facts(values)


def _about(memory: Memory) -> str:
    until = "" if memory.valid_until is None else f", until {_time(memory.valid_until)}"
    kind = f"{clean(memory.kind)} of {_time(memory.said_at)}{until}"
    return f"{clean(memory.id)}, {kind}, veracity {memory.veracity:.2f}"


def _owner(scope: Scope) -> str:
    if scope.shared:
        return "shared"
    return ", ".join(
        f"{name} {clean(value)}" for name, value in (("user", scope.user), ("agent", scope.agent)) if value
    )


def _time(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    except (ValueError, OverflowError, OSError):
        return f"{at:g} s"


def _print_json(values: Any) -> None:
    print(json.dumps(values, ensure_ascii=False))
