"""What asking LoCoMo's questions found: shares per system with intervals, and the paired difference to a baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from ewe.evaluation.tables import DRAWS, Interval
from ewe.longterm.evaluation.abstention import risk_coverage
from ewe.longterm.evaluation.locomo_questions import ADVERSARIAL

_FIGURE_DRAWS = DRAWS // 10
_TITLES = (
    "system", "questions", "contained", "difference", "ratio", "token F1", "abstained", "adversarial",
    "abstained there", "prompt tokens",
)  # fmt: skip
_SELECTIVE = (
    "system",
    "answers",
    "right",
    "AURC, confidence",
    "AURC, cosine",
    "AURC, constant",
    "confidence - constant",
)


@dataclass(frozen=True, slots=True)
class LoCoMoAnswer:
    """What one system said to one question, and how sure memory was; error: why it could not be asked.

    contained, f1: of an answerable question (`is_answered`, `token_f1`). confidence, cosine: as `Given` has them.
    prompt_tokens: with units. wall_s: its share of the seconds that its lot of questions took.
    """

    question: str
    system: str
    category: str
    text: str
    contained: bool
    f1: float
    abstained: bool
    prompt_tokens: int
    confidence: float
    cosine: float
    wall_s: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class LoCoMoRow:
    """One system: its answerable questions, then the adversarial ones; None where there are none to compare with.

    difference, ratio: of contained answers to those of the baseline on the same questions. categories: contained.
    """

    system: str
    questions: int
    contained: Interval
    difference: Interval | None
    ratio: Interval | None
    f1: Interval
    abstained: Interval
    adversarial: int
    abstained_there: Interval | None
    prompt_tokens: float
    failed: int
    categories: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SelectiveRow:
    """How well a confidence ranks a system's answers: the area under risk over coverage (less is better).

    Of memory's confidence, of the retriever's cosine, and of a constant, which is the share of wrong answers.
    """

    system: str
    answers: int
    right: float
    confidence: Interval
    cosine: Interval
    constant: float
    gain: Interval


def summarise_locomo(systems: Sequence[str], answers: Sequence[LoCoMoAnswer], baseline: str) -> list[LoCoMoRow]:
    """A row for every system that has answered a question that has an answer."""
    there = {one.question: float(one.contained) for one in answers if one.system == baseline and _answerable(one)}
    rows = []
    for system in systems:
        own = [one for one in answers if one.system == system]
        if any(map(_answerable, own)):
            rows.append(_row(system, own, {} if system == baseline else there))
    return rows


def selective_rows(systems: Sequence[str], answers: Sequence[LoCoMoAnswer]) -> list[SelectiveRow]:
    """A row for every system with memories: whether confidence ranks right answers over wrong ones (the MMA paper, 6b).

    Right is a contained answer; of an adversarial question no answer is right but an abstention.
    """
    rows = []
    for system in systems:
        own = [one for one in answers if one.system == system]
        if any(one.confidence for one in own):
            rows.append(_selective(system, own))
    return rows


def locomo_table(rows: Sequence[LoCoMoRow]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Titles and cells."""
    return _TITLES, [_cells(row) for row in rows]


def selective_table(rows: Sequence[SelectiveRow]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Titles and cells."""
    return _SELECTIVE, [
        [row.system, str(row.answers), f"{row.right:.2f}", _plain(row.confidence), _plain(row.cosine),
         f"{row.constant:.3f}", _plain(row.gain)]
        for row in rows
    ]  # fmt: skip


def _answerable(answer: LoCoMoAnswer) -> bool:
    return answer.category != ADVERSARIAL


def _row(system: str, own: Sequence[LoCoMoAnswer], baseline: Mapping[str, float]) -> LoCoMoRow:
    answerable, traps = list(filter(_answerable, own)), [one for one in own if not _answerable(one)]
    pairs = np.array([(float(one.contained), baseline[one.question]) for one in answerable if one.question in baseline])
    kinds = dict.fromkeys(one.category for one in answerable)
    return LoCoMoRow(
        system=system,
        questions=len(answerable),
        contained=Interval.of_mean([float(one.contained) for one in answerable]),
        difference=Interval.of_mean((pairs[:, 0] - pairs[:, 1]).tolist()) if len(pairs) else None,
        ratio=ratio_of(pairs) if len(pairs) and pairs[:, 1].any() else None,
        f1=Interval.of_mean([one.f1 for one in answerable]),
        abstained=Interval.of_mean([float(one.abstained) for one in answerable]),
        adversarial=len(traps),
        abstained_there=Interval.of_mean([float(one.abstained) for one in traps]) if traps else None,
        prompt_tokens=fmean(one.prompt_tokens for one in own),
        failed=sum(bool(one.error) for one in own),
        categories={
            kind: Interval.of_mean([float(one.contained) for one in answerable if one.category == kind])
            for kind in kinds
        },
    )


def ratio_of(pairs: NDArray[np.float64]) -> Interval:
    """The first column's sum over the second's, which must not be 0; its interval by drawing pairs again."""
    return Interval.of_figure(
        pairs, lambda drawn: float(drawn[:, 0].sum() / max(drawn[:, 1].sum(), 1.0)), _FIGURE_DRAWS
    )


def _selective(system: str, own: Sequence[LoCoMoAnswer]) -> SelectiveRow:
    right = [one.contained if _answerable(one) else one.abstained for one in own]
    values = np.array([(one.confidence, one.cosine, float(hit)) for one, hit in zip(own, right, strict=True)])

    def area(drawn: NDArray[np.float64], column: int) -> float:
        return risk_coverage(drawn[:, column].tolist(), drawn[:, 2].astype(bool).tolist()).area

    share = float(values[:, 2].mean())
    return SelectiveRow(
        system=system,
        answers=len(own),
        right=share,
        confidence=Interval.of_figure(values, lambda drawn: area(drawn, 0), _FIGURE_DRAWS),
        cosine=Interval.of_figure(values, lambda drawn: area(drawn, 1), _FIGURE_DRAWS),
        constant=1.0 - share,
        gain=Interval.of_figure(
            values, lambda drawn: area(drawn, 0) - (1.0 - float(drawn[:, 2].mean())), _FIGURE_DRAWS
        ),
    )


def _cells(row: LoCoMoRow) -> list[str]:
    failed = f" ({row.failed} could not be asked)" if row.failed else ""
    difference = (
        "-"
        if row.difference is None
        else f"{row.difference.value:+.1%} ({row.difference.low:+.1%} to {row.difference.high:+.1%})"
    )
    return [
        row.system, f"{row.questions}{failed}", str(row.contained), difference,
        "-" if row.ratio is None else _plain(row.ratio, 2), _plain(row.f1), f"{row.abstained.value:.1%}",
        str(row.adversarial), "-" if row.abstained_there is None else str(row.abstained_there),
        f"{row.prompt_tokens:.0f}",
    ]  # fmt: skip


def _plain(figure: Interval, digits: int = 3) -> str:
    return f"{figure.value:.{digits}f} ({figure.low:.{digits}f} to {figure.high:.{digits}f})"
