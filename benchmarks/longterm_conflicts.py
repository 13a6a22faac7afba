"""Which side of a conflict is kept: pairs of texts that contradict each other, told by sources of known reliability.

Each pair of conflictQA (a question, what a model remembered, a text made to say the opposite) goes into a memory of its
own, told by two users a month apart: the short answers in one run, the texts of some sentences that argue for them in
another. A coin says which side the more reliable user tells, another which side is told first. A month after the second
the question is asked; what the first usable memory says is what was kept. Figures per scorer, as shares of all pairs:
`reliable` (the more reliable side came first; with equal reliabilities: the one told last), `other`, `nothing` (none
may be used), and `both` (the other side may be used too, without a warning). Reliabilities: 0.9 against 0.5, 0.8
against 0.6, 0.7 against 0.7. judge: the built-in one finds the contradictions; told: it is said that all pairs
contradict each other and nothing else does, which shows what the scorer does when the judge is right. found: the share
of pairs that were marked as contradicting. Which side is true has no part in it. The first half of the pairs was used
to tune the default scorer's order; the figures are of the other half.

by hand: pairs of short statements by one person (`longterm_pairs`): how many of those that can both hold, and of those
that cannot, are told apart as contradicting, by the judge alone and with the words; and taken for a newer value.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from benchmarks import plots
from benchmarks.common import ROOT, parse_arguments, report
from benchmarks.longterm_pairs import REPORT, TUNE
from benchmarks.sessions import DAY
from ewe.longterm.recall import MemoryRules
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.scoring.contradictions import LEAST_STRENGTH, relations, same_attribute
from ewe.longterm.scoring.forms import FirstVeracity, first_trust, trust_after
from ewe.longterm.scoring.scorers import DefaultScorer, MARKScorer, MMAScorer, NoScorer, VeriMemScorer
from ewe.longterm.scoring.threshold import Action, VeracityThreshold
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.verification.judges.load import load_judge
from ewe.verification.judges.protocol import REFUTED, Judge

_RELIABILITIES = ((0.9, 0.5), (0.8, 0.6), (0.7, 0.7))
_APART = 30 * DAY
_TUNED_ON = 350  # pairs


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and two texts that contradict each other about it."""

    question: str
    texts: tuple[str, str]


class Remembering:
    """A judge that is asked about no pair twice; every scorer's memory holds the same texts."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._known: dict[tuple[str, str], np.ndarray] = {}

    def judge(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 [pairs, 3]."""
        new = list(dict.fromkeys(pair for pair in pairs if pair not in self._known))
        if new:
            self._known.update(zip(new, np.asarray(self._judge.judge(new)), strict=True))
        return np.array([self._known[pair] for pair in pairs], dtype=np.float32).reshape(-1, 3)


class Told:
    """Says of two different texts that they contradict each other: no memory here holds anything but a pair."""

    def judge(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 [pairs, 3]."""
        rows = [(0.95, 0.03, 0.02) if one == other else (0.02, 0.95, 0.03) for one, other in pairs]
        return np.array(rows, dtype=np.float32).reshape(-1, 3)


def read(path: Path) -> dict[str, list[Pair]]:
    """The pairs by the kind of their texts. Ends the program, saying why, where the set is missing."""
    if not path.exists():
        sys.exit(f"{path} is missing: --data names the folder of the public sets (conflictqa)")
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    rows = rows[_TUNED_ON:]
    kinds = {"answers": ("memory_answer", "counter_answer"), "texts": ("parametric_memory", "counter_memory")}
    return {
        name: [Pair(row["question"], (row[one], row[other])) for row in rows] for name, (one, other) in kinds.items()
    }


def made_up() -> dict[str, list[Pair]]:
    """A few pairs, to see that the script runs."""
    return {
        "answers": [
            Pair(f"When was the {thing} built?", (f"The {thing} was built in 1932.", f"The {thing} was built in 1923."))
            for thing in ("bridge", "tower", "mill")
        ]
    }


def rules(judge: Judge) -> dict[str, MemoryRules]:
    """Who is compared: scorers with the thresholds and first veracities that belong to them."""
    as_written, open_to_all = FirstVeracity(contradictions=True), VeracityThreshold(0.0, 0.0, 0.0)
    return {
        "no scoring": MemoryRules(NoScorer(), open_to_all, as_written),
        "verimem": MemoryRules(VeriMemScorer(), first=as_written),
        "mma": MemoryRules(MMAScorer(), open_to_all, as_written),
        "mma, judged": MemoryRules(MMAScorer(judge=judge), open_to_all, as_written),
        "mark": MemoryRules(MARKScorer(), open_to_all, first_trust, update=trust_after),
        "default": MemoryRules(DefaultScorer()),
    }


def measure(pairs: Sequence[Pair], rule: MemoryRules, judge: Judge, reliabilities: tuple[float, float]) -> Counter[str]:
    """Tells all pairs to one memory, then asks; how often what was kept."""
    counts: Counter[str] = Counter()
    now = [0.0]
    with tempfile.TemporaryDirectory() as folder, MemoryStore.create(Path(folder) / "memories") as store:
        service = MemoryService(store, judge=judge, rules=rule, clock=lambda: now[0])
        for number, pair in enumerate(pairs):
            random = Random(f"{number} {pair.question}")
            sides = [random.random() < 0.5, random.random() < 0.5]  # whether the first text is reliable; is told first
            wanted = tell(service, now, Scope(str(number)), pair, sides, reliabilities)
            counts["found"] += any(memory.contradicts for memory in store.scan([Scope(str(number))]))
            counts.update(kept(service, Scope(str(number)), pair.question, wanted))
    return counts


def tell(
    service: MemoryService,
    now: list[float],
    scope: Scope,
    pair: Pair,
    sides: Sequence[bool],
    reliabilities: tuple[float, float],
) -> str:
    """Both sides, a month apart; the id of the one that should be kept."""
    first_is_reliable, first_is_first = sides
    ids: dict[bool, str] = {}
    for place, first in enumerate((first_is_first, not first_is_first)):
        now[0] = place * _APART
        reliable = first == first_is_reliable
        source = MemorySource("user", "ann" if reliable else "bob", reliabilities[0 if reliable else 1])
        ids[first] = service.add(pair.texts[0 if first else 1], scope, source).id
    now[0] = 2 * _APART
    wanted = first_is_reliable if reliabilities[0] != reliabilities[1] else not first_is_first
    return ids[wanted]


def kept(service: MemoryService, scope: Scope, question: str, wanted: str) -> list[str]:
    """What the question brings back."""
    used = service.search(question, [scope], top_k=5).used
    if not used:
        return ["nothing"]
    sure = [one for one in used if one.action is Action.USE]
    return ["reliable" if used[0].memory.id == wanted else "other", *(["both"] if len(sure) > 1 else [])]


def by_hand(judge: Judge) -> dict[str, float]:
    """Shares of the pairs of `longterm_pairs`, per half and kind."""
    figures: dict[str, float] = {}
    for half, kinds in {"tuned": TUNE, "report": REPORT}.items():
        for kind, pairs in kinds.items():
            rows = judge.judge([pair for one, other in pairs for pair in ((one, other), (other, one))])
            alone = rows[:, REFUTED].reshape(-1, 2).max(axis=1) >= LEAST_STRENGTH
            found = [relations(other, [Memory("there", one)], judge)[0].contradiction for one, other in pairs]
            counts = {
                "judge alone": alone.sum(),
                "marked": sum(strength >= LEAST_STRENGTH for strength in found),
                "replaced": sum(same_attribute(*pair) for pair in pairs),
            }
            figures |= {
                f"by hand, {half}, {kind}: {key}": round(count / len(pairs), 4) for key, count in counts.items()
            }
    return figures


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    sides = {"the more reliable one": "reliable", "the other": "other", "none": "nothing"}

    def bars(reliabilities: str) -> dict[str, dict[str, float]]:
        form = rf"answers, judge, {reliabilities}, (.+): "
        return {text: plots.found(document["figures"], form + side) for text, side in sides.items()}

    title = "Which of two contradicting answers comes first, reliabilities {}"
    against = ("0.9 against 0.5", "0.8 against 0.6", "0.7 against 0.7")
    return [plots.Panel(title.format(pair), "", "share of the pairs", bars(pair)) for pair in against]


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        plots.add_option(parser)
        parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the public sets")
        parser.add_argument("--pairs", type=int, default=350, help="at most so many")

    arguments = parse_arguments(__doc__, add)
    sets = made_up() if arguments.smoke else read(arguments.data / "conflictqa" / "gpt4.jsonl")
    built_in = Remembering(load_judge("builtin", device=arguments.device))
    judges: dict[str, Judge] = {"judge": built_in, "told": Told()}
    figures = by_hand(built_in)
    for kind, pairs in sets.items():
        for by, judge in judges.items():
            for name, rule in rules(judge).items():
                for reliabilities in _RELIABILITIES:
                    counts = measure(pairs[: arguments.pairs], rule, judge, reliabilities)
                    setting = f"{kind}, {by}, {reliabilities[0]} against {reliabilities[1]}, {name}"
                    total = len(pairs[: arguments.pairs])
                    for key in ("reliable", "other", "nothing", "both", "found"):
                        figures[f"{setting}: {key}"] = round(counts[key] / total, 4)
    document = report("longterm_conflicts", arguments, {"pairs": total, "days_apart": _APART / DAY}, figures)
    plots.draw(arguments.plot, panels, document)


if __name__ == "__main__":
    main()
