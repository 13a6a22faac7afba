"""Whether long-term memories notice that the world has changed: pairs of statements as people say them.

Each pair of `longterm_changes.jsonl` (written by hand, by topic; the topics in the order of a hash of their names
belong to the two halves in turn; the tuned half and `longterm_changes_tuned.jsonl` are for training), and of
`longterm_changes_fresh.jsonl` and `longterm_changes_blind.jsonl` (written later by others, for reporting only; fresh is
hard on purpose, blind is as people tell things), is told to a memory of its own, a month apart, by one person. changed:
the newer statement ends the older one, half of them without a verb of change; compatible: both hold; again: the newer
says the same. noticed: the older memory was superseded, as it should be; withdrawn: it was superseded or marked as
contradicting although both hold; said again: it was read as the same.

`longterm_histories.jsonl` (for reporting only) has what thirteen people tell over a year or two, each told to a memory
of its own: noticed are the statements that have ended by then, withdrawn those that have not. Shares have the ends of
their 95% intervals (Wilson). `longterm_profiles.jsonl` (for reporting only) has twelve short facts each about sixteen
people and companies, which hold side by side, and what ends them later: withdrawn are those that have ended when all
facts are told, noticed those that have ended when what ends them is told, too. Then 1,000 turns are added to one
memory, one by one and in one call.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import parse_arguments, report
from benchmarks.sessions import DAY
from benchmarks.verdicts import shares
from ewe.longterm.change.change_reading import Stance, compare
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore

FURTHER = Path(__file__).parent / "longterm_changes_tuned.jsonl"
FRESH = Path(__file__).parent / "longterm_changes_fresh.jsonl"
BLIND = Path(__file__).parent / "longterm_changes_blind.jsonl"
HISTORIES = Path(__file__).parent / "longterm_histories.jsonl"
PROFILES = Path(__file__).parent / "longterm_profiles.jsonl"
PAIRS = Path(__file__).parent / "longterm_changes.jsonl"
_HALVES = ("tuned", "report")
_TURNS = 1000
_KINDS = ("changed, with a verb", "changed, without", "compatible", "again")


@dataclass(frozen=True, slots=True)
class Told:
    """Two statements of one person, what they are about, and how the newer one stands to the older one."""

    topic: str
    kind: str
    older: str
    newer: str


def read(path: Path = PAIRS) -> dict[str, list[Told]]:
    """The pairs of each half (topics in the order of their hashes, in turn), those for tuning, fresh and blind ones."""
    pairs = _pairs(path)
    topics = sorted({pair.topic for pair in pairs}, key=lambda topic: hashlib.sha256(topic.encode()).hexdigest())
    half_of = {topic: _HALVES[place % 2] for place, topic in enumerate(topics)}
    halves = {half: [pair for pair in pairs if half_of[pair.topic] == half] for half in _HALVES}
    return {**halves, "tuned further": _pairs(FURTHER), "fresh": _pairs(FRESH), "blind": _pairs(BLIND)}


def _pairs(path: Path) -> list[Told]:
    return [Told(**row) for row in _rows(path)]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def measure(pairs: Sequence[Told]) -> dict[str, float]:
    """The shares of one half."""
    now, counts = [0.0], dict.fromkeys((*_KINDS, "noticed", "silent", "withdrawn", "recognised"), 0)
    with tempfile.TemporaryDirectory() as folder, MemoryStore.create(Path(folder) / "memories") as store:
        memories = MemoryService(store, clock=lambda: now[0])
        for number, pair in enumerate(pairs):
            counts[pair.kind] += 1
            withdrawn, again = _told(memories, now, Scope(str(number)), pair)
            counts["noticed"] += withdrawn and pair.kind == _KINDS[0]
            counts["silent"] += withdrawn and pair.kind == _KINDS[1]
            counts["withdrawn"] += withdrawn and pair.kind == "compatible"
            counts["recognised"] += again and pair.kind == "again"
    with_verb, without = counts[_KINDS[0]], counts[_KINDS[1]]
    return {
        **shares("noticed", counts["noticed"] + counts["silent"], with_verb + without),
        **shares("noticed, with a verb of change", counts["noticed"], with_verb),
        **shares("noticed, without", counts["silent"], without),
        **shares("compatible withdrawn", counts["withdrawn"], counts["compatible"]),
        **shares("said again recognised", counts["recognised"], counts["again"]),
    }


def _told(memories: MemoryService, now: list[float], scope: Scope, pair: Told) -> tuple[bool, bool]:
    """Whether the older one was withdrawn, and whether the newer one was taken for the same again."""
    source = MemorySource("user", "speaker", 0.7)
    now[0] += 30 * DAY
    old = memories.add(pair.older, scope, source)
    now[0] += 30 * DAY
    memories.add(pair.newer, scope, source)
    there = memories.store.get(scope, old.id)
    again = compare(pair.older, pair.newer) is Stance.AGAIN
    return there.valid_until is not None or bool(there.contradicts), again


def measure_histories(histories: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The shares of histories: statements in order, and the places of the pairs in which the later one ends the other.

    Who says a thing again may end what said it first; whether that is right is not counted.
    """
    now, counts = [0.0], dict.fromkeys(("ended", "noticed", "standing", "withdrawn"), 0)
    with tempfile.TemporaryDirectory() as folder, MemoryStore.create(Path(folder) / "memories") as store:
        memories = MemoryService(store, clock=lambda: now[0])
        for number, history in enumerate(histories):
            ended, again = ({older for older, _ in history[name]} for name in ("changed", "again"))
            for place, gone in enumerate(_gone(memories, now, Scope(str(number)), history["statements"])):
                counts["ended"] += place in ended
                counts["noticed"] += place in ended and gone
                counts["standing"] += place not in ended | again
                counts["withdrawn"] += place not in ended | again and gone
    return {
        **shares("noticed", counts["noticed"], counts["ended"]),
        **shares("withdrawn", counts["withdrawn"], counts["standing"]),
    }


def measure_profiles(profiles: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The shares of profiles: facts that hold side by side, and of each two statements that end it, told in turn."""
    now, counts = [0.0], dict.fromkeys(("facts", "withdrawn", "noticed"), 0)
    with tempfile.TemporaryDirectory() as folder, MemoryStore.create(Path(folder) / "memories") as store:
        memories = MemoryService(store, clock=lambda: now[0])
        for number, profile in enumerate(profiles):
            facts = [one["fact"] for one in profile["facts"]]
            ends = [one["changed"][place % 2] for place, one in enumerate(profile["facts"])]
            counts["facts"] += len(facts)
            counts["withdrawn"] += sum(_gone(memories, now, Scope(f"{number} facts"), facts))
            counts["noticed"] += sum(_gone(memories, now, Scope(f"{number} all"), facts + ends)[: len(facts)])
    return {
        **shares("noticed", counts["noticed"], counts["facts"]),
        **shares("withdrawn", counts["withdrawn"], counts["facts"]),
    }


def _gone(memories: MemoryService, now: list[float], scope: Scope, statements: Sequence[str]) -> list[bool]:
    """Tells statements a month apart; of each whether it no longer holds in the end."""
    source, ids = MemorySource("user", "speaker", 0.7), []
    for text in statements:
        now[0] += 30 * DAY
        ids.append(memories.add(text, scope, source).id)
    found = [memories.store.get(scope, memory_id) for memory_id in ids]
    return [one.valid_until is not None or bool(one.contradicts) for one in found]


def adding(turns: Sequence[str], together: bool) -> float:
    """Seconds to add these turns to one memory, each compared with those before; together: in one call."""
    source = MemorySource("user", "speaker", 0.7)
    new = [Memory("new", turn, "turn", source, Scope("speaker")) for turn in turns]
    with tempfile.TemporaryDirectory() as folder, MemoryStore.create(Path(folder) / "memories") as store:
        memories, start = MemoryService(store), time.perf_counter()
        for lot in [new] if together else [[one] for one in new]:
            memories.add_all(lot)
        return time.perf_counter() - start


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__)
    halves = {half: pairs[:: 60 if arguments.smoke else 1] for half, pairs in read().items()}
    figures = {f"{half}: {key}": value for half, pairs in halves.items() for key, value in measure(pairs).items()}
    most = 1 if arguments.smoke else None
    found = measure_histories(_rows(HISTORIES)[:most])
    figures |= {f"histories: {key}": value for key, value in found.items()}
    found = measure_profiles(_rows(PROFILES)[:most])
    figures |= {f"profiles: {key}": value for key, value in found.items()}
    told = [text for half in _HALVES for pair in halves[half] for text in (pair.older, pair.newer)]
    for name, unit in (("adding", "week"), ("adding in one call", "month")):  # other texts, as what was read is known
        turns = [f"{text} That was in {unit} {number}." for number in range(3) for text in told][:_TURNS]
        spent = adding(turns, together=unit == "month")
        figures[f"{name}: seconds per 1,000 turns"] = round(spent * _TURNS / len(turns), 2)
    report("longterm_changes", arguments, {half: len(pairs) for half, pairs in halves.items()}, figures)


if __name__ == "__main__":
    main()
