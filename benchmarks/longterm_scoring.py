"""Which memories are believed: each scorer of long-term memory on the same generated sessions of many months.

Facts of made-up towns ("The mayor of Town3 is Name17."), one shared memory. Every day users tell some: careful ones are
right 19 times in 20, careless ones 12 in 20, and a liar repeats the same few lies; the reliabilities that are known of
them are 0.8, 0.6 and 0.6. A fifth of the facts change once, so that what was true goes stale. Questions are answered by
the first memory that may be used; half of the wrong answers are corrected by a user with reliability 0.9, and one right
answer in ten is confirmed. All scorers read stores that are written in the same way (contradictions marked,
corrections, feedback), by a judge that knows the form of the statements and errs on a share of the pairs. Belief
against truth (AUROC, calibration error in ten bins) is taken over every memory that a question found. The figures
compare scorers under the habits of this world; no language model takes part.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.common import parse_arguments, report
from ewe.longterm.recall import Recall
from ewe.longterm.records import MemorySource, Scope
from ewe.longterm.scoring.default import DefaultScorer
from ewe.longterm.scoring.mma import PUBLISHED_WEIGHTS
from ewe.longterm.scoring.protocol import MemoryScorer
from ewe.longterm.scoring.scorers import MARKScorer, MMAScorer, NoScorer, VeriMemScorer
from ewe.longterm.scoring.verimem_threshold import Action, VeracityThreshold
from ewe.longterm.service import MemoryRules, MemoryService
from ewe.longterm.store import MemoryStore

_DAY = 86400.0
_SHARED = Scope()
_ATTRIBUTES = ("mayor", "river", "patron", "bakery", "emblem", "festival", "architect", "dialect")
_FORM = re.compile(r"(?:No, )?[Tt]he (\w+) of (\w+) is (\w+)\.")
_NO_THRESHOLD = VeracityThreshold(0.0, 0.0, 0.0)
_TRUSTED = MemorySource("user", "editor", 0.9)


@dataclass(frozen=True, slots=True)
class Told:
    """What users are, and how often they are right."""

    name: str
    right: float
    reliability: float


_USERS = [Told(f"careful{n}", 0.95, 0.8) for n in range(5)] + [Told(f"careless{n}", 0.6, 0.6) for n in range(2)]
_LIAR = MemorySource("user", "liar", 0.6)
Fact = tuple[str, str]


class FormJudge:
    """Knows whether two statements of the world agree; says the opposite of a share of the pairs, always the same."""

    def __init__(self, error: float, seed: int) -> None:
        self._error, self._seed = error, seed

    def judge(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 [pairs, 3]."""
        rows = np.zeros((len(pairs), 3), np.float32)
        for place, pair in enumerate(pairs):
            one, other = (_FORM.fullmatch(text) for text in pair)
            if one is None or other is None or one.groups()[:2] != other.groups()[:2]:
                rows[place] = (0.02, 0.03, 0.95)
                continue
            key = "|".join(sorted(pair)) + str(self._seed)
            wrong = zlib.crc32(key.encode()) % 10_000 < 10_000 * self._error
            rows[place] = (0.93, 0.04, 0.03) if (one.group(3) == other.group(3)) != wrong else (0.04, 0.93, 0.03)
        return rows


class World:
    """The facts, what each is on each day, and the lies."""

    def __init__(self, towns: int, days: int, seed: int) -> None:
        random = Random(seed)
        self.facts = [(attribute, f"Town{n}") for n in range(towns) for attribute in _ATTRIBUTES]
        self._first = {fact: f"Name{random.randrange(10_000)}" for fact in self.facts}
        changed = random.sample(self.facts, len(self.facts) // 5)
        self._changes = {
            fact: (random.randrange(days // 4, days), f"Name{random.randrange(10_000)}") for fact in changed
        }
        self.lies = [self.statement(fact, f"Name{random.randrange(10_000)}") for fact in random.sample(self.facts, 5)]

    def value(self, fact: Fact, day: int) -> str:
        """What is true on a day."""
        at, new = self._changes.get(fact, (day + 1, ""))
        return new if day >= at else self._first[fact]

    def is_true(self, text: str, day: int) -> bool:
        """Whether a statement is true on a day."""
        found = _FORM.fullmatch(text)
        return found is not None and self.value((found.group(1), found.group(2)), day) == found.group(3)

    @staticmethod
    def statement(fact: Fact, value: str) -> str:
        """A fact in words."""
        return f"The {fact[0]} of {fact[1]} is {value}."


@dataclass(slots=True)
class Tally:
    """What came of the questions to one system."""

    answers: Counter[str] = field(default_factory=Counter)
    beliefs: list[float] = field(default_factory=list)
    truths: list[bool] = field(default_factory=list)
    corrected: dict[tuple[Fact, str], int] = field(default_factory=dict)

    def figures(self) -> dict[str, float]:
        """Shares of all questions; belief against truth; wrong answers to what a trusted user had corrected."""
        total = self.answers.total()
        after = list(self.corrected.values()) or [0]
        return {
            **{name: self.answers[name] / total for name in ("right", "false", "false_with_warning", "none")},
            "auroc": auroc(np.array(self.beliefs), np.array(self.truths)),
            "calibration_error": calibration_error(np.array(self.beliefs), np.array(self.truths)),
            "wrong_after_correction_mean": float(np.mean(after)),
            "wrong_after_correction_most": float(max(after)),
        }


def play(scorer: MemoryScorer, threshold: VeracityThreshold, world: World, days: int, error: float, seed: int) -> Tally:
    """One system through all days, on a store of its own that is thrown away."""
    folder = Path(tempfile.mkdtemp())
    tally, now = Tally(), [0.0]
    try:
        with MemoryStore.create(folder / "memories") as store:
            rules = MemoryRules(scorer=scorer, threshold=threshold)
            service = MemoryService(store, judge=FormJudge(error, seed), rules=rules, clock=lambda: now[0])
            for day in range(days):
                now[0] = day * _DAY
                random = Random(f"{seed} {day}")
                tell(service, world, day, random)
                for _ in range(4):
                    ask(service, world, day, random, tally)
    finally:
        shutil.rmtree(folder)
    return tally


def tell(service: MemoryService, world: World, day: int, random: Random) -> None:
    """What users say on a day: six statements and a lie."""
    for _ in range(6):
        user, fact = random.choice(_USERS), random.choice(world.facts)
        value = world.value(fact, day) if random.random() < user.right else f"Name{random.randrange(10_000)}"
        service.add(world.statement(fact, value), _SHARED, MemorySource("user", user.name, user.reliability))
    lie = random.choice(world.lies)
    service.add(random.choice([lie, f"No, t{lie[1:]}"]), _SHARED, _LIAR)


def ask(service: MemoryService, world: World, day: int, random: Random, tally: Tally) -> None:
    """One question, its answer, and what users say of that."""
    fact, mood = random.choice(world.facts), random.random()
    recall = service.search(f"What is the {fact[0]} of {fact[1]}?", [_SHARED], top_k=10)
    about = [
        one for one in recall.used if (match := _FORM.fullmatch(one.memory.content)) and match.groups()[:2] == fact
    ]
    count_beliefs(recall, world, day, tally)
    if not about:
        tally.answers["none"] += 1
        return
    answer, truth = about[0], world.value(fact, day)
    right = world.is_true(answer.memory.content, day)
    warned = answer.action is Action.USE_WITH_UNCERTAINTY
    tally.answers["right" if right else "false_with_warning" if warned else "false"] += 1
    if not right:
        if (fact, truth) in tally.corrected:
            tally.corrected[fact, truth] += 1
        if mood < 0.5:
            service.correct(_SHARED, answer.memory.id, world.statement(fact, truth), _TRUSTED)
            tally.corrected.setdefault((fact, truth), 0)
    elif mood < 0.1:
        service.feedback(_SHARED, answer.memory.id, True, MemorySource("user", random.choice(_USERS).name, 0.8))


def count_beliefs(recall: Recall, world: World, day: int, tally: Tally) -> None:
    """Every memory found, with what was believed of it and whether it is true."""
    for one in (*recall.used, *recall.disregarded):
        tally.beliefs.append(one.belief)
        tally.truths.append(world.is_true(one.memory.content, day))


def auroc(beliefs: np.ndarray, truths: np.ndarray) -> float:
    """The chance that a true memory is believed more than a false one, ties half; 1/2 without both kinds."""
    true, false = np.sort(beliefs[truths]), np.sort(beliefs[~truths])
    if not len(true) or not len(false):
        return 0.5
    below, upto = np.searchsorted(false, true, "left"), np.searchsorted(false, true, "right")
    return float((below + upto).sum() / (2 * len(true) * len(false)))


def calibration_error(beliefs: np.ndarray, truths: np.ndarray) -> float:
    """Mean distance between belief and share of true ones over ten bins, weighted by their sizes."""
    bins = np.minimum((beliefs * 10).astype(int), 9)
    gaps = [(bins == b).mean() * abs(beliefs[bins == b].mean() - truths[bins == b].mean()) for b in np.unique(bins)]
    return float(sum(gaps))


def systems(judge: FormJudge) -> dict[str, tuple[MemoryScorer, VeracityThreshold]]:
    """Who is compared: scorers with the thresholds that belong to them."""
    open_to_all, veracity = _NO_THRESHOLD, VeracityThreshold()
    table: dict[str, tuple[MemoryScorer, VeracityThreshold]] = {
        "none": (NoScorer(), open_to_all),
        "verimem": (VeriMemScorer(), veracity),
        "mma": (MMAScorer(), open_to_all),
        "mma, judged": (MMAScorer(judge=judge), open_to_all),
        **{f"mma {mode}": (MMAScorer(PUBLISHED_WEIGHTS.ablated(mode)), open_to_all) for mode in ("st", "cs", "tc")},
        "mark": (MARKScorer(), open_to_all),
        "mark, as written": (MARKScorer(as_written=True), open_to_all),
        "default": (DefaultScorer(), veracity),
        "default, age ignored": (DefaultScorer(half_life_days=1e9), veracity),
    }
    return table


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--towns", type=int, default=10, help="towns with eight facts each")
    parser.add_argument("--days", type=int, default=180, help="days of seven statements and four questions")
    parser.add_argument("--seeds", type=int, default=3, help="worlds, over which figures are averaged")
    parser.add_argument("--judge-error", type=float, default=0.05, help="share of pairs that the judge gets wrong")


def main() -> None:
    """Plays all systems and reports the figures."""
    arguments = parse_arguments(__doc__, _add_arguments)
    towns, days, seeds = (1, 8, 1) if arguments.smoke else (arguments.towns, arguments.days, arguments.seeds)
    figures: dict[str, float] = {}
    for name, (scorer, threshold) in systems(FormJudge(arguments.judge_error, 0)).items():
        rows = [
            play(scorer, threshold, World(towns, days, seed), days, arguments.judge_error, seed).figures()
            for seed in range(seeds)
        ]
        figures |= {f"{name}: {key}": round(float(np.mean([row[key] for row in rows])), 3) for key in rows[0]}
    settings = {"towns": towns, "days": days, "seeds": seeds, "judge_error": arguments.judge_error}
    report("longterm_scoring", arguments, settings, figures)


if __name__ == "__main__":
    main()
