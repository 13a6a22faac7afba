"""From the records of runs to the figures of a table: scores, intervals, paired differences, win rates, costs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ewe.config.setting_names import unknown
from ewe.errors import InvalidRequestError
from ewe.evaluation.factuality import Answer, Found, Grade, Key
from ewe.evaluation.merged_runs import PAPER, Run, System, merged, shared_settings
from ewe.evaluation.prompt_sets import KS
from ewe.evaluation.tables import Interval
from ewe.evaluation.veriscore import ClaimCounts, ResponseScore, median_claims, score_response
from ewe.types import Verdict

_TOKENS = ("prompt_tokens", "unit_tokens_encoded", "tokens_kept", "tokens_discarded")
_COSTS = (*_TOKENS, "passes", "retrievals", "verifications", "rewrites")
_FEW = 10  # The bootstrap draws from the answers that are there.
_CURVE = 0.6, 1.0, 1.6, 2.4  # Of K: who leads at one length must not lead by the choice of K.


@dataclass(frozen=True, slots=True)
class Row:
    """One system. Scores in [0, 1] with bootstrap intervals over prompts; None where nothing was graded or compared.

    failed: answers that could not be had, which score 0. ungraded: answers that no judge could grade, left out of the
    scores. unread: sentences without claims because something went wrong. difference: of F1, paired by prompt.
    curve: F1 at the report's `curve_ks`. refuted, off_subject: mean over answers of the share of claims that are;
    repeated: of their sentences; copied: of their tokens, those that are quotations or that nest took from passages.
    passes, retrievals, verifications, rewrites: means per answer.
    tokens_per_claim, seconds_per_claim: tokens put through the model and seconds of the run, per supported claim.
    Speeds leave out an answer that was written alone, before the others.
    paper: F1 and win rate in the paper, in percent.
    """

    system: str
    answers: int
    failed: int
    ungraded: int
    unread: int
    refusals: int
    claims: int
    supported: int
    precision: Interval | None
    recall: Interval | None
    f1: Interval | None
    difference: Interval | None
    curve: tuple[Interval, ...]
    refuted: Interval | None
    off_subject: Interval | None
    repeated: Interval | None
    copied: float
    win_rate: Interval | None
    tokens_per_s: float
    passes: float
    retrievals: float
    verifications: float
    rewrites: float
    tokens_per_claim: float | None
    seconds_per_claim: float | None
    paper: tuple[float | None, float | None] | None = None
    series: str = ""
    x: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The table of one set.

    k_is_fixed: whether K was fixed beforehand, and is not the median of the answers. axis: of a sweep.
    """

    name: str
    prompts: int
    k: float
    k_is_fixed: bool
    curve_ks: tuple[float, ...]
    baseline: str
    axis: str
    notes: tuple[str, ...]
    rows: tuple[Row, ...]


def reports_of(runs: Sequence[Run], baseline: str | None = None) -> list[Report]:
    """A table per prompt set. baseline: the row that others are compared with; None: that of the runs.

    Raises InvalidRequestError for runs of one set that cannot stand in one table, or a baseline that is not there.
    """
    by_set: dict[str, list[Run]] = {}
    for run in runs:
        by_set.setdefault(run.settings["set"]["name"], []).append(run)
    return [_report(own, baseline) for own in by_set.values()]


def _report(runs: Sequence[Run], baseline: str | None) -> Report:
    settings = shared_settings(runs)
    systems, recorded = merged(runs)
    chosen = baseline or next(label for label, one in systems.items() if one.name == settings["baseline"])
    if chosen not in systems:
        raise InvalidRequestError(unknown("system", chosen, list(systems)))
    name, fixed = settings["set"]["name"], settings["set"]["k"]
    counts = {key: recorded.counts(key) for key in recorded.answers}
    graded = {key: item for key, item in counts.items() if item is not None}
    k = fixed or median_claims(graded.values())
    ks = tuple(max(float(round(share * k)), 1.0) for share in _CURVE)
    scores = {key: score_response(item, k) for key, item in graded.items()}
    table = _Scored(recorded, graded, scores, ks, chosen, name)
    answered = {label for label, _ in recorded.answers}
    rows = tuple(table.row(label, system) for label, system in systems.items() if label in answered)
    notes = tuple(_notes(settings, rows))
    return Report(name, settings["set"]["prompts"], k, bool(fixed), ks, chosen, settings["axis"], notes, rows)


@dataclass(frozen=True, slots=True)
class _Scored:
    """All answers of a table with their scores; from here on a row is a matter of its own."""

    records: Found
    counts: Mapping[Key, ClaimCounts]
    scores: Mapping[Key, ResponseScore]
    curve_ks: Sequence[float]
    baseline: str
    set_name: str

    def row(self, label: str, system: System) -> Row:
        """The figures of one system."""
        answers = {key: answer for key, answer in self.records.answers.items() if key[0] == label}
        counts = [self.counts[key] for key in answers if key in self.counts]
        scores = [self.scores[key] for key in answers if key in self.scores]
        supported = sum(item.supported for item in counts)
        timed = {key: answer for key, answer in answers.items() if not answer.was_alone} or answers
        wall_s = sum(answer.wall_s for answer in timed.values())
        supported_meanwhile = sum(self.counts[key].supported for key in timed if key in self.counts)
        grades = [self.records.grades[key] for key in answers if key in self.records.grades]
        total = {name: sum(answer.stats.get(name, 0) for answer in answers.values()) for name in _COSTS}
        return Row(
            system=label,
            answers=len(answers),
            failed=sum(bool(answer.error) for answer in answers.values()),
            ungraded=len(answers) - len(counts),
            unread=sum(grade.unread for grade in grades),
            refusals=sum(item.refused for item in counts),
            claims=sum(item.stated for item in counts),
            supported=supported,
            precision=_mean([score.precision for score in scores]),
            recall=_mean([score.recall for score in scores]),
            f1=_mean([score.f1 for score in scores]),
            difference=_mean(self._differences(label)),
            curve=tuple(
                Interval.of_mean([score_response(one, k).f1 for one in counts]) for k in self.curve_ks if counts
            ),
            refuted=_mean([self._refuted(key) for key in answers if key in self.counts]),
            off_subject=_mean(list(_off_subject(grades))),
            repeated=_mean([grade.repeated / grade.sentences for grade in grades if grade.sentences]),
            copied=fmean(_copied(answer) for answer in answers.values()),
            win_rate=_mean(self._wins(label)),
            tokens_per_s=sum(answer.stats.get("tokens_kept", 0) for answer in timed.values()) / max(wall_s, 1e-9),
            passes=total["passes"] / len(answers),
            retrievals=total["retrievals"] / len(answers),
            verifications=total["verifications"] / len(answers),
            rewrites=total["rewrites"] / len(answers),
            tokens_per_claim=sum(total[name] for name in _TOKENS) / supported if supported else None,
            seconds_per_claim=wall_s / supported_meanwhile if supported_meanwhile else None,
            paper=system.paper.get(self.set_name),
            series=system.about["series"],
            x=system.about["x"],
        )

    def _differences(self, label: str) -> list[float]:
        """F1 less that of the baseline, per prompt that both have a score for; none for the baseline itself."""
        if label == self.baseline:
            return []
        own = {prompt: score for (system, prompt), score in self.scores.items() if system == label}
        others = {prompt: score for (system, prompt), score in self.scores.items() if system == self.baseline}
        return [score.f1 - others[prompt].f1 for prompt, score in own.items() if prompt in others]

    def _refuted(self, key: Key) -> float:
        claims = self.records.grades[key].claims if key in self.records.grades else ()
        refuted = {text for text, verdict in claims if verdict == Verdict.REFUTED}
        return len(refuted) / max(len({text for text, _ in claims}), 1)

    def _wins(self, label: str) -> list[float]:
        """Per prompt the mean score of both orders."""
        compared = (item for key, item in self.records.preferences.items() if key[0] == label)
        return [fmean(item.scores) for item in compared if not item.error and item.against == self.baseline]


def _off_subject(grades: Iterable[Grade]) -> Iterator[float]:
    """Per answer to a prompt that names its article, the share of its claims that are true of others only."""
    for grade in grades:
        if grade.off_subject is not None:
            yield len(set(grade.off_subject)) / max(len({text for text, _ in grade.claims}), 1)


def _copied(answer: Answer) -> float:
    return min(answer.stats.get("tokens_copied", 0) / max(answer.stats.get("tokens_kept", 0), 1), 1.0)


def _mean(values: Sequence[float]) -> Interval | None:
    return Interval.of_mean(values) if values else None


def _notes(settings: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[str]:
    """What a reader of the table must know."""
    judges, asked = settings["judges"], settings["set"]
    prompts = asked["prompts"]
    yield f"Graded by {judges['judge']}."
    if judges.get("claims") == "sentences" and asked["k"] == KS.get(asked["name"], 0):
        yield (
            "Claims are whole sentences here; the paper's K and figures count atomic claims, of which a sentence holds "
            "several: name a model with --claims, or fix a K of your own with --k."
        )
    if prompts < _FEW:
        yield f"With fewer than {_FEW} prompts the intervals are narrower than they should be."
    if judges["same"]:
        yield "The judge is also what checked sentences while they were written: its figures flatter those systems."
    for row in rows:
        holds_of = {
            f"{row.answers} of {prompts} prompts answered": row.answers < prompts,
            f"{row.failed} answers failed and score 0": row.failed,
            f"{row.ungraded} answers could not be graded and are left out": row.ungraded,
            f"{row.unread} sentences could not be read by the judge": row.unread,
        }
        notes = [text for text, holds in holds_of.items() if holds]
        if notes:
            yield f"{row.system}: {'; '.join(notes)}."
    if any(row.paper for row in rows):
        yield f"Paper: {PAPER['source']}."
