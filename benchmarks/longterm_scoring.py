"""Which memories are believed: each scorer of long-term memory on the same generated sessions of many months.

Facts of made-up towns ("The mayor of Town3 is Name17."), one shared memory. Every day people tell some: careful ones
are right 19 times in 20, careless ones 12 in 20, and a liar repeats the same few lies; the reliabilities that are known
of them are 0.8, 0.6 and 0.6. A fifth of the facts change once, so that what was true goes stale. Questions, a third of
them with much at stake, are answered by the first memory that may be used; half of the wrong answers are corrected by a
user with reliability 0.9, and one right answer in ten is confirmed. All systems hear the same, and a judge that knows
the form of the statements errs on a share of the pairs for all of them. Systems "with a library" may look half of the
facts up, and review ten memories a week.

right, false, none (and the same with a warning): shares of all questions. false_and_nobody_told: those false answers
where no memory held the truth. auroc, calibration_error (ten bins): belief against truth of every memory in the store,
each in the company of all others about its fact, every 15 days. wrong_after_correction: wrong answers to what a trusted
user had corrected, per correction, the mean and the most. The figures compare scorers under the habits of this world;
no language model takes part. The worlds that are played by default were not looked at while the default was designed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from benchmarks import plots
from benchmarks.common import parse_arguments, report
from benchmarks.session_figures import Figures, markdown, plot
from benchmarks.sessions import DAY, SHARED, Fact, FormJudge, Library, Tally, World, ask, fact_of, tell
from ewe.longterm.recall import MemoryRules
from ewe.longterm.records import Memory
from ewe.longterm.scoring.forms import FirstVeracity, first_trust, trust_after
from ewe.longterm.scoring.mma import PUBLISHED_WEIGHTS
from ewe.longterm.scoring.protocol import Candidate
from ewe.longterm.scoring.scorers import (
    DefaultScorer,
    MARKScorer,
    MMAScorer,
    NoScorer,
    SettledMARKScorer,
    VeriMemScorer,
)
from ewe.longterm.scoring.threshold import VeracityThreshold
from ewe.longterm.scoring.verimem import InitialWeights
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore

_FIRST_SEED = 10  # 0 and 1 are the worlds that the default scorer was designed on
_AUDIT_DAYS, _REVIEW_DAYS, _REVIEWED = 15, 7, 10
_OPEN = VeracityThreshold(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class System:
    """How memories are scored, and what there is to check them by: the share of a library's entries that is wrong."""

    rules: MemoryRules
    library: float | None = None
    reviews: bool = False


def systems(judge: FormJudge) -> dict[str, System]:
    """Who is compared: scorers with the thresholds and first veracities that belong to them, and their ablations."""
    as_written = FirstVeracity(contradictions=True)
    verimem = MemoryRules(VeriMemScorer(), first=as_written)
    mma = partial(MemoryRules, threshold=_OPEN, first=as_written)
    mark = partial(MemoryRules, threshold=_OPEN, first=first_trust, update=trust_after)
    default = MemoryRules(DefaultScorer())
    weighted = {"source only": (1.0, 0.0, 0.0), "consistency only": (0.0, 0.0, 1.0), "both alike": (0.5, 0.0, 0.5)}
    rules = {
        "none": mma(NoScorer()),
        "verimem": verimem,
        **{
            f"verimem, {name}": replace(verimem, first=FirstVeracity(InitialWeights(*weights), True))
            for name, weights in weighted.items()
        },
        "verimem, fixed threshold": replace(verimem, threshold=VeracityThreshold(scale=0.0)),
        "verimem, no threshold": replace(verimem, threshold=_OPEN),
        "mma": mma(MMAScorer()),
        "mma, judged": mma(MMAScorer(judge=judge)),
        **{f"mma {mode}": mma(MMAScorer(PUBLISHED_WEIGHTS.ablated(mode))) for mode in ("st", "cs", "tc")},
        "mark": mark(MARKScorer()),
        "mark, settled": mma(SettledMARKScorer()),
        "mark, as written": mark(MARKScorer(as_written=True)),
        "default": default,
        "default, age ignored": replace(default, scorer=DefaultScorer(half_life_days=1e9)),
        "default, contradictions on write too": replace(default, first=as_written),
        "default, no threshold": replace(default, threshold=_OPEN),
    }
    return {
        **{name: System(one) for name, one in rules.items()},
        "verimem with a library": System(verimem, 0.0, reviews=True),
        "verimem with a library, no reviews": System(verimem, 0.0),
        "verimem with a careless library": System(verimem, 0.2, reviews=True),
        "default with a library": System(default, 0.0, reviews=True),
        "default with a careless library": System(default, 0.2, reviews=True),
    }


def play(system: System, towns: int, days: int, error: float, seed: int) -> Tally:
    """One system through all days, on a store of its own that is thrown away."""
    folder = Path(tempfile.mkdtemp())
    world, tally, now = World(towns, days, seed), Tally(), [0.0]
    library = None if system.library is None else Library(world, seed, system.library)
    judge = FormJudge(error, seed)
    try:
        with MemoryStore.create(folder / "memories") as store:
            service = MemoryService(store, judge=judge, trusted=library, rules=system.rules, clock=lambda: now[0])
            for day in range(days):
                now[0] = day * DAY
                if library is not None:
                    library.day = day
                random = Random(f"{seed} {day}")
                tell(service, world, day, random)
                if system.reviews and day % _REVIEW_DAYS == _REVIEW_DAYS - 1:
                    service.review(_REVIEWED)
                for _ in range(4):
                    ask(service, world, day, random, tally)
                if day % _AUDIT_DAYS == _AUDIT_DAYS - 1 or days < _AUDIT_DAYS:
                    audit(service, system, world, day, tally)
    finally:
        shutil.rmtree(folder)
    return tally


def audit(service: MemoryService, system: System, world: World, day: int, tally: Tally) -> None:
    """What is believed of every memory, asked of the scorer fact by fact."""
    groups: dict[Fact | None, list[Memory]] = {}
    for memory in service.store.scan([SHARED]):
        groups.setdefault(fact_of(memory.content), []).append(memory)
    for memories in groups.values():
        scores = system.rules.scorer.score([Candidate(memory, 1.0) for memory in memories], day * DAY)
        tally.beliefs += [score.belief for score in scores]
        tally.truths += [world.is_true(memory.content, day) for memory in memories]


def main() -> None:
    """Plays all systems and reports the figures."""
    arguments = parse_arguments(__doc__, _add_arguments)
    towns, days, seeds = (1, 2, 1) if arguments.smoke else (arguments.towns, arguments.days, arguments.seeds)
    table = {name: Figures() for name in systems(FormJudge(0.0, 0))}
    for seed in range(_FIRST_SEED, _FIRST_SEED + seeds):
        for name, system in systems(FormJudge(arguments.judge_error, seed)).items():
            table[name].add(play(system, towns, days, arguments.judge_error, seed))
    if arguments.plot:
        plot(arguments.plot, table)
    if arguments.markdown:
        print(markdown(table))
    settings = {"towns": towns, "days": days, "seeds": seeds, "judge_error": arguments.judge_error}
    summaries = {name: figures.summary() for name, figures in table.items()}
    report(
        "longterm_scoring",
        arguments,
        settings,
        {f"{name}: {key}": round(value, 3) for name, row in summaries.items() for key, value in row.items()},
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--towns", type=int, default=10, help="towns with eight facts each")
    parser.add_argument("--days", type=int, default=180, help="days of seven statements and four questions")
    parser.add_argument("--seeds", type=int, default=3, help="worlds, over which figures are averaged")
    parser.add_argument("--judge-error", type=float, default=0.05, help="share of pairs that the judge gets wrong")
    plots.add_option(parser)
    parser.add_argument("--markdown", action="store_true", help="print the figures as a table, too")


if __name__ == "__main__":
    main()
