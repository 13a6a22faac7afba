"""MMA-Bench on this engine's stores: core questions, the 3-step probe, CoRe, modalities, risk over coverage."""

import re
from collections.abc import Iterable, Mapping

import numpy as np

from ewe.longterm.evaluation.bench import AREA, Bench, Finding, Setup
from ewe.longterm.evaluation.mma_cases import (
    FALSE,
    TRUE,
    TRUTHS,
    UNKNOWN,
    VERDICTS,
    Case,
    CoreQuestion,
    asked,
    make_cases,
    read_case,
)
from ewe.longterm.evaluation.mma_reader import FormJudge, read
from ewe.longterm.evaluation.protocol import Answerer, MemorySystem, Question, Reply
from ewe.verification.judges.protocol import Judge

BETA, GAMMA = 0.5, 1.0
"""beta and gamma of eq. 6; the paper prints no values."""
STEPS = (
    "Answer with one word: TRUE, FALSE, or UNKNOWN if the evidence does not settle it.",
    "You said {verdict}. Divide 100 points between TRUE, FALSE and UNKNOWN by how sure you are of each. Answer in this "
    "form: TRUE=number FALSE=number UNKNOWN=number",
    "You said {verdict}. Look for a mistake in that. Then answer with one word: TRUE, FALSE or UNKNOWN.",
)
"""How the same question is asked: for a verdict, for wagers, for a confession."""
TEXT_SIGNALS = {"A": FALSE, "B": FALSE, "C": FALSE, "D": TRUE}
"""S_text: what words alone say of the claim, by logic type; in D nobody but the unreliable user says anything."""
IMAGE_SIGNALS = {"A": FALSE, "B": TRUE, "C": UNKNOWN, "D": UNKNOWN}
"""S_vis: what the picture says of it (the MMA paper, under eq. 6)."""

_WORD = re.compile(r"\b(TRUE|FALSE|UNKNOWN)\b", re.IGNORECASE)
_WAGER = re.compile(r"\b(TRUE|FALSE|UNKNOWN)\b\W{0,3}(\d+(?:\.\d+)?)", re.IGNORECASE)
_CASES = 100
_COLUMNS = {
    "core": "core acc.", "verdict": "verdict acc.", "A": "type A", "B": "type B", "C": "type C", "D": "type D",
    "core_score": "CoRe (eq. 6)", "graded": "CoRe (code)", "graded_D": "type D CoRe (code)",
    "vision": "vision-dominant", "confusion": "confusion", "delta_h": "delta H_rel", "scr": "SCR", "fcr": "FCR",
    AREA: "area of risk",
}  # fmt: skip
_RANGED = {"in_range": "confidence in range"}
_CONFIDENCE = re.compile(r"confidence\W{0,3}([01](?:\.\d+)?)", re.IGNORECASE)
_BRIEF = "Answer in a few words."
_SURE = "Answer in one sentence and end with a line of this form: Confidence: number between 0 and 1"


class MMABench(Bench):
    """Generated cases with an exact reader, or a public one, whose questions want a confidence within a range."""

    name = "mma-bench"

    def __init__(
        self,
        cases: Iterable[Case],
        columns: Mapping[str, str],
        judge: Judge,
        reader: Answerer | None = None,
        captions: bool = True,
    ) -> None:
        self.cases = {case.id: case for case in cases}
        self.items = list(self.cases)
        self.simulated = reader is not None
        self.columns, self.judge, self.reader, self.parts = columns, judge, reader, {"captions": captions}

    def play(self, system: MemorySystem, item: str) -> Finding:
        """One case: its dialogue, its core questions, its probe."""
        case = self.cases[item]
        for turn in case.turns:
            system.remember(turn)
        replies = system.answer([_core(one, case) for one in case.core])
        values: dict[str, list[float]] = {}
        for one, reply in zip(case.core, replies, strict=True):
            values.setdefault("core" if one.confidence is None else "in_range", []).append(_is_right(one, reply))
        probed, probe_replies = probe(system, case) if case.claim else ({}, [])
        return Finding(
            self.name, system.name, item, {**values, **probed}, [one.text for one in [*replies, *probe_replies]]
        )


def open_benches(setup: Setup) -> list[MMABench]:
    """Generated cases, or the one of a file."""
    if setup.data is not None:
        from ewe.verification.judges.cached import CachedJudge
        from ewe.verification.judges.load import load_judge

        return [MMABench([read_case(setup.data)], _RANGED, CachedJudge(load_judge("builtin")))]
    made = make_cases(setup.cases or _CASES, setup.seed, setup.images)
    return [MMABench(made, _COLUMNS, FormJudge(), read, captions=setup.images is None)]


def probe(system: MemorySystem, case: Case) -> tuple[dict[str, list[float]], list[Reply]]:
    """The verdict, the wagers and the confession, and the wagers by words alone and by pictures alone."""
    truth, logic = TRUTHS[case.logic], case.logic

    def ask(step: int, verdict: str = "", only: str = "") -> Question:
        form = STEPS[step].format(verdict=verdict or UNKNOWN)
        return Question(asked(case.claim), case.question_time, truth, VERDICTS, form, only)

    [first] = system.answer([ask(0)])
    verdict = read_verdict(first.text)
    second, by_text, by_image, third = system.answer(
        [ask(1, verdict), ask(1, verdict, "text"), ask(1, verdict, "image"), ask(2, verdict)]
    )
    points, last = read_wagers(second.text), read_verdict(third.text)
    uncertainties = [entropy(read_wagers(reply.text)) for reply in (by_text, by_image)]
    right, graded = float(verdict == truth), graded_core_score(verdict, logic)
    values = {
        "verdict": [right], logic: [right], "core_score": [core_score(verdict, points, logic)], "graded": [graded],
        "delta_h": [relative_uncertainty(*uncertainties)], **correction_rates(verdict, last, truth),
        "confidence": [points.get(verdict, 0.0) / 100.0], "answered_right": [right],
    }  # fmt: skip
    if logic == "D":
        values["graded_D"] = [graded]
    if logic != "A":
        values |= {side: [float(alignment(verdict, logic) == side)] for side in ("vision", "confusion")}
    return values, [first, second, by_text, by_image, third]


def _core(one: CoreQuestion, case: Case) -> Question:
    truth = one.answers[0] if one.answers else ""
    form = _SURE if one.confidence else STEPS[0] if one.choices == VERDICTS else _BRIEF
    return Question(one.text, case.question_time, truth, one.choices or (UNKNOWN,), form)


def _is_right(one: CoreQuestion, reply: Reply) -> float:
    if one.confidence is not None:
        match = _CONFIDENCE.search(reply.text)
        return float(match is not None and one.confidence[0] <= float(match.group(1)) <= one.confidence[1])
    if one.choices == VERDICTS:
        return float(read_verdict(reply.text) in one.answers)
    named = [choice for choice in one.choices if re.search(rf"\b{re.escape(choice)}\b", reply.text)]
    return float(np.isin(named, one.answers).all() and bool(named))


def read_verdict(reply: str) -> str:
    """The first verdict that a reply names; empty, and so wrong, where it names none."""
    match = _WORD.search(reply)
    return match.group(1).upper() if match else ""


def read_wagers(reply: str) -> dict[str, float]:
    """Points in [0, 100] per verdict, scaled to sum to 100; all 0 where a reply holds none."""
    points = dict.fromkeys(VERDICTS, 0.0)
    for name, number in _WAGER.findall(reply):
        points[name.upper()] = float(number)
    total = sum(points.values())
    return {name: 100.0 * value / total if total else 0.0 for name, value in points.items()}


def core_score(verdict: str, points: Mapping[str, float], logic: str) -> float:
    """CoRe as printed (eq. 6), in [0, 1] for types A and B, in [-1, 1] for C and D.

    beta [y = y*] + (1 - beta) w_winner / 100 for A and B, w_reserve / 100 - gamma [y != UNKNOWN] for C and D. The
    winner is the right side, the reserve what is put on UNKNOWN.
    """
    if logic in "AB":
        return BETA * (verdict == TRUTHS[logic]) + (1.0 - BETA) * points[TRUTHS[logic]] / 100.0
    return points[UNKNOWN] / 100.0 - GAMMA * (verdict != UNKNOWN)


def graded_core_score(verdict: str, logic: str) -> float:
    """CoRe as the authors' public code has it: 1 if right, -0.2 for UNKNOWN where there is an answer, else -1."""
    if verdict == TRUTHS[logic]:
        return 1.0
    return -0.2 if verdict == UNKNOWN else -1.0


def alignment(verdict: str, logic: str) -> str:
    """MSA (eq. 7): "text", "vision" or "confusion"; only types B to D, whose signals differ, tell anything."""
    if verdict == TEXT_SIGNALS[logic]:
        return "text"
    return "vision" if verdict == IMAGE_SIGNALS[logic] else "confusion"


def entropy(points: Mapping[str, float]) -> float:
    """H of wagers in nats, in [0, ln 3]; ln 3, nothing known, where there are none."""
    shares = np.array([value for value in points.values() if value > 0]) / 100.0
    return float(-(shares * np.log(shares)).sum()) if len(shares) else float(np.log(3.0))


def relative_uncertainty(text: float, vision: float) -> float:
    """Delta H_rel = 2 (H_text - H_vis) / (H_text + H_vis), in [-2, 2]; above 0 pictures are surer; 0 for 0 / 0."""
    return 2.0 * (text - vision) / (text + vision) if text + vision > 0 else 0.0


def correction_rates(first: str, last: str, truth: str) -> dict[str, list[float]]:
    """What a case counts for SCR (eq. 8, among the wrong at first) and FCR (eq. 9, among the right): one of both."""
    if first == truth:
        return {"fcr": [float(last != truth)]}
    return {"scr": [float(last == truth)]}
