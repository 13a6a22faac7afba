"""Runs of factuality evaluations by hand: settings and records as files hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ewe.evaluation.factuality import Answer, Grade, Preference, Record
from ewe.evaluation.merged_runs import Run

STATS = {"prompt_tokens": 10, "unit_tokens_encoded": 5, "tokens_kept": 20, "tokens_discarded": 5, "passes": 30}
STATS |= {"retrievals": 2, "verifications": 3, "rewrites": 1}
VERDICTS = {"+": "supported", "-": "refuted", "?": "inconclusive"}


def about(model: str = "models/tiny", series: str = "", x: str = "") -> dict[str, Any]:
    return {"series": series, "x": x, "settings": {"model": {"name": model}}}


def settings(systems: Mapping[str, Any], prompts: int, name: str = "mine", k: float | None = None) -> dict[str, Any]:
    judges = {"judge": "base", "compare": None, "same": False}
    asked = {"name": name, "prompts": prompts, "k": k, "content": "abc"}
    return {
        "set": asked,
        "judges": judges,
        "systems": systems,
        "baseline": next(iter(systems)),
        "axis": "",
        "shard": "",
    }


def answer(system: str, prompt: str, error: str = "", text: str = "An answer.") -> Answer:
    return Answer(system, prompt, "" if error else text, "error" if error else "stop", error, 2.0, dict(STATS))


def grade(system: str, prompt: str, marks: str) -> Grade:
    """One claim per mark: + supported, - refuted, ? neither."""
    return Grade(system, prompt, [[f"claim {number}", VERDICTS[mark]] for number, mark in enumerate(marks)])


def graded(system: str, *marks: str) -> list[Record]:
    """Answers to prompts 0, 1, ... with these claims."""
    records: list[Record] = []
    for number, own in enumerate(marks):
        records += [answer(system, str(number)), grade(system, str(number), own)]
    return records


def preferred(system: str, against: str, *scores: Sequence[float]) -> list[Record]:
    return [Preference(system, str(number), against, own) for number, own in enumerate(scores)]


def run_of(systems: Mapping[str, Sequence[str]], **how: Any) -> Run:
    """A run in which each system's answers have these marks."""
    records = [record for name, marks in systems.items() for record in graded(name, *marks)]
    prompts = max(map(len, systems.values()))
    return Run("run.jsonl", settings({name: about() for name in systems}, prompts, **how), records)
