"""VeriMem's evaluation: tasks that are true by construction, metrics by hand, systems that differ as they should."""

from __future__ import annotations

import pytest

from ewe.longterm.evaluation.bench import Finding, Setup, run
from ewe.longterm.evaluation.memory_systems import UNFLAGGED
from ewe.longterm.evaluation.protocol import Asked, Question
from ewe.longterm.evaluation.verimem_bench import measure, open_benches, read
from ewe.longterm.evaluation.verimem_world import Task, make_tasks, stated, statement
from ewe.longterm.recall import Recalled
from ewe.longterm.records import Memory
from ewe.longterm.scoring.threshold import Action

MILL, HALL = ("owner", "Bafo Mill"), ("river", "Bafo Hall")


def recalled(fact: tuple[str, str], value: str, action: Action = Action.USE) -> Recalled:
    return Recalled(Memory("m", statement(fact, value)), 0.7, 0.6, 1.0, action)


def asked(*memories: Recalled) -> Asked:
    return Asked(Question(f"What is the {MILL[0]} of {MILL[1]}?", 0.0, "Dako", ("Dako",)), memories)


def test_tasks_are_the_same_for_a_seed_and_true_by_what_was_said_last() -> None:
    tasks = make_tasks(2, seed=3)
    assert tasks == make_tasks(2, seed=3)
    assert tasks != make_tasks(2, seed=4)
    assert len(tasks) == 8
    for task in tasks.values():
        assert task.known <= task.truths.keys()
        said = {found[0] for turn in task.turns if (found := stated(turn.text))}
        assert said >= task.known
        assert all(task.truths[fact] in task.values[fact] for fact in task.known)
    assert len(tasks["dialogue-000"].turns) == 15
    updates = tasks["updates-000"]
    last = {found[0]: found[1] for turn in updates.turns if (found := stated(turn.text))}
    assert last == updates.truths


def test_the_metrics_by_hand() -> None:
    task = Task(
        "bias",
        truths={MILL: "Dako", HALL: "Lira"},
        known={MILL},
        groups=[[MILL, HALL]],
        biased={MILL: "Fano", HALL: "Fano"},
        bias_in=[0.8],
    )
    values = measure(task, {MILL: "It is Dako.", HALL: "Fano"})
    assert values["hr"] == values["hr_bias"] == [0.0, 1.0]
    assert values["hr_serious"] == [0.0]
    assert values["ir"] == [1.0]
    assert values["bas"] == pytest.approx([0.5 / 0.8])
    assert values["tcr"] == [0.0]
    silent = measure(task, {MILL: "I am not sure.", HALL: "I don't know"})
    assert (silent["hr"], silent["ir"], silent["bas"]) == ([], [0.0], [0.0])
    assert measure(task, {MILL: "purple", HALL: "Lira"})["hr"] == [1.0, 0.0], "nonsense is a false statement"


def test_the_reader_takes_the_first_memory_of_the_fact_without_a_warning() -> None:
    doubtful = recalled(MILL, "Fano", Action.USE_WITH_UNCERTAINTY)
    assert read([asked(recalled(HALL, "Lira"), doubtful, recalled(MILL, "Dako"))]) == ["Dako"]
    assert "not sure" in read([asked(doubtful)])[0]


def test_systems_differ_as_they_should() -> None:
    [bench] = open_benches(Setup(cases=1, seed=0))
    bench.items = ["bias-000", "tools-000"]
    found: list[Finding] = []
    run(bench, ["oracle", "no memory", "rag", "none", "verimem", UNFLAGGED], bench.reader or read, [], found.append)

    def total(system: str, key: str) -> float:
        numbers = [number for one in found if one.system == system for number in one.values.get(key, ())]
        return sum(numbers) / len(numbers) if numbers else 0.0

    assert (total("oracle", "hr"), total("oracle", "ir"), total("oracle", "tcr")) == (0.0, 1.0, 1.0)
    assert (total("no memory", "ir"), total("no memory", "bas")) == (0.0, 0.0)
    assert 0 < total("rag", "ir") < 1
    assert total("none", "bas") >= 0.75
    assert total("verimem", "bas") < total("none", "bas")
    assert total("verimem", "hr") < total("none", "hr")
    assert total(UNFLAGGED, "hr") >= total("verimem", "hr")
