"""MMA-Bench on this engine's stores: core questions, the 3-step probe, CoRe, modalities, risk over coverage."""

import re
from collections.abc import Iterable, Mapping

import numpy as np

from ewe.eval.memory.bench import AREA, Bench, Finding, Setup
from ewe.eval.memory.mma_cases import TRUTHS, UNKNOWN, VERDICTS, Case, CoreQuestion, make_cases, read_case
from ewe.eval.memory.mma_probe import (
    STEPS,
    alignment,
    core_score,
    correction_rates,
    entropy,
    graded_core_score,
    read_verdict,
    read_wagers,
    relative_uncertainty,
)
from ewe.eval.memory.mma_reader import FormJudge, read
from ewe.eval.memory.protocol import Answerer, MemorySystem, Question, Reply
from ewe.verification.judges.protocol import Judge

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
        probed, said = probe(system, case) if case.claim else ({}, [])
        return Finding(self.name, system.name, item, {**values, **probed}, [one.text for one in [*replies, *said]])


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
        text = f"Is it true that {case.claim[0].lower()}{case.claim[1:-1]}?"
        return Question(text, case.asked_at, truth, VERDICTS, STEPS[step].format(verdict=verdict or UNKNOWN), only)

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
    return Question(one.text, case.asked_at, truth, one.choices or (UNKNOWN,), form)


def _is_right(one: CoreQuestion, reply: Reply) -> float:
    if one.confidence is not None:
        said = _CONFIDENCE.search(reply.text)
        return float(said is not None and one.confidence[0] <= float(said.group(1)) <= one.confidence[1])
    if one.choices == VERDICTS:
        return float(read_verdict(reply.text) in one.answers)
    named = [choice for choice in one.choices if re.search(rf"\b{re.escape(choice)}\b", reply.text)]
    return float(np.isin(named, one.answers).all() and bool(named))
