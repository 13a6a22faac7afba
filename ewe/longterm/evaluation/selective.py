"""Selective answering on FEVER and LoCoMo: what it is worth to abstain (the MMA paper, appendices B and C)."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ewe.errors import ConfigError
from ewe.evaluation.qa_questions import contains
from ewe.evaluation.tables import Curves, save_curves
from ewe.longterm.evaluation.abstention import (
    Outcomes,
    abstains,
    risk_coverage,
    selective_score,
    threshold_for_risk,
    utility,
)
from ewe.longterm.evaluation.bench import AREA, Bench, Finding, Setup, by_system, risk_curve
from ewe.longterm.evaluation.mma_cases import FALSE, TRUE, UNKNOWN
from ewe.longterm.evaluation.protocol import Answerer, Asked, MemorySystem, Reply
from ewe.longterm.evaluation.selective_sets import Item, Query, fever_items, locomo_items
from ewe.verification.judges.cached import CachedJudge
from ewe.verification.judges.protocol import REFUTED, SUPPORTED, Judge

_FEVER_CLAIMS = 500  # the MMA paper, appendix B
_ALPHAS = tuple(step / 10 for step in range(11))
_STAKES = {"": (1.0, 0.2), "_strict": (2.0, 0.5)}  # lambda and r of tables 7 and 8
_MAX_RISK = 0.3
_QUOTED = 5  # turns that the reader of LoCoMo may quote
_LEAST = 0.5
_COLUMNS = {
    "raw": "raw acc.", "selective": "selective, alpha .2", "coverage": "coverage", "actionable": "actionable acc.",
    "due": "abstain precision", "utility": "utility, 1/.2", "utility_expected": "by expected utility",
    "utility_strict": "utility, 2/.5", "utility_strict_expected": "by expected utility, 2/.5",
    "utility_risk": "by risk of .3", AREA: "area of risk", "pairs": "judged pairs",
}  # fmt: skip
_CONFIDENCE = re.compile(r"confidence ([01]\.\d+)")


class CountedJudge:
    """Counts the pairs that a judge is really asked about."""

    def __init__(self, judge: Judge) -> None:
        self._judge, self.pairs = judge, 0

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """As the judge."""
        self.pairs += len(pairs)
        return self._judge.judge(pairs)


class SelectiveBench(Bench):
    """Items of one set; the judge says what memories support each other, where a scorer asks."""

    columns = _COLUMNS

    def __init__(
        self, name: str, items_by_id: Mapping[str, Item], counted: CountedJudge, reader: Answerer, scorer_judge: Judge
    ) -> None:
        self.name, self.items_by_id, self.items, self.counted = name, items_by_id, list(items_by_id), counted
        self.reader, self.parts = reader, {"scorer_judge": scorer_judge}

    def play(self, system: MemorySystem, item: str) -> Finding:
        """Tells everything, then asks everything."""
        for turn in self.items_by_id[item].turns:
            system.remember(turn)
        queries, before = self.items_by_id[item].queries, self.counted.pairs
        replies = system.answer([query.question for query in queries])
        pairs = [(self.counted.pairs - before) / len(queries)] * len(queries)
        return Finding(self.name, system.name, item, {**figures(queries, replies), "pairs": pairs})

    def plot(self, findings: Sequence[Finding], path: Path) -> None:
        """Risk over coverage (figure 6b) and the selective score over alpha (figure 6a)."""
        risks, scores = {}, {}
        for system, own in by_system(findings).items():
            curve = risk_curve(own)
            risks[system] = (curve.coverage.tolist(), curve.risk.tolist())
            total = Outcomes(*(int(sum(sum(one.values[key]) for one in own)) for key in _COUNTS))
            scores[system] = (_ALPHAS, [selective_score(total, alpha) for alpha in _ALPHAS])
        save_curves([Curves("coverage", "risk", risks), Curves("alpha", "selective score", scores)], path)


_COUNTS = ("right", "wrong", "due_abstentions", "undue_abstentions")


def open_benches(setup: Setup) -> list[SelectiveBench]:
    """FEVER and LoCoMo from the folder of public sets; setup.cases: claims, and questions."""
    from ewe.verification.judges.load import load_judge

    if setup.data is None:
        raise ConfigError("name the folder that holds fever/claims.jsonl and locomo/conversations.json with --data")
    data = setup.data
    counted = CountedJudge(load_judge("builtin"))
    cached = CachedJudge(counted, size=1 << 20)
    fever = fever_items(data / "fever" / "claims.jsonl", setup.cases or _FEVER_CLAIMS, setup.seed)
    locomo = locomo_items(data / "locomo" / "conversations.json", setup.cases)
    return [
        SelectiveBench("fever", fever, counted, lambda queries: read_claims(queries, cached), cached),
        SelectiveBench("locomo", locomo, counted, quote, cached),
    ]


def read_claims(queries: Sequence[Asked], judge: Judge) -> list[str]:
    """Verdicts on claims with their confidence, by a judge in the place of a model.

    confidence: the greatest belief x similarity x probability of the judge's among the memories. A judge is too sure of
    texts that are about something else, so what lies far from the claim counts less.
    """
    claims = [one.question.text.partition(": ")[2] for one in queries]
    pairs = [(one.memory.content, claim) for row, claim in zip(queries, claims, strict=True) for one in row.recalled]
    rows = iter(judge.judge(pairs))
    verdicts = []
    for row in queries:
        judged = [(one.belief * one.similarity, next(rows)) for one in row.recalled]
        sides = {
            side: max((float(weight * shares[column]) for weight, shares in judged), default=0.0)
            for side, column in ((TRUE, SUPPORTED), (FALSE, REFUTED))
        }
        best = max(sides, key=lambda side: sides[side])
        verdicts.append(f"{best if sides[best] >= _LEAST else UNKNOWN}, confidence {sides[best]:.4f}")
    return verdicts


def quote(queries: Sequence[Asked]) -> list[str]:
    """The first five memories word for word: who reads without error finds in them whatever they hold."""
    return ["\n".join(one.memory.content for one in row.recalled[:_QUOTED]) or UNKNOWN for row in queries]


def figures(queries: Sequence[Query], replies: Sequence[Reply]) -> dict[str, list[float]]:
    """One number per question that a column counts. The half of the questions asked first sets the risk's threshold."""
    confidences = [_confidence(reply) for reply in replies]
    answered = [UNKNOWN not in reply.text for reply in replies]
    right = [
        any(contains(text, reply.text) for text in query.right) for query, reply in zip(queries, replies, strict=True)
    ]
    values: dict[str, list[float]] = {key: [] for key in (*_COUNTS, *_COLUMNS, "confidence", "answered_right")}
    half = len(queries) // 2
    known = [place for place in range(half) if answered[place]]
    curve = risk_coverage([confidences[at] for at in known], [right[at] for at in known]) if known else None
    least = None if curve is None else threshold_for_risk(curve, _MAX_RISK)
    for place, query in enumerate(queries):
        due = not query.right
        plain = _outcome(answered[place], right[place], due)
        _count(values, plain)
        for name, (penalty, reward) in _STAKES.items():
            values[f"utility{name}"].append(utility(plain, penalty, reward))
            gives = answered[place] and not abstains(confidences[place], penalty, reward)
            values[f"utility{name}_expected"].append(utility(_outcome(gives, right[place], due), penalty, reward))
        if place >= half:
            gives = answered[place] and least is not None and confidences[place] >= least
            values["utility_risk"].append(utility(_outcome(gives, right[place], due)))
        if answered[place]:
            values["confidence"].append(confidences[place])
            values["answered_right"].append(float(right[place]))
    return values


def _count(values: Mapping[str, list[float]], one: Outcomes) -> None:
    for key in _COUNTS:
        values[key].append(getattr(one, key))
    values["raw"].append(one.raw_accuracy)
    values["selective"].append(selective_score(one))
    values["coverage"].append(one.coverage)
    if one.coverage:
        values["actionable"].append(one.actionable_accuracy)
    else:
        values["due"].append(one.due_abstentions)


def _outcome(answered: bool, right: bool, due: bool) -> Outcomes:
    if answered:
        return Outcomes(int(right), int(not right), 0, 0)
    return Outcomes(0, 0, int(due), int(not due))


def _confidence(reply: Reply) -> float:
    """What the reply says of it, else how far the best of its memories is believed."""
    match = _CONFIDENCE.search(reply.text)
    return float(match.group(1)) if match else reply.confidence
