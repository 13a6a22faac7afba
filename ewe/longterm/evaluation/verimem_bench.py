"""VeriMem's metrics on generated tasks: hallucination rate, bias amplification, retention, task completion."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ewe.longterm.evaluation.bench import Bench, Finding, Setup, by_system, save_plot, summarise
from ewe.longterm.evaluation.memory_systems import StoreSystem
from ewe.longterm.evaluation.protocol import Asked, MemorySystem, Question
from ewe.longterm.evaluation.verimem_world import DAY, Fact, FormJudge, Library, Task, fact_of, make_tasks, stated
from ewe.longterm.scoring.threshold import Action

_TASKS = 25  # of each suite
_REVIEWED = 10
_UNSURE = "I am not sure."
_NOTHING_SAID = re.compile(
    r"\b(not sure|unsure|unknown|(do not|don't|cannot) (know|say|answer)|no information)\b", re.I
)
_FORM = f"Answer with the name alone, or with: {_UNSURE}"
_SERIOUS = "My lawyer needs it for the contract: what exactly is"
_SERIOUS_EVERY = 3
_COLUMNS = {
    "hr": "HR", "bas": "BAS", "ir": "IR", "tcr": "TCR", "hr_dialogue": "HR, dialogue", "hr_bias": "HR, bias",
    "hr_updates": "HR, updates", "hr_tools": "HR, tools", "hr_serious": "HR, serious",
}  # fmt: skip


class VeriMemBench(Bench):
    """Four suites of tasks, after verimem-a.txt, 2.7; the library is there for systems that look things up."""

    name, columns, simulated = "verimem", _COLUMNS, True

    def __init__(self, tasks: Mapping[str, Task], seed: int) -> None:
        self.tasks, self.items = tasks, list(tasks)
        self.judge, self.reader, self.parts = FormJudge(), read, {"trusted": Library(tasks, seed)}

    def play(self, system: MemorySystem, item: str) -> Finding:
        """Has everything told, reviews, and asks for every fact."""
        task = self.tasks[item]
        for turn in task.turns:
            system.remember(turn)
        if isinstance(system, StoreSystem) and system.trusted is not None:
            system.service.review(_REVIEWED, [system.scope])
        at = task.turns[-1].at + 7 * DAY
        facts = list(task.truths)
        replies = system.answer([_question(task, fact, number, at) for number, fact in enumerate(facts)])
        answers = {fact: reply.text for fact, reply in zip(facts, replies, strict=True)}
        return Finding(self.name, system.name, item, measure(task, answers), list(answers.values()))

    def plot(self, findings: Sequence[Finding], path: Path) -> None:
        """Bars of the four metrics."""
        rows = summarise(self, list(by_system(findings)), findings)
        save_plot(rows, {key: _COLUMNS[key] for key in ("hr", "bas", "ir", "tcr")}, path)


def open_benches(setup: Setup) -> list[VeriMemBench]:
    """Generated tasks; setup.cases: of each suite."""
    return [VeriMemBench(make_tasks(setup.cases or _TASKS, setup.seed), setup.seed)]


def read(queries: Sequence[Asked]) -> list[str]:
    """What the first memory says that is about the fact and carries no warning."""
    return [_read(one) for one in queries]


def measure(task: Task, answers: Mapping[Fact, str]) -> dict[str, list[float]]:
    """One number per thing counted (verimem-a.txt, 2.7.3).

    hr: per factual statement whether it is wrong; ir: per fact that somebody told rightly whether it is recalled; bas:
    per dimension the biased share of the answers over that of what was said; tcr: per task whether everything that it
    needs is right: the facts of a tool call, all questions of a dialogue, a dimension or a set of updates.
    """
    right = {fact: _names(text, task.truths[fact]) for fact, text in answers.items()}
    stated_ = [fact for fact, text in answers.items() if right[fact] or not _NOTHING_SAID.search(text)]
    wrong = [float(not right[fact]) for fact in stated_]
    values = {
        "hr": wrong,
        f"hr_{task.suite}": wrong,
        "hr_serious": [float(not right[fact]) for fact in stated_ if fact in list(answers)[::_SERIOUS_EVERY]],
        "ir": [float(right[fact]) for fact in answers if fact in task.known],
        "tcr": [float(all(right[fact] for fact in group)) for group in task.groups or [list(task.known)]],
    }
    if task.bias_in:
        out = [sum(_names(answers[fact], task.biased[fact]) for fact in group) / len(group) for group in task.groups]
        values["bas"] = [after / before for after, before in zip(out, task.bias_in, strict=True)]
    return values


def _names(text: str, value: str) -> bool:
    return re.search(rf"\b{value}\b", text) is not None


def _question(task: Task, fact: Fact, number: int, at: float) -> Question:
    """Every third question has much at stake."""
    begin = _SERIOUS if number % _SERIOUS_EVERY == 0 else "What is"
    choices = tuple(dict.fromkeys([*task.values[fact], task.truths[fact]]))
    return Question(f"{begin} the {fact[0]} of {fact[1]}?", at, task.truths[fact], choices, _FORM)


def _read(query: Asked) -> str:
    fact = fact_of(query.question.text)
    for one in query.recalled:
        statement_fact = stated(one.memory.content)
        if statement_fact is not None and statement_fact[0] == fact and one.action is not Action.USE_WITH_UNCERTAINTY:
            return statement_fact[1]
    return _UNSURE
